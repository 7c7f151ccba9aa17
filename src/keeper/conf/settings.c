#include "keeper/conf/settings.h"

#include <stddef.h>
#include <string.h>

#include "base/text/units.h"

#define HOUR_MS 3600000
#define MIB (1 << 20)

static const struct {
	const char *name;
	size_t offset;
	const struct coop_unit_name *units;
	int64_t standard, min, max;
} table[] = {
#define ROW(field, units, standard, min, max)                                            \
	{                                                                                \
#field, offsetof(struct coop_settings, field), units, standard, min, max \
	}
	ROW(max_running, coop_units_none, 256, 1, 1000000),
	ROW(agent_max_running, coop_units_none, 64, 0, 1000000),
	ROW(principal_max_running, coop_units_none, 256, 1, 1000000),
	ROW(host_max_running, coop_units_none, 1024, 1, 1000000),
	ROW(max_retained, coop_units_none, 32, 0, 1000000),
	ROW(max_finished, coop_units_none, 64, 1, 1000000),
	ROW(max_receipts, coop_units_none, 1024, 0, 10000000),
	ROW(max_agents, coop_units_none, 4096, 1, 1000000),
	ROW(max_tokens, coop_units_none, 4096, 0, 1000000),
	ROW(max_sessions, coop_units_none, 256, 0, 1000000),
	ROW(max_events, coop_units_none, 16384, 16, 1 << 24),
	ROW(max_connections, coop_units_none, 4096, 1, 1000000),
	ROW(agent_max_connections, coop_units_none, 1024, 1, 1000000),
	ROW(login_max_connections, coop_units_none, 256, 1, 1000000),
	ROW(login_timeout_ms, coop_units_ms, 10000, 100, HOUR_MS),
	ROW(hold_idle_ms, coop_units_ms, 10000, 1, HOUR_MS),
	ROW(principal_buffer_bytes, coop_units_bytes, 4096LL * MIB, 4096, 1LL << 40),
	ROW(spool_stream_bytes, coop_units_bytes, 64LL * MIB, 4096, 1LL << 40),
	ROW(spool_total_bytes, coop_units_bytes, 1024LL * MIB, 4096, 1LL << 44),
	ROW(idle_exit_ms, coop_units_ms, 300000, 0, 1000LL * HOUR_MS),
	ROW(max_lifetime_ms, coop_units_ms, 6LL * HOUR_MS, 1, 10000LL * HOUR_MS),
	ROW(persistent_idle_ms, coop_units_ms, HOUR_MS / 2, 1, 10000LL * HOUR_MS),
	ROW(exit_retention_ms, coop_units_ms, 600000, 1, HOUR_MS),
	ROW(min_retention_ms, coop_units_ms, 60000, 1, HOUR_MS),
	ROW(max_history, coop_units_none, 100000, 0, 1000000000),
	ROW(audit_max_bytes, coop_units_bytes, 64LL * MIB, 4096, 1LL << 40),
	ROW(audit_files, coop_units_none, 8, 1, 1000),
#undef ROW
};

#define ROWS (sizeof table / sizeof table[0])
_Static_assert(ROWS <= 64, "struct coop_settings.given has a bit for each");

static int64_t *value_of(struct coop_settings *settings, size_t row)
{
	return (int64_t *)(void *)((char *)settings + table[row].offset);
}

/* The row of the name that the first `size` bytes are; ROWS if there is none. */
static size_t find(const char *name, size_t size)
{
	size_t i = 0;

	while (i < ROWS &&
	       (strlen(table[i].name) != size || memcmp(table[i].name, name, size) != 0))
		i++;
	return i;
}

void coop_settings_defaults(struct coop_settings *settings)
{
	*settings = (struct coop_settings){0};
	for (size_t i = 0; i < ROWS; i++)
		*value_of(settings, i) = table[i].standard;
}

/* The value is not repeated; the bounds are what its author needs. */
static int refuse(size_t row, struct coop_err *err)
{
	const char *units = table[row].units == coop_units_bytes ? ", or with K, M, G or T"
			    : table[row].units == coop_units_ms  ? ", or with ms, s, m, h or d"
								 : "";

	return coop_err_field(err, COOP_INVALID_INPUT, table[row].name,
			      "%s must be an integer between %lld and %lld%s", table[row].name,
			      (long long)table[row].min, (long long)table[row].max, units);
}

int coop_settings_set(struct coop_settings *settings, const char *assignment, struct coop_err *err)
{
	const char *equals = strchr(assignment, '=');
	size_t row = equals ? find(assignment, (size_t)(equals - assignment)) : ROWS;
	uint64_t value;

	if (row == ROWS)
		return coop_err_set(err, COOP_INVALID_INPUT,
				    "%.80s: no such setting, or not of the form NAME=VALUE",
				    assignment);
	if (coop_units_parse(equals + 1, 1, table[row].units, COOP_UNITS_WHOLE, &value) < 0 ||
	    (int64_t)value < table[row].min || (int64_t)value > table[row].max)
		return refuse(row, err);
	*value_of(settings, row) = (int64_t)value;
	settings->given |= 1ULL << row;
	return 0;
}

uint64_t coop_settings_bit(const char *name)
{
	size_t row = find(name, strlen(name));

	return row < ROWS ? 1ULL << row : 0;
}

static void at_least(struct coop_settings *settings, const char *name, int64_t *value,
		     int64_t least)
{
	if (!(settings->given & coop_settings_bit(name)) && *value < least)
		*value = least;
}

/* What nobody has said follows what somebody has, upwards: a larger limit must not be held back by
 * a standard one above it. */
void coop_settings_finish(struct coop_settings *settings)
{
	at_least(settings, "principal_max_running", &settings->principal_max_running,
		 settings->max_running);
	at_least(settings, "host_max_running", &settings->host_max_running,
		 settings->principal_max_running);
	/* Two rings of the usual size for each that runs, and as much for what has finished. */
	at_least(settings, "principal_buffer_bytes", &settings->principal_buffer_bytes,
		 settings->principal_max_running * 4 * MIB);
}

void coop_settings_write(const struct coop_settings *settings, struct coop_jsonw *w,
			 const char *name)
{
	coop_jsonw_begin(w, name);
	for (size_t i = 0; i < ROWS; i++)
		coop_jsonw_int(w, table[i].name,
			       *value_of((struct coop_settings *)(uintptr_t)settings, i));
	coop_jsonw_end(w);
}
