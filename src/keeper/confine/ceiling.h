/* The ceiling of a connection: what a person configured for a door bounds all that comes through
 * it, whoever it acts as. A door names its ceiling once, after it has logged in and before it asks
 * for anything; from then on the ceiling is one more of those that are merged. */
#ifndef COOP_KEEPER_CEILING_H
#define COOP_KEEPER_CEILING_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "interface/err.h"
#include "keeper/owner/agent_sandbox.h"
#include "sandbox/policy/policy.h"

struct coop_agent;
struct coop_agent_settings;
struct coop_conn;
struct coop_conn_watch;
struct coop_draft;
struct coop_process;
struct coop_request;

/* All ceilings of one spawn, the operator's aside. `list` points into `own`: it is not copied. */
struct coop_ceilings {
	const struct coop_sandbox_policy *list[COOP_AGENT_CEILINGS_MAX + 2];
	size_t count;
	struct coop_sandbox_policy own; /* the connection's, as it is for this agent; borrowed */
};

/* What the connection's ceiling says; NULL: it has none. */
const struct coop_sandbox_policy *coop_ceiling_policy(const struct coop_conn *conn);

/* Those in force for a draft: its agent's, and its connection's last. They live as long as nobody's
 * settings change. */
void coop_ceilings_find(const struct coop_draft *draft, struct coop_ceilings *ret);

/* Whether it is the user himself who names the path, resolved: he means what he names. Through a
 * door that has a ceiling somebody else speaks, and only what the ceiling names was named by the
 * user. */
bool coop_ceiling_user_names(const struct coop_draft *draft, const char *path);

/* Takes away from a merged policy what the connection's ceiling does not have and no list says. */
void coop_ceiling_apply(const struct coop_conn *conn, struct coop_sandbox_policy *policy);

/* Nothing that `args` give an agent may be wider than the ceiling of whoever gives it. 0, or the
 * error filled, here and below. */
int coop_ceiling_check_gift(const struct coop_conn *conn,
			    const struct coop_agent_settings *settings, const json_t *args,
			    struct coop_err *err);
/* Nobody changes what the commands of an agent begin with, or are held to, through a door that lets
 * less than that agent was given elsewhere: they would do for him what he may not. */
int coop_ceiling_check_change(const struct coop_conn *conn, const struct coop_agent *agent,
			      const json_t *args, struct coop_err *err);
/* Nobody gets a token for an agent whose folders or settings lie outside of his ceiling. */
int coop_ceiling_check_token(const struct coop_conn *conn, const struct coop_agent *agent,
			     struct coop_err *err);
/* What runs with more than the ceiling allows takes no input through this connection. */
int coop_ceiling_check_input(const struct coop_conn *conn, const struct coop_process *process,
			     struct coop_err *err);

/* It goes with its connection. */
extern const struct coop_conn_watch coop_ceiling_watch;

void coop_op_ceiling(struct coop_request *request);

#endif
