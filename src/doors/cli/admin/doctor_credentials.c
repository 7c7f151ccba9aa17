/* What holds secrets in the home, and whether commands see it: as the keeper says that it would lay
 * out the view. */
#include <stdio.h>
#include <string.h>

#include "doors/cli/admin/doctor.h"
#include "doors/cli/clean.h"
#include "doors/cli/cli.h"
#include "doors/cli/record.h"

static void print_one(const json_t *entry, size_t width)
{
	const bool hidden = json_is_true(json_object_get(entry, "hidden"));
	const long long links = (long long)cli_number(entry, "hard_links");
	(void)printf("%-7s %-*s  %s\n", hidden ? "hidden" : "SEEN", (int)width,
		     cli_text(entry, "path"), cli_text(entry, "reason"));
	if (links > 0)
		(void)printf(
			"        -> %lld other name%s of its files: commands may see them there\n",
			links, links == 1 ? "" : "s");
}

/* Whether all are hidden. */
static bool print_all(const struct cli *cli, const json_t *list)
{
	size_t i, width = 0, seen = 0;
	json_t *entry;

	json_array_foreach((json_t *)list, i, entry)
	{
		const size_t size = strlen(cli_text(entry, "path"));
		width = size > width ? size : width;
		seen += !json_is_true(json_object_get(entry, "hidden"));
	}
	if (cli->json) {
		json_t *value = json_pack("{s:b, s:O}", "ok", seen == 0, "credentials", list);
		cli_print_json(value);
		json_decref(value);
		return seen == 0;
	}
	json_array_foreach((json_t *)list, i, entry) print_one(entry, width);
	(void)printf("%zu in the home, %zu of them seen by commands\n", json_array_size(list),
		     seen);
	return seen == 0;
}

int cli_doctor_credentials(struct cli *cli)
{
	struct coop_error error;
	json_t *answer = NULL;
	int r = cli->coop ? 0 : cli_open(cli, CLI_START_KEEPER, &error);

	if (r == 0)
		r = cli_call(cli, "doctor", json_pack("{s:b}", "credentials", true), &answer,
			     &error);
	if (r < 0)
		return cli_fail(cli, NULL, &error);
	cli_clean_json(answer);
	const bool good = print_all(cli, json_object_get(answer, "credentials"));
	json_decref(answer);
	return good ? CLI_OK : cli_failure(cli->verb);
}
