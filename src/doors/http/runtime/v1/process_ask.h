/* Requests about the process that a path names. */
#ifndef COOP_HTTP_V1_PROCESS_ASK_H
#define COOP_HTTP_V1_PROCESS_ASK_H

#include <jansson.h>
#include <stdbool.h>

#include "doors/http/runtime/ask.h"
#include "doors/http/runtime/v1/view.h"

/* Asks for the status of the process that the path names. What the keeper refuses from now on is
 * refused with its words. */
void coop_v1_ask_process(struct coop_ask *ask,
			 void (*next)(struct coop_ask *ask, const json_t *result));
/* Looks at the record in a result, and sets ask->id. False: the exchange has been refused, as there
 * is no such process for clients. */
bool coop_v1_ask_view(struct coop_ask *ask, const json_t *result, struct coop_process_view *view);
/* {"process": P} */
void coop_v1_answer_process(struct coop_ask *ask, const struct coop_process_view *view);

#endif
