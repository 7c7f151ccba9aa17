/* All connections of the keeper: a list, what they share, and their number. Between connection.c
 * and admission.c; others ask the functions. */
#ifndef COOP_KEEPER_CONNECTIONS_H
#define COOP_KEEPER_CONNECTIONS_H

#include "base/buf.h"
#include "base/list.h"
#include "keeper/link/admission.h"

struct coop_conn_watch;
struct coop_intake_calls;
struct coop_keeper;

struct coop_connections {
	const struct coop_conn_watch *const *watch; /* ended by NULL: watch.h */
	const struct coop_intake_calls *calls;      /* operation.h */
	struct coop_link all;
	unsigned count;
	struct coop_buf spare_out; /* a large buffer that no connection uses at the moment */
	struct coop_admission admission;
};

/* NULL without memory. */
struct coop_connections *coop_connections_new(struct coop_keeper *keeper,
					      const struct coop_conn_watch *const *watch,
					      const struct coop_intake_calls *calls);

struct coop_link *coop_connections_all(const struct coop_keeper *keeper);
unsigned coop_connections_count(const struct coop_keeper *keeper);

#endif
