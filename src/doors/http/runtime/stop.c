#include "doors/http/runtime/stop.h"

#include <signal.h>

/* An answer comes no later than that after the grace, ended or not. */
#define PATIENCE_MS 2000

static void on_end(struct coop_ask *ask, const json_t *result)
{
	struct coop_stop *stop = (struct coop_stop *)ask;

	stop->stopped(stop, result);
}

/* The keeper's own answer says that the tree is empty, or what is left of it. */
static void kill_tree(struct coop_stop *stop)
{
	stop->killing = true;
	coop_ask(&stop->ask, "kill", json_pack("{s:s}", "id", stop->ask.id), on_end);
}

static void on_waited(struct coop_ask *ask, const json_t *result)
{
	struct coop_stop *stop = (struct coop_stop *)ask;

	if (json_is_true(json_object_get(result, "running")) && stop->grace_ms >= 0)
		kill_tree(stop);
	else
		stop->stopped(stop, result);
}

static void on_signalled(struct coop_ask *ask, const json_t *result)
{
	const struct coop_stop *stop = (const struct coop_stop *)ask;
	int64_t ms = stop->grace_ms >= 0 ? stop->grace_ms : PATIENCE_MS;

	coop_ask(ask, "wait",
		 json_pack("{s:s,s:I,s:b}", "id", ask->id, "timeout_ms", (json_int_t)ms, "tidy", 1),
		 on_waited);
}

void coop_stop_begin(struct coop_stop *stop)
{
	if (stop->signal == SIGKILL && stop->group)
		kill_tree(stop);
	else
		coop_ask(&stop->ask, "signal",
			 json_pack("{s:s,s:i,s:s}", "id", stop->ask.id, "signal", stop->signal,
				   "target", stop->group ? "tree" : "process"),
			 on_signalled);
}
