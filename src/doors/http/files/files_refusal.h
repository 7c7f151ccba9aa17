/* Failures of file work as HTTP ones. */
#ifndef COOP_HTTP_FILES_REFUSAL_H
#define COOP_HTTP_FILES_REFUSAL_H

#include "doors/http/runtime/v1/refusal.h"

/* By the name of an errno: ENOENT -> 404 file_not_found. */
struct coop_http_refusal coop_files_refusal_of(const char *error);

/* Answers with it. */
void coop_files_refuse(struct coop_http_exchange *exchange, const struct coop_http_refusal *refusal,
		       const char *message);

#endif
