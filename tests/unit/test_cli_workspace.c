/* The folder that a command may change where nobody named one: the one it runs in, but not every
 * folder, and not for every profile. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "doors/cli/workspace.h"
#include "folder.h"

static char said[512];
static const char *roots;  /* JSON: what the agent is bound to */
static const char *path;   /* the agent's */
static unsigned questions; /* to the keeper */

void cli_say(const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	(void)vsnprintf(said, sizeof(said), format, ap);
	va_end(ap);
}

/* A keeper that knows one agent. */
int cli_call(struct cli *cli, const char *op, json_t *args, json_t **ret, struct coop_error *error)
{
	char text[256];
	questions++;
	(void)snprintf(text, sizeof(text),
		       strcmp(op, "info") == 0 ? "{\"you\":{\"agent\":\"%.0smain/a\"}}"
					       : "{\"agent\":{\"effective\":{\"workspace\":%s},"
						 "\"path\":\"%s\",\"principal\":\"uid:7\"}}",
		       roots, path);
	json_decref(args);
	*ret = json_loads(text, 0, NULL);
	return *ret ? 0 : -EPROTO;
}

/* What is sent, as text that the next call replaces. */
static const char *sent(const struct cli_sandbox *sandbox, const char *cwd, const char *agent)
{
	static char text[PATH_MAX];
	struct cli cli = {0};
	json_t *args = json_object();
	if (sandbox->workspace)
		(void)json_object_set_new(args, "sandbox",
					  json_pack("{s:s}", "workspace", sandbox->workspace));
	said[0] = '\0';
	questions = 0;
	cli_workspace_add(&cli, sandbox, cwd, agent, args);
	char *dump = json_dumps(args, JSON_COMPACT | JSON_SORT_KEYS);
	(void)snprintf(text, sizeof(text), "%s", dump);
	free(dump);
	json_decref(args);
	return text;
}

static int set_up(void **state)
{
	if (folder_make(state) < 0 || mkdir(folder_path("home"), 0700) < 0 ||
	    mkdir(folder_path("keeper"), 0700) < 0 || mkdir(folder_path("work"), 0700) < 0)
		return -1;
	(void)setenv("HOME", folder_path("home"), 1);
	(void)setenv("COOP_SOCKET", folder_path("keeper/run/sock"), 1);
	(void)setenv("COOP_STATE", folder_path("home/state"), 1);
	(void)unsetenv("COOP_TOKEN");
	roots = "[]";
	path = "main/a";
	return 0;
}

static void granted(void **state)
{
	char wanted[256];
	const struct cli_sandbox none = {0}, own = {.profile = "build"};
	(void)snprintf(wanted, sizeof(wanted),
		       "{\"sandbox\":{\"names\":\"resolved\",\"workspace\":\"%s/work\"}}", folder);
	assert_string_equal(sent(&none, folder_path("work"), NULL), wanted);
	assert_string_equal(sent(&own, folder_path("work"), NULL), wanted);
	assert_string_equal(sent(&none, folder_path("home/../work/"), NULL), wanted);
	assert_int_equal(chdir(folder_path("work")), 0);
	assert_string_equal(sent(&none, NULL, NULL), wanted);
	assert_int_equal(chdir("/"), 0);
	assert_string_equal(said, "");
	assert_int_equal(questions, 0);
}

static void read_only(void **state)
{
	const struct cli_sandbox none = {0};
	const char *const wanted = "{\"sandbox\":{\"profile\":\"read-only\"}}";
	assert_string_equal(sent(&none, folder_path("home"), NULL), wanted);
	const char *const hint = "(--workspace DIR makes one writable)";
	if (geteuid() == 0)
		assert_string_equal(said,
				    "read-only here: the home folder itself is no workspace, and "
				    "root's is hidden: it looks empty (--workspace DIR shows one "
				    "and makes it writable, --profile full runs as root without "
				    "protection)");
	else
		assert_string_equal(said,
				    "read-only here: the home folder itself is no workspace: what "
				    "the command writes in it vanishes with it (--workspace DIR "
				    "makes one writable)");
	const struct cli_sandbox sealed = {.home = "read-only"};
	assert_string_equal(sent(&sealed, folder_path("home"), NULL), wanted);
	assert_null(strstr(said, "vanishes"));
	assert_string_equal(sent(&none, "/", NULL), wanted);
	assert_non_null(strstr(said, "/ itself"));
	assert_null(strstr(said, "vanishes"));
	assert_non_null(strstr(said, hint));
	assert_string_equal(sent(&none, folder_path("keeper"), NULL), wanted);
	assert_non_null(strstr(said, "the keeper's own files"));
	assert_string_equal(sent(&none, folder, NULL), wanted);
	assert_int_equal(mkdir(folder_path("work/.git"), 0700), 0);
	assert_string_equal(sent(&none, folder_path("work/.git"), NULL), wanted);
	assert_non_null(strstr(said, "the .git of a repository"));
}

/* A command that was started outside of the workspace that was named runs in it, unless somebody
 * said where. */
static void runs_inside(void **state)
{
	char wanted[256];
	const char *named = folder_path("work");
	const struct cli_sandbox given = {.workspace = named};
	const struct cli_sandbox full = {.workspace = named, .profile = "full"};
	(void)snprintf(wanted, sizeof(wanted), "{\"cwd\":\"%s/work\"", folder);
	assert_non_null(strstr(sent(&given, NULL, NULL), wanted));
	assert_null(strstr(sent(&given, "/", NULL), "cwd"));
	assert_null(strstr(sent(&full, NULL, NULL), "cwd"));
	assert_int_equal(chdir(folder_path("work")), 0);
	assert_null(strstr(sent(&given, NULL, NULL), "cwd"));
	assert_int_equal(chdir("/"), 0);
}

/* Profiles that have none, a workspace that was named, and one that cannot be told. */
static void not_sent(void **state)
{
	static const char *const profiles[] = {"read-only", "restricted", "full", "privileged"};
	for (size_t i = 0; i < sizeof(profiles) / sizeof(profiles[0]); i++) {
		const struct cli_sandbox s = {.profile = profiles[i]};
		assert_string_equal(sent(&s, folder_path("work"), NULL), "{}");
		assert_string_equal(sent(&s, folder_path("home"), NULL), "{}");
	}
	const struct cli_sandbox named = {.workspace = "/x"}, none = {0},
				 own = {.profile = "build"};
	assert_string_equal(sent(&named, folder_path("home"), NULL),
			    "{\"sandbox\":{\"workspace\":\"/x\"}}");
	assert_string_equal(sent(&none, folder_path("nowhere"), NULL), "{}");
	assert_string_equal(sent(&own, folder_path("home"), NULL), "{}");
	assert_string_equal(said, "");
	/* Who insists on a workspace is told by the keeper that there is none. */
	const struct cli_sandbox insists = {.profile = "workspace-write"};
	assert_non_null(strstr(sent(&insists, folder_path("home"), NULL), "/home\"}}"));
}

/* Of an agent's own folders the keeper takes the right one. */
static void bound(void **state)
{
	const struct cli_sandbox none = {0};
	assert_int_equal(setenv("COOP_TOKEN", "coop_1_x", 1), 0);
	assert_string_equal(sent(&none, folder_path("work"), NULL), "{}");
	assert_int_equal(questions, 2);
	assert_string_equal(said, "nothing is writable here: this agent has no workspace (coop "
				  "agent set main/a --workspace DIR)");
	path = "main";
	assert_non_null(strstr(sent(&none, folder_path("work"), NULL), "/work\"}}"));
	assert_string_equal(said, "");
	path = "main/a";
	roots = "[\"/r\"]";
	assert_string_equal(sent(&none, folder_path("work"), NULL), "{}");
	assert_string_equal(sent(&none, folder_path("home"), NULL), "{}");
	assert_int_equal(setenv("COOP_TOKEN", "", 1), 0);
	assert_non_null(strstr(sent(&none, folder_path("work"), NULL), "/work\"}}"));
	assert_int_equal(questions, 0);
	assert_string_equal(sent(&none, folder_path("work"), "a"), "{}");
	assert_int_equal(questions, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(granted, set_up, folder_remove),
		cmocka_unit_test_setup_teardown(read_only, set_up, folder_remove),
		cmocka_unit_test_setup_teardown(runs_inside, set_up, folder_remove),
		cmocka_unit_test_setup_teardown(not_sent, set_up, folder_remove),
		cmocka_unit_test_setup_teardown(bound, set_up, folder_remove),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
