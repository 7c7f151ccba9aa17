/* Limits that the operator sets: in coop.conf, with COOP_SET for a keeper that is started on
 * demand, with `coop keeper --set NAME=VALUE`. */
#ifndef COOP_KEEPER_SETTINGS_H
#define COOP_KEEPER_SETTINGS_H

#include <stdint.h>

#include "base/json/jsonw.h"
#include "interface/err.h"

struct coop_settings {
	int64_t max_running;           /* live processes of a principal's first agent */
	int64_t agent_max_running;     /* and of agents that have no limit of their own */
	int64_t principal_max_running; /* of a whole principal */
	int64_t host_max_running;      /* of all principals */
	int64_t max_retained;          /* finished persistent records of a principal */
	int64_t max_finished;          /* finished records kept in full, per agent */
	int64_t max_receipts;          /* per principal */
	int64_t max_agents;            /* of the keeper */
	int64_t max_tokens;
	int64_t max_sessions; /* per agent */
	int64_t max_events;   /* numbered events kept per process */
	int64_t max_connections;
	int64_t agent_max_connections; /* of an agent with all below it */
	int64_t login_max_connections; /* that have not logged in */
	int64_t login_timeout_ms;      /* they have so long */
	int64_t hold_idle_ms;          /* a holder that takes nothing for so long loses its right */
	int64_t principal_buffer_bytes; /* memory for output of a principal */
	int64_t spool_stream_bytes;     /* spooled output per stream */
	int64_t spool_total_bytes;      /* and of all streams of a principal together */
	int64_t idle_exit_ms;           /* a keeper started on demand leaves after that; 0: never */
	int64_t max_lifetime_ms;        /* ceiling, and default of a persistent process */
	int64_t persistent_idle_ms;     /* idle limit of a persistent process */
	int64_t exit_retention_ms;      /* default */
	int64_t min_retention_ms;       /* floor */
	int64_t max_history;            /* ended processes that the database remembers */
	int64_t audit_max_bytes;        /* size of one audit file */
	int64_t audit_files;            /* full ones that stay */
	uint64_t given;                 /* bits of those that were set, in the table's order */
};

void coop_settings_defaults(struct coop_settings *settings);

/* Takes "NAME=VALUE". Values are plain integers; of bytes also 64M (K, M, G, T: powers of 1024), of
 * milliseconds also 30s (ms, s, m, h, d). 0, or the error filled and nothing changed; the field is
 * the setting's name where it is known. */
int coop_settings_set(struct coop_settings *settings, const char *assignment, struct coop_err *err);

/* The bit in `given` of a setting; 0 for a name that is none. */
uint64_t coop_settings_bit(const char *name);

/* To be called when all is set: raises principal_max_running to max_running and host_max_running to
 * principal_max_running where the operator did not say them himself, so that one who raises
 * max_running alone gets what he asked for. */
void coop_settings_finish(struct coop_settings *settings);

/* The values in force, plain integers. */
void coop_settings_write(const struct coop_settings *settings, struct coop_jsonw *w,
			 const char *name);

#endif
