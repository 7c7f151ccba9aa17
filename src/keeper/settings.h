/* Limits that the operator sets: `coop keeper --set NAME=VALUE`, COOP_SET for one that is started on demand. */
#ifndef COOP_KEEPER_SETTINGS_H
#define COOP_KEEPER_SETTINGS_H

#include <stdint.h>

#include "base/err.h"
#include "base/jsonw.h"

struct coop_settings {
	int64_t max_running;  /* live processes */
	int64_t max_finished; /* finished records kept in full */
	int64_t max_receipts;
	int64_t max_events; /* numbered events kept per process */
	int64_t max_connections;
	int64_t spool_stream_bytes; /* spooled output per stream */
	int64_t spool_total_bytes;  /* and of all streams together */
	int64_t idle_exit_ms;       /* a keeper started on demand leaves after that; 0: never */
	int64_t max_lifetime_ms;    /* ceiling, and default of a persistent process */
	int64_t persistent_idle_ms; /* idle limit of a persistent process */
	int64_t exit_retention_ms;  /* default */
	int64_t min_retention_ms;   /* floor */
};

void coop_settings_defaults(struct coop_settings *settings);

/* Takes "NAME=VALUE". Values are plain integers. */
int coop_settings_set(struct coop_settings *settings, const char *assignment, struct coop_err *err);

void coop_settings_write(const struct coop_settings *settings, struct coop_jsonw *w,
			 const char *name);

#endif
