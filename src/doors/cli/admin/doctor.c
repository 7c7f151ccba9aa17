#include "doors/cli/admin/doctor.h"

#include <stdio.h>
#include <unistd.h>

#include "doors/cli/clean.h"
#include "doors/cli/verbs.h"

static const char *const words[] = {[CLI_GOOD] = "ok", [CLI_WARN] = "warn", [CLI_BAD] = "fail"};

static void print_finding(const char *name, const struct cli_finding *finding)
{
	static const char *const colours[] = {
		[CLI_GOOD] = "\x1b[32m", [CLI_WARN] = "\x1b[33m", [CLI_BAD] = "\x1b[31m"};
	const bool colour = isatty(STDOUT_FILENO);
	(void)printf("%s%-4s%s  %-9s %s\n", colour ? colours[finding->verdict] : "",
		     words[finding->verdict], colour ? "\x1b[0m" : "", name, finding->detail);
	if (finding->advice[0])
		(void)printf("                -> %s\n", finding->advice);
}

/* Prints one finding and adds it to the list. Whether it is no failure. */
static bool tell(const struct cli *cli, const char *name, struct cli_finding *finding, json_t *all)
{
	cli_clean(finding->detail);
	cli_clean(finding->advice);
	if (!cli->json) {
		print_finding(name, finding);
		(void)fflush(stdout);
	}
	(void)json_array_append_new(all, json_pack("{s:s, s:s, s:s, s:s}", "name", name, "status",
						   words[finding->verdict], "detail",
						   finding->detail, "advice", finding->advice));
	return finding->verdict != CLI_BAD;
}

struct settings {
	bool credentials;
};

static int run(struct cli *cli, const void *settings, size_t count, char **operands)
{
	const struct settings *s = settings;
	if (s->credentials)
		return cli_doctor_credentials(cli);
	json_t *all = json_array();
	bool good = true;
	for (const struct cli_check *check = cli_checks; check->name; check++) {
		struct cli_finding finding = {0};
		check->look(cli, &finding);
		good = tell(cli, check->name, &finding, all) && good;
	}
	struct cli_finding finding = {0};
	json_t *answer = cli_doctor_sandbox(cli, &finding);
	good = tell(cli, "sandbox", &finding, all) && good;
	if (cli->json) {
		json_t *value =
			json_pack("{s:b, s:O, s:O?}", "ok", good, "checks", all, "sandbox", answer);
		cli_print_json(value);
		json_decref(value);
	} else {
		cli_doctor_print(answer);
	}
	json_decref(answer);
	json_decref(all);
	return good ? CLI_OK : cli_failure(cli->verb);
}

static const struct cli_option options[] = {
	{"credentials", 0, CLI_FLAG, offsetof(struct settings, credentials), NULL, NULL,
	 "list what holds secrets in the home, and whether commands see it"},
	{0},
};

const struct cli_verb cli_verb_doctor = {
	.name = "doctor",
	.synopsis = "[--credentials]",
	.summary = "Check what coop needs from this host, and say what to change",
	.text = "Every line is something that was tried just now. The exit code is 1 if one of "
		"them failed; a warning names\n"
		"something that works less well. The sandbox is looked at by the keeper, which is "
		"started for it if need be: for each\n"
		"protection and limit whether it is enforced, by what, why it is not more, and "
		"what to change to get it.\n"
		"With --credentials only what holds secrets in the home is listed, with whether a "
		"command that says nothing sees it,\n"
		"and why; the exit code is 1 if it sees any.",
	.options = options,
	.settings_size = sizeof(struct settings),
	.run = run,
};
