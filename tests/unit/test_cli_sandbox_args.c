/* Options of the sandbox: every one becomes the member that the keeper knows, paths are made plain,
 * and what is no value is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "doors/cli/option_rows.h"
#include "doors/cli/sandbox_args.h"
#include "folder.h"

struct settings {
	bool flag;
	struct cli_sandbox sandbox;
};

static const struct cli_option table[] = {
	{"flag", 0, CLI_FLAG, offsetof(struct settings, flag), NULL, NULL, ""},
	CLI_SANDBOX_ROWS(struct settings),
	{0},
};

static struct cli_option *options; /* completed */
static struct settings settings;
static struct coop_error error;
static char problem[CLI_OPTION_ERROR_MAX];

/* Those of the command line and of the library, without the rest of them. */
void cli_error(struct coop_error *ret, const char *code, const char *format, ...)
{
	va_list ap;
	*ret = (struct coop_error){.details = "{}"};
	(void)snprintf(ret->code, sizeof(ret->code), "%s", code);
	va_start(ap, format);
	(void)vsnprintf(ret->message, sizeof(ret->message), format, ap);
	va_end(ap);
}

bool coop_inherits(const struct coop *coop, const char *name)
{
	return false;
}

#define WORDS(...) ((char **)(const char *[]){__VA_ARGS__, NULL})

static int parse(char **words)
{
	const struct cli_option_set set = {options, &settings};
	size_t count;
	cli_options_free(options, &settings);
	memset(&settings, 0, sizeof(settings));
	return cli_options_parse(&set, 1, CLI_OPERANDS_LAST, words, &count, problem);
}

/* The arguments of the request, as text; NULL: refused. */
static char *make(char **words)
{
	const char *bad;
	char *text = NULL;
	json_t *args = json_object();
	assert_int_equal(parse(words), 0);
	assert_int_equal(cli_options_fields(options, &settings, args, &bad), 0);
	if (cli_sandbox_args(&(struct cli){.options = options, .settings = &settings},
			     &settings.sandbox, args, &error) == 0)
		text = json_dumps(args, JSON_COMPACT | JSON_SORT_KEYS);
	json_decref(args);
	return text;
}

static void assert_made(char **words, const char *wanted)
{
	char *text = make(words);
	assert_non_null(text);
	assert_string_equal(text, wanted);
	free(text);
}

static void members(void **state)
{
	assert_made(WORDS("--flag"), "{}");
	assert_made(
		WORDS("--profile", "build", "--net", "none", "--home=hidden", "--root", "minimal"),
		"{\"sandbox\":{\"home\":\"hidden\",\"network\":\"none\",\"profile\":\"build\","
		"\"root\":\"minimal\"}}");
	assert_made(WORDS("--require", "ipc", "--require", "files", "--tolerate", "kill",
			  "--protect", ".env"),
		    "{\"sandbox\":{\"protect\":[\".env\"],\"require\":[\"ipc\",\"files\"],"
		    "\"tolerate\":[\"kill\"]}}");
	assert_made(WORDS("--mem", "512M", "--cpus", "1.5", "--pids", "64", "--cpu-time", "2m",
			  "--files", "256", "--fsize", "1.5G", "--tmp-size", "64M"),
		    "{\"limits\":{\"cpu_quota\":1.5,\"max_cpu_secs\":120,\"max_file_bytes\":"
		    "1610612736,\"max_open_files\":256,\"max_pids\":64,\"memory_bytes\":536870912,"
		    "\"tmp_bytes\":67108864}}");
}

static void refused(void **state)
{
	static const struct {
		const char *name, *value, *says;
	} rows[] = {
		{"--net", "lo", "--net lo: expected one of none|loopback|allowlist|host"},
		{"--home", "ro", "--home ro"},
		{"--root", "", "host|minimal"},
		{"--mem", "much", "--mem much: expected a size"},
		{"--mem", "-1", "--mem -1: expected a size"},
		{"--mem", "99999999999T", "too large"},
		{"--cpus", "one", "--cpus one: expected a number such as"},
		{"--cpus", "1.2345", "--cpus 1.2345"},
		{"--cpus", "1.5k", "--cpus 1.5k"},
		{"--cpus", "-1", "--cpus -1"},
		{"--cpus", "99999999999999999999", "too large"},
		{"--pids", "1.5", "--pids 1.5: expected a number"},
		{"--cpu-time", "1500ms", "--cpu-time 1500ms: expected whole seconds"},
		{"--cpu-time", "soon", "--cpu-time soon"},
		{"--files", "4K", "--files 4K: expected a number"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(parse(WORDS(rows[i].name, rows[i].value)), -EINVAL);
		if (!strstr(problem, rows[i].says))
			fail_msg("\"%s\" without \"%s\"", problem, rows[i].says);
	}
}

/* 0 is no limit for the keeper, so that it must not be taken for one. */
static void zero(void **state)
{
	static const char *const names[] = {"--mem",   "--cpus",  "--pids",    "--cpu-time",
					    "--files", "--fsize", "--tmp-size"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		assert_int_equal(parse(WORDS("--flag", names[i], "0")), 0);
		const struct cli_option *found = cli_sandbox_zero(options, &settings);
		assert_non_null(found);
		assert_string_equal(found->name, names[i] + 2);
		assert_int_equal(parse(WORDS(names[i], "1")), 0);
		assert_null(cli_sandbox_zero(options, &settings));
	}
	assert_int_equal(parse(WORDS("--cpus", "0.001")), 0);
	assert_null(cli_sandbox_zero(options, &settings));
}

/* Made from where it was typed: links followed, and of what is missing only the words looked at. */
static void paths(void **state)
{
	char wanted[1024];
	assert_int_equal(mkdir(folder_path("real"), 0700), 0);
	assert_int_equal(symlink("real", folder_path("link")), 0);
	assert_int_equal(chdir(folder), 0);
	(void)snprintf(wanted, sizeof(wanted),
		       "{\"sandbox\":{\"allow_read\":[\"%s/real\"],\"allow_write\":[\"%s/real\",\"/"
		       "\"],\"names\":\"resolved\",\"workspace\":\"%s/real\"}}",
		       folder, folder, folder);
	assert_made(WORDS("--workspace", "link", "--write", "./link/../real/", "--write", "/",
			  "--read", "real"),
		    wanted);
	(void)snprintf(wanted, sizeof(wanted),
		       "{\"sandbox\":{\"deny_read\":[\"%s/real\",\"%s/*.pem\",\"%s/b\",\"~/"
		       "private\",\"/x\",\"/\"],\"deny_write\":[\"/nowhere/b\"]}}",
		       folder, folder, folder);
	assert_made(WORDS("--deny-read", "link", "--deny-read", "*.pem", "--deny-read",
			  "nowhere//./../b", "--deny-read", "~/private", "--deny-read", "/../../x",
			  "--deny-read", "/nowhere/..", "--deny-write", "/nowhere/a/../b/"),
		    wanted);
	static const char *const names[] = {"--workspace", "--write", "--read"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char says[64];
		assert_null(make(WORDS(names[i], "nowhere")));
		(void)snprintf(says, sizeof(says), "%s nowhere: No such file", names[i]);
		assert_ptr_equal(strstr(error.message, says), error.message);
		assert_null(make(WORDS(names[i], "")));
	}
	assert_int_equal(chdir("/"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(members),
		cmocka_unit_test(refused),
		cmocka_unit_test(zero),
		cmocka_unit_test_setup_teardown(paths, folder_make, folder_remove),
	};
	options = cli_options_complete(table, coop_operation_spawn.args);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	cli_options_free(options, &settings);
	free(options);
	return failed;
}
