/* A process as the database keeps it: two JSON texts, what was asked and how it ended; and back, as
 * a receipt. */
#ifndef COOP_KEEPER_ARCHIVE_H
#define COOP_KEEPER_ARCHIVE_H

#include "base/json/jsonw.h"
#include "records/store.h"

struct coop_agent;
struct coop_process;

/* For the caller to free; NULL without memory. */
char *coop_archive_about(const struct coop_process *process);
char *coop_archive_outcome(const struct coop_process *process);

/* The outcome of a process whose keeper died. */
#define COOP_ARCHIVE_LOST                                                                     \
	"{\"state\":\"exited\",\"duration_ms\":null,\"exit\":{\"code\":null,\"signal\":null," \
	"\"signal_name\":null,\"core_dumped\":false},\"end_cause\":\"lost\","                 \
	"\"end_evidence\":{\"wait_status\":null},\"bytes\":null,\"events\":null,"             \
	"\"cpu_usage_ns\":null,\"memory_peak_bytes\":null,\"digest\":null}"

/* Puts a row into the registry as a receipt. 0 or -ENOMEM; a row that cannot be read is left out,
 * with a line in the log. */
int coop_archive_restore(struct coop_agent *owner, const struct coop_store_process *row);

/* A row of `history`, as `viewer_id` sees it. */
void coop_archive_write(const struct coop_store_process *row, int64_t viewer_id,
			struct coop_jsonw *w);

#endif
