/* What the routes for files have in common. */
#ifndef COOP_HTTP_V1_FILES_WORK_H
#define COOP_HTTP_V1_FILES_WORK_H

#include <stdbool.h>

#include "doors/http/files/link.h"
#include "doors/http/net/exchange.h"

/* The most that an upload may hold, unpacked. */
#define COOP_FILES_UPLOAD_MAX (1ull << 30)
/* The body of write_files. */
#define COOP_FILES_BATCH_MAX (32u << 20)

/* The query's `path`, for the caller to free. NULL: the exchange has been refused. */
char *coop_files_path(struct coop_http_exchange *exchange);
/* A query's flag. False: the exchange has been refused. */
bool coop_files_flag(struct coop_http_exchange *exchange, const char *name, bool *ret);

/* Opens a talk. `request` is taken over. If that fails the exchange is refused, and over. */
void coop_files_begin(struct coop_http_exchange *exchange, json_t *request,
		      const struct coop_files_handler *handler, struct coop_files_talk **ret_talk);

/* The routes' functions, by file. */
void coop_files_download(struct coop_http_exchange *exchange);
void coop_files_list(struct coop_http_exchange *exchange);
void coop_files_upload(struct coop_http_exchange *exchange);
void coop_files_batch(struct coop_http_exchange *exchange);
void coop_files_watch(struct coop_http_exchange *exchange);

#endif
