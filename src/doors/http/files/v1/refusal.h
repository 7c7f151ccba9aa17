/* Failures of file work as HTTP ones. */
#ifndef COOP_HTTP_V1_FILES_REFUSAL_H
#define COOP_HTTP_V1_FILES_REFUSAL_H

#include "coop.h"
#include "doors/http/net/exchange.h"

/* Answers with it: ENOENT -> 404 file_not_found. */
void coop_files_refuse(struct coop_http_exchange *exchange, const struct coop_error *error);

#endif
