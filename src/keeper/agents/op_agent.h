/* Operations on agents. */
#ifndef COOP_KEEPER_OP_AGENT_H
#define COOP_KEEPER_OP_AGENT_H

#include <stdbool.h>
#include <stdint.h>

#include "interface/err.h"

struct coop_agent;
struct coop_request;

/* Where paths start: the caller, or for the operator another principal's first agent. NULL with the
 * error filled. */
struct coop_agent *coop_op_agent_base(const struct coop_request *request, struct coop_err *err);

/* How much of a limit that all share the caller may use up: an eighth is left to the operator. */
int64_t coop_op_agent_share(const struct coop_request *request, int64_t limit);

/* Whether `top` and the agents above it may have one more agent (or token) among them: all but the
 * principal's first have an eighth of the limit, at least 16. 0, or the error filled. */
int coop_op_agent_room(const struct coop_request *request, struct coop_agent *top, bool tokens,
		       int64_t limit, struct coop_err *err);

/* Answers with the agent as it is now. */
void coop_op_agent_answer(struct coop_request *request, const struct coop_agent *agent);

/* The agent that the arguments `principal` and `agent` mean; without the latter the caller's own,
 * or the principal's first. NULL with the error filled. */
struct coop_agent *coop_op_agent_named(struct coop_request *request, struct coop_err *err);

/* The same, if the caller may change or remove it. NULL: the request has been answered. */
struct coop_agent *coop_op_agent_changeable(struct coop_request *request);

void coop_op_agent_add(struct coop_request *request);
void coop_op_agent_list(struct coop_request *request);
void coop_op_agent_show(struct coop_request *request);
void coop_op_agent_set(struct coop_request *request);
void coop_op_agent_remove(struct coop_request *request);

#endif
