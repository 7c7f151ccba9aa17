/* One request of the control plane on its way: operations asked of the keeper one after the
 * other. */
#ifndef COOP_HTTP_SANDBOXES_WORK_H
#define COOP_HTTP_SANDBOXES_WORK_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "coop.h"
#include "doors/http/control/sandboxes_args.h"
#include "doors/http/control/sandboxes_query.h"
#include "doors/http/net/exchange.h"
#include "doors/http/users/user.h"

struct coop_sandbox_work;

/* The keeper has answered: `result` (borrowed), or `error` and NULL. Answers the exchange, or asks
 * for more. */
typedef void coop_sandbox_step(struct coop_sandbox_work *work, const json_t *result,
			       const struct coop_error *error);

struct coop_sandbox_work {
	struct coop_http_exchange *exchange; /* NULL: the client has gone */
	struct coop_user *user;              /* a reference */
	struct coop_call *call;              /* NULL: none under way */
	coop_sandbox_step *step;             /* what its answer is for */
	bool stays; /* goes on without the client: what it has begun must not be left half made */
	unsigned status; /* of a good answer */
	char id[COOP_SANDBOX_ID_SIZE];
	json_t *agent; /* as the keeper has shown it */
	json_t *list;  /* of views, or of tokens to be revoked */
	char token[COOP_TOKEN_MAX + 1];
	struct coop_error failure;       /* to be answered once all is tidied up */
	struct coop_sandbox_query query; /* of a list */
	json_t *args; /* of one that is being made; NULL: they cannot be made narrower any more */
	json_t *warnings; /* for whoever makes it; NULL: of another request */
};

/* For an exchange whose first operation is yet to be asked for. NULL: it has been refused. */
struct coop_sandbox_work *coop_sandbox_work_new(struct coop_http_exchange *exchange);

/* Asks the keeper; `args` is taken over (NULL: there was no memory for them). If it cannot be asked
 * the exchange has been refused. Nothing of the work may be touched afterwards. */
void coop_sandbox_ask(struct coop_sandbox_work *work, const char *op, json_t *args,
		      coop_sandbox_step *step);

/* Refuses with the keeper's error, in the words of the control plane: what is not there is a
 * sandbox, variables are `envs`. */
void coop_sandbox_refuse(struct coop_sandbox_work *work, const struct coop_error *error);

/* For a work whose client has gone, and that has nothing more to do. */
void coop_sandbox_work_free(struct coop_sandbox_work *work);

#endif
