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

/* What a route keeps while it talks with the helper: to be put at the front of its own struct. */
struct coop_files_work {
	struct coop_http_exchange *exchange;
	struct coop_files_talk *talk; /* NULL: none yet */
};

/* A new one of `size` bytes, zeroed; `behaviour` frees it. NULL: the exchange has been refused. */
void *coop_files_work_new(struct coop_http_exchange *exchange, size_t size,
			  const struct coop_http_behaviour *behaviour);
/* Opens its talk, which it gets as context. `request` is taken over. If that fails the exchange is
 * refused, and the work gone. */
void coop_files_work_begin(struct coop_files_work *work, json_t *request,
			   void (*answer)(void *context, const struct coop_files_answer *answer),
			   void (*failed)(void *context, const struct coop_error *error));
/* The usual answer to a failure. */
void coop_files_work_failed(void *context, const struct coop_error *error);

/* The routes' functions, by file. */
void coop_files_download(struct coop_http_exchange *exchange);
void coop_files_list(struct coop_http_exchange *exchange);
void coop_files_upload(struct coop_http_exchange *exchange);
void coop_files_batch(struct coop_http_exchange *exchange);
void coop_files_watch(struct coop_http_exchange *exchange);

#endif
