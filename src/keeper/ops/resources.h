/* What the keeper itself uses. Each of these looks when it is asked. */
#ifndef COOP_KEEPER_RESOURCES_H
#define COOP_KEEPER_RESOURCES_H

#include <stdint.h>

#include "base/json/jsonw.h"

struct coop_keeper;

uint64_t coop_resources_rss(void);
/* Memory for the output of processes. */
uint64_t coop_resources_buffers(const struct coop_keeper *keeper);
/* {"open", "limit"} */
void coop_resources_write_fds(struct coop_jsonw *w, const char *name);

#endif
