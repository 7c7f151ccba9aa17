#include "keeper/settings.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define HOUR_MS 3600000
#define MIB (1 << 20)

static const struct {
	const char *name;
	size_t offset;
	int64_t standard, min, max;
} table[] = {
#define ROW(field, standard, min, max)                                            \
	{                                                                         \
#field, offsetof(struct coop_settings, field), standard, min, max \
	}
	ROW(max_running, 256, 1, 1000000),
	ROW(max_finished, 64, 1, 1000000),
	ROW(max_receipts, 1024, 0, 10000000),
	ROW(max_events, 16384, 16, 1 << 24),
	ROW(max_connections, 4096, 1, 1000000),
	ROW(spool_stream_bytes, 64LL * MIB, 4096, 1LL << 40),
	ROW(spool_total_bytes, 1024LL * MIB, 4096, 1LL << 44),
	ROW(idle_exit_ms, 300000, 0, 1000LL * HOUR_MS),
	ROW(max_lifetime_ms, 6LL * HOUR_MS, 1, 10000LL * HOUR_MS),
	ROW(persistent_idle_ms, HOUR_MS / 2, 1, 10000LL * HOUR_MS),
	ROW(exit_retention_ms, 600000, 1, HOUR_MS),
	ROW(min_retention_ms, 60000, 1, HOUR_MS),
#undef ROW
};

#define ROWS (sizeof table / sizeof table[0])

static int64_t *value_of(struct coop_settings *settings, size_t row)
{
	return (int64_t *)(void *)((char *)settings + table[row].offset);
}

void coop_settings_defaults(struct coop_settings *settings)
{
	for (size_t i = 0; i < ROWS; i++)
		*value_of(settings, i) = table[i].standard;
}

int coop_settings_set(struct coop_settings *settings, const char *assignment, struct coop_err *err)
{
	const char *equals = strchr(assignment, '=');
	size_t size = equals ? (size_t)(equals - assignment) : 0;
	char *end;

	for (size_t i = 0; size && i < ROWS; i++) {
		if (strlen(table[i].name) != size || strncmp(table[i].name, assignment, size) != 0)
			continue;
		errno = 0;
		long long value = strtoll(equals + 1, &end, 10);
		if (errno || end == equals + 1 || *end || value < table[i].min ||
		    value > table[i].max)
			return coop_err_field(err, COOP_INVALID_INPUT, table[i].name,
					      "%s must be an integer between %lld and %lld",
					      table[i].name, (long long)table[i].min,
					      (long long)table[i].max);
		*value_of(settings, i) = value;
		return 0;
	}
	return coop_err_set(err, COOP_INVALID_INPUT,
			    "%.80s: no such setting, or not of the form NAME=VALUE", assignment);
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
