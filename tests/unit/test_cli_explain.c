/* Refusals of the keeper in the words of who typed the command: the option instead of the argument,
 * and a sandbox that cannot be had put together from the parts of the error. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "doors/cli/option_rows.h"
#include "doors/cli/sandbox_args.h"

struct settings {
	const char *cwd;
	struct cli_list inject;
	struct cli_sandbox sandbox;
};

static const struct cli_option options[] = {
	{"cwd", 0, CLI_TEXT, offsetof(struct settings, cwd), "cwd", "FOLDER", ""},
	{"inject", 0, CLI_LIST, offsetof(struct settings, inject), "file_injections", "FILE", ""},
	CLI_SANDBOX_ROWS(struct settings),
	{0},
};

static struct cli_option *completed;
static const struct cli_verb verb = {.name = "run", .options = options}, bare = {.name = "freeze"};

/* record.c says what a command left behind; nothing of that is looked at here. */
void cli_say(const char *format, ...)
{
	(void)format;
}

static void assert_said(const struct cli_verb *of, const struct settings *settings,
			const char *code, const char *message, const char *details,
			const char *wanted)
{
	const struct cli_option *rows = of == &verb ? completed : NULL;
	const struct cli cli = {.verb = of, .options = rows, .settings = settings};
	struct coop_error error = {0};
	(void)snprintf(error.code, sizeof(error.code), "%s", code);
	(void)snprintf(error.message, sizeof(error.message), "%s", message);
	(void)snprintf(error.details, sizeof(error.details), "%s", details);
	cli_error_translate(&cli, &error);
	assert_string_equal(error.message, wanted);
	/* Some errors come by here twice, the second time without the settings. */
	cli_error_translate(&(struct cli){.verb = of, .options = rows}, &error);
	assert_string_equal(error.message, wanted);
}

static void options_are_named(void **state)
{
	const char *items[] = {"/a", "b"};
	const struct settings given = {.sandbox = {.profile = "wide",
						   .allow_write = {items, 2},
						   .memory_bytes = {true, 1},
						   .max_cpu_secs = {true, 100000000}}};
	assert_said(&verb, &given, "invalid_input",
		    "limits.memory_bytes must be an integer between 1048576 and 1125899906842624",
		    "{\"field\":\"limits.memory_bytes\",\"minimum\":1048576,"
		    "\"maximum\":1125899906842624,\"unit\":\"bytes\"}",
		    "--mem: at least 1M");
	assert_said(
		&verb, &given, "permission_denied",
		"limits.memory_bytes 1073741824 is more than is allowed here: 134217728",
		"{\"field\":\"limits.memory_bytes\",\"asked\":1073741824,\"maximum\":134217728}",
		"--mem: 1G is more than is allowed here: 128M");
	assert_said(
		&verb, &given, "permission_denied",
		"limits.memory_bytes 1500000000 is more than is allowed here: 1499999999",
		"{\"field\":\"limits.memory_bytes\",\"asked\":1500000000,\"maximum\":1499999999}",
		"--mem: 1500000000 is more than is allowed here: 1499999999");
	assert_said(&verb, &given, "permission_denied",
		    "limits.max_cpu_secs 7200 is more than is allowed here: 90",
		    "{\"field\":\"limits.max_cpu_secs\",\"asked\":7200,\"maximum\":90}",
		    "--cpu-time: 2h is more than is allowed here: 90s");
	assert_said(&verb, &given, "invalid_input",
		    "limits.max_cpu_secs: must be between 1 and 86400",
		    "{\"field\":\"limits.max_cpu_secs\",\"minimum\":1,\"maximum\":86400}",
		    "--cpu-time: at most 1d");
	assert_said(&verb, &given, "invalid_input", "sandbox.allow_write[1]: is no folder",
		    "{\"field\":\"sandbox.allow_write[1]\"}", "--write b: is no folder");
	assert_said(&verb, &given, "permission_denied", "sandbox.profile: wider than allowed",
		    "{\"field\":\"sandbox.profile\"}", "--profile: wider than allowed");
}

/* Of several files the one that is meant, and another argument by its option. */
static void subjects(void **state)
{
	const char *files[] = {"A=f", "/etc/key=f"}, *read[] = {"/srv"};
	const struct settings given = {.inject = {files, 2}, .sandbox = {.allow_read = {read, 1}}};
	assert_said(&verb, &given, "invalid_input", "file_injections[0].name A is set by env, too",
		    "{\"field\":\"file_injections[0].name\"}",
		    "--inject A=f: A is set by env, too");
	assert_said(&verb, &given, "invalid_input",
		    "file_injections[1].path is not there: /etc/key",
		    "{\"field\":\"file_injections[1].path\"}",
		    "--inject /etc/key=f: is not there: /etc/key");
	assert_said(&verb, &given, "invalid_input", "sandbox.allow_read needs sandbox.root minimal",
		    "{\"field\":\"sandbox.allow_read\",\"needs\":\"sandbox.root\"}",
		    "--read: needs --root minimal");
}

/* Nobody typed --workspace: the keeper was told where we are. */
static void workspace(void **state)
{
	const struct settings none = {0}, given = {.sandbox = {.workspace = "/w"}};
	assert_said(&verb, &none, "invalid_input", "sandbox.workspace: holds the keeper's state",
		    "{\"field\":\"sandbox.workspace\"}",
		    "the current folder as workspace: holds the keeper's state");
	assert_said(&verb, &given, "invalid_input", "sandbox.workspace: holds the keeper's state",
		    "{\"field\":\"sandbox.workspace\"}", "--workspace: holds the keeper's state");
}

/* Nor --cwd: it runs in the workspace that was named, else where we are. */
static void working_folder(void **state)
{
	const struct settings none = {0}, named = {.sandbox = {.workspace = "/w"}},
			      given = {.cwd = "/c", .sandbox = {.workspace = "/w"}};
	const char *const said = "cwd leads out of the workspace of this agent";
	const char *const details = "{\"field\":\"cwd\"}";
	assert_said(&verb, &none, "boundary_escape", said, details,
		    "the current folder leads out of the workspace of this agent");
	assert_said(&verb, &named, "boundary_escape", said, details,
		    "--workspace /w: leads out of the workspace of this agent");
	assert_said(&verb, &given, "boundary_escape", said, details,
		    "--cwd: leads out of the workspace of this agent");
}

static void unavailable(void **state)
{
	const struct settings none = {0}, given = {.sandbox = {.memory_bytes = {true, 1}}};
	const char *const code = "sandbox_unavailable", *const long_text =
								"sandbox: (see coop doctor)";
	assert_said(&verb, &none, code, long_text,
		    "{\"protection\":\"files\",\"reason\":\"no mounts\",\"step\":\"mount_proc\","
		    "\"errno\":\"EPERM\"}",
		    "sandbox: files cannot be enforced: no mounts, at mount_proc: EPERM");
	assert_said(&verb, &given, code, long_text,
		    "{\"protection\":\"memory_bytes\",\"reason\":\"no cgroup\",\"cause\":\"host\"}",
		    "sandbox: memory_bytes (--mem) cannot be enforced: no cgroup");
	/* Somebody above set it. */
	assert_said(&verb, &none, code, long_text,
		    "{\"protection\":\"memory_bytes\",\"reason\":\"no cgroup\",\"cause\":\"host\"}",
		    "sandbox: memory_bytes cannot be enforced: no cgroup");
	assert_said(&verb, &none, code, "sandbox: none yet (network none will do)",
		    "{\"protection\":\"network\",\"reason\":\"none yet\"}",
		    "sandbox: none yet (network none will do)");
	assert_said(&bare, &none, code, long_text,
		    "{\"protection\":\"freezer\",\"reason\":\"no cgroup\"}",
		    "freezer: cannot be had here: no cgroup");
	assert_said(&verb, &none, code, "as it was", "{\"protection\":\"files\"}", "as it was");
	assert_said(&verb, &none, code, "as it was", "{}", "as it was");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options_are_named), cmocka_unit_test(subjects),
		cmocka_unit_test(workspace),         cmocka_unit_test(working_folder),
		cmocka_unit_test(unavailable),
	};
	completed = cli_options_complete(options, coop_operation_spawn.args);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	free(completed);
	return failed;
}
