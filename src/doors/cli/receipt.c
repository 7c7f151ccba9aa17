#include "doors/cli/receipt.h"

#include <stdio.h>

#include "doors/cli/record.h"

static bool has_number(const json_t *array, json_int_t number)
{
	for (size_t i = 0; i < json_array_size(array); i++)
		if (json_integer_value(json_array_get(array, i)) == number)
			return true;
	return false;
}

static const char *noun(size_t count)
{
	return count == 1 ? "process" : "processes";
}

bool cli_none_alive(const char *id, const json_t *result)
{
	const long long left = (long long)cli_number(result, "survivors");
	if (left)
		cli_say("%s%s%lld %s still alive", id ? id : "", id ? ": " : "", left,
			left == 1 ? "process is" : "processes are");
	return left == 0;
}

static bool judge(const char *id, const json_t *receipt)
{
	const long long survivors = (long long)cli_number(receipt, "survivors");
	if (survivors > 0)
		cli_say("%s: %lld %s still alive (blocked in the kernel? try again)", id, survivors,
			survivors == 1 ? "process is" : "processes are");
	const long long strays = (long long)cli_number(receipt, "strays");
	if (strays > 0)
		cli_say("%lld %s alive that %s to no record, perhaps from here; see coop info",
			strays, strays == 1 ? "process is" : "processes are",
			strays == 1 ? "belongs" : "belong");
	return json_is_true(json_object_get(receipt, "success"));
}

bool cli_receipt_show(const struct cli *cli, const char *id, const json_t *receipt)
{
	const json_t *process = json_object_get(receipt, "process");
	const char *own = cli_text(process, "id");
	const size_t killed = json_array_size(json_object_get(receipt, "killed"));
	const long long ms = (long long)cli_number(receipt, "ms");
	char state[CLI_TEXT_MAX];

	const bool good = judge(id, receipt);
	if (cli->json)
		return good;
	cli_record_state(process, state);
	(void)printf("%s: %s", *own ? own : id, state);
	/* A process that got no signal had ended by itself; what did get one is what it left. */
	const json_t *signalled = json_object_get(receipt, "signalled");
	if (has_number(signalled, cli_number(process, "pid")) || !cli_record_finished(process))
		(void)printf(", %zu %s ended in %lld ms\n", killed, noun(killed), ms);
	else if (json_array_size(signalled) == 0)
		(void)printf(" before; nothing was left to kill\n");
	else
		(void)printf(" before; %zu %s it left %s killed, in %lld ms\n", killed,
			     noun(killed), killed == 1 ? "was" : "were", ms);
	return good;
}

bool cli_receipt_show_released(const struct cli *cli, const char *id, bool released,
			       const json_t *receipt)
{
	const size_t killed = json_array_size(json_object_get(receipt, "killed"));
	const bool good = judge(id, receipt);
	if (released && !cli->json)
		(void)printf("%s: forgotten; %zu %s killed in %lld ms\n", id, killed, noun(killed),
			     (long long)cli_number(receipt, "ms"));
	return good && released;
}
