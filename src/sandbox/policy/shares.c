#include "sandbox/policy/shares.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text/units.h"
#include "sandbox/policy/policy.h"

/* Below these nothing useful runs: a share of a small machine is not less. */
#define MEMORY_LEAST (INT64_C(256) << 20)
#define PIDS_LEAST 1024

static const struct {
	const char *key;
	int64_t percent; /* unless the operator says otherwise */
	bool bytes;
	int64_t min, max; /* of a number */
} rows[COOP_SHARE_COUNT] = {
	[COOP_SHARE_PRINCIPAL_MEMORY] = {"principal_memory_bytes", 75, true, 1 << 20, 1LL << 50},
	[COOP_SHARE_AGENT_MEMORY] = {"agent_memory_bytes", 50, true, 1 << 20, 1LL << 50},
	[COOP_SHARE_PRINCIPAL_PIDS] = {"principal_max_pids", 50, false, 1, 1 << 22},
	[COOP_SHARE_AGENT_PIDS] = {"agent_max_pids", 25, false, 1, 1 << 22},
};

void coop_shares_init(struct coop_shares *shares)
{
	for (int i = 0; i < COOP_SHARE_COUNT; i++)
		shares->of[i] = (struct coop_share){.amount = rows[i].percent, .percent = true};
}

/* -1: it is none of these. */
static int64_t parse(const char *value, bool bytes, bool *ret_percent)
{
	static const struct coop_unit_name percent[] = {{"%", 1}, {NULL, 0}};
	const struct coop_unit_name *units = bytes ? coop_units_bytes : coop_units_none;
	uint64_t amount = 0;

	*ret_percent = false;
	if (!strcmp(value, "none"))
		return 0;
	*ret_percent = coop_units_parse(value, 0, percent, COOP_UNITS_WHOLE, &amount) == 0;
	if (!*ret_percent)
		(void)coop_units_parse(value, 1, units, COOP_UNITS_WHOLE, &amount);
	return amount ? (int64_t)amount : -1;
}

int coop_shares_set(struct coop_shares *shares, const char *key, const char *value,
		    struct coop_err *err)
{
	bool percent;
	int i = 0;

	while (i < COOP_SHARE_COUNT && strcmp(rows[i].key, key) != 0)
		i++;
	if (i == COOP_SHARE_COUNT)
		return -ENOENT;
	struct coop_share *share = &shares->of[i];
	int64_t amount = parse(value, rows[i].bytes, &percent);
	if (amount < 0 || (percent && amount > 100) ||
	    (amount && !percent && (amount < rows[i].min || amount > rows[i].max)))
		return coop_err_field(err, COOP_INVALID_INPUT, key,
				      "%s must be none, a share of the machine between 1%% and "
				      "100%%, or an integer between %lld and %lld",
				      key, (long long)rows[i].min, (long long)rows[i].max);
	if (share->said)
		return coop_err_field(err, COOP_INVALID_INPUT, key, "%s: said twice", key);
	*share = (struct coop_share){.amount = amount, .percent = percent, .said = true};
	return 0;
}

static int64_t read_number(const char *path)
{
	FILE *file = fopen(path, "re");
	long long number = 0;

	if (!file)
		return 0;
	if (fscanf(file, "%lld", &number) != 1 || number < 0)
		number = 0;
	(void)fclose(file);
	return number;
}

void coop_machine_look(struct coop_machine *ret)
{
	int64_t pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
	int64_t pids = read_number("/proc/sys/kernel/pid_max");
	int64_t threads = read_number("/proc/sys/kernel/threads-max");

	ret->memory_bytes = pages > 0 && size > 0 ? pages * size : 0;
	ret->pids = threads && threads < pids ? threads : pids;
}

static int64_t amount_of(const struct coop_share *share, int64_t whole, int64_t least)
{
	if (!share->percent)
		return share->amount;
	int64_t part = whole / 100 * share->amount;
	return whole == 0 || share->amount == 0 ? 0 : part < least ? least : part;
}

void coop_shares_lay(const struct coop_shares *shares, const struct coop_machine *machine,
		     bool first, struct coop_sandbox_limits *limits)
{
	const struct coop_share *of = shares->of;

	if (!limits->memory_bytes)
		limits->memory_bytes = amount_of(
			&of[first ? COOP_SHARE_PRINCIPAL_MEMORY : COOP_SHARE_AGENT_MEMORY],
			machine->memory_bytes, MEMORY_LEAST);
	if (!limits->max_pids)
		limits->max_pids =
			amount_of(&of[first ? COOP_SHARE_PRINCIPAL_PIDS : COOP_SHARE_AGENT_PIDS],
				  machine->pids, PIDS_LEAST);
}
