/* A change of a process's row, as an entry of the backlog: what the next keeper does to the
 * database if this one does not live to. No I/O here. */
#ifndef COOP_RECORDS_ROW_H
#define COOP_RECORDS_ROW_H

#include "base/buf.h"
#include "records/backlog.h"
#include "records/store.h"

enum coop_row_change { COOP_ROW_STARTED, COOP_ROW_ENDED, COOP_ROW_RELEASED };

/* Puts it into the backlog; texts that are NULL are as good as "". 0, -ENOBUFS or -ENOMEM.
 * `scratch` is emptied. */
int coop_row_put(struct coop_backlog *backlog, enum coop_row_change change,
		 const struct coop_store_process *row, struct coop_buf *scratch);

/* Takes an entry apart; texts are the entry's. 0, or -EBADMSG. */
int coop_row_parse(const struct coop_backlog_entry *entry, enum coop_row_change *ret_change,
		   struct coop_store_process *ret);

/* Does to the database what an earlier keeper left, in one transaction, and empties the lane. What
 * is no such entry is left out. 0, or the error filled. Before the loop runs. */
int coop_row_recover(struct coop_backlog *backlog, struct coop_store *store, struct coop_err *err);

/* One change. Doing it again changes nothing. */
int coop_row_write(struct coop_store *store, enum coop_row_change change,
		   const struct coop_store_process *row, struct coop_err *err);

#endif
