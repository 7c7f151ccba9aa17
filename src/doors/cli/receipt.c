#include "receipt.h"

#include <stdio.h>

#include "record.h"

bool cli_receipt_show(const struct cli *cli, const char *id, const json_t *receipt)
{
	const json_t *process = json_object_get(receipt, "process");
	const char *own = cli_text(process, "id");
	const long long survivors = (long long)cli_number(receipt, "survivors");
	char state[CLI_TEXT_MAX];

	if (survivors > 0)
		cli_say("%s: %lld processes are still alive (blocked in the kernel? try again)", id,
			survivors);
	if (!cli->json) {
		cli_record_state(process, state);
		const size_t ended = json_array_size(json_object_get(receipt, "killed"));
		(void)printf("%s: %s, %zu %s ended in %lld ms\n", *own ? own : id, state, ended,
			     ended == 1 ? "process" : "processes",
			     (long long)cli_number(receipt, "ms"));
	}
	return json_is_true(json_object_get(receipt, "success"));
}
