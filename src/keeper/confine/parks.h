/* Parks: launchers that stay in an agent's control group, so that all that they start is in it from
 * its first moment on, and a start costs no more than without. By them the shares of memory and
 * processes hold that agents have where nobody says otherwise (sandbox/policy/shares.h): as far as
 * this host has control groups, for whatever is confined and has no group of its own. What came of
 * it stands in the record. */
#ifndef COOP_KEEPER_PARKS_H
#define COOP_KEEPER_PARKS_H

#include <stdbool.h>
#include <uv.h>

#include "base/json/jsonw.h"
#include "base/list.h"
#include "keeper/launch/launcher.h"

struct coop_agent;
struct coop_confine;
struct coop_keeper;
struct coop_process;

/* A launcher is about to go: what it has prepared goes first. */
typedef void (*coop_parks_retired)(struct coop_keeper *keeper,
				   const struct coop_launcher *launcher);

/* NULL without memory. */
struct coop_parks *coop_parks_new(struct coop_keeper *keeper, coop_parks_retired on_retire);

/* Names the launcher in the agent's group for a process that needs no group of its own, if there
 * can be one. The user's own agent does not wait for it: while there is none its commands start
 * without. */
void coop_parks_enter(struct coop_agent *agent, struct coop_confine *confine);

/* Starts that of the user's own agent, a moment later: whoever starts a keeper waits for its first
 * command. */
void coop_parks_warm(struct coop_keeper *keeper, const struct coop_launcher_class *class);

/* The agent is removed. */
void coop_parks_drop(struct coop_agent *agent);

/* Before the launchers go. */
void coop_parks_free(struct coop_keeper *keeper);

/* The record's `agent_limits`: what the agent of the process has, and what holds it. */
void coop_parks_write(const struct coop_process *process, struct coop_jsonw *w, const char *name);

#endif
