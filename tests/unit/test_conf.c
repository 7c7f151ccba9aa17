/* coop.conf: what is said holds, and what cannot be understood, would be cut or could be changed by
 * others is refused with its line. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "keeper/conf/conf.h"
#include "policy/policy.h"

static int parse_bytes(const char *text, size_t size, struct coop_conf *ret, struct coop_err *err)
{
	struct coop_err nothing;
	/* A copy of exactly that size, so that a read past it is seen. */
	char *copy = malloc(size ? size : 1);

	assert_non_null(copy);
	memcpy(copy, text, size);
	assert_int_equal(coop_conf_init(ret, &nothing), 0);
	int r = coop_conf_parse(copy, size, "coop.conf", ret, err);
	free(copy);
	return r;
}

static struct coop_conf parsed(const char *text)
{
	struct coop_conf conf;
	struct coop_err err = {0};

	if (parse_bytes(text, strlen(text), &conf, &err) < 0)
		fail_msg("%s: %s", text, err.message);
	return conf;
}

/* The text is refused at that line. Returns the message, which lives until the next call. */
static const char *refused_bytes(const char *text, size_t size, int line)
{
	static struct coop_err err;
	struct coop_conf conf;
	char expected[64];

	err = (struct coop_err){0};
	if (parse_bytes(text, size, &conf, &err) != -EINVAL)
		fail_msg("taken: %.200s", text);
	coop_conf_clear(&conf);
	assert_int_equal(err.code, COOP_INVALID_INPUT);
	(void)snprintf(expected, sizeof expected, "coop.conf:%d: ", line);
	if (strncmp(err.message, expected, strlen(expected)) != 0)
		fail_msg("%.200s\n-> %s", text, err.message);
	(void)snprintf(expected, sizeof expected, "\"field\":\"configuration\",\"line\":%d", line);
	assert_string_equal(err.details, expected);
	return err.message;
}

static const char *refused(const char *text, int line)
{
	return refused_bytes(text, strlen(text), line);
}

static char *policy_text(const struct coop_policy *policy)
{
	struct coop_buf out = {0};
	struct coop_jsonw w = {.out = &out};

	coop_policy_write(policy, &w, NULL);
	assert_false(w.failed);
	assert_int_equal(coop_buf_append(&out, "", 1), 0);
	char *text = strdup((const char *)coop_buf_front(&out));
	coop_buf_clear(&out);
	assert_non_null(text);
	return text;
}

static void has(const struct coop_policy *policy, const char *part)
{
	char *text = policy_text(policy);

	if (!strstr(text, part))
		fail_msg("no %s in %s", part, text);
	free(text);
}

static void defaults(void **state)
{
	static const char *const nothing[] = {"",
					      "\n",
					      "# only this\n; and this",
					      "[keeper]\n[audit]",
					      "\xef\xbb\xbf",
					      "\xef\xbb\xbf\r\n \t\r\n"};

	for (size_t i = 0; i < sizeof nothing / sizeof *nothing; i++) {
		struct coop_conf conf = parsed(nothing[i]);
		assert_int_equal(conf.settings.max_running, 256);
		assert_int_equal(conf.settings.given, 0);
		assert_true(conf.records && conf.audit);
		assert_int_equal(conf.env.inherit.count + conf.env.deny.count + conf.env.set.count,
				 0);
		assert_int_equal(conf.profiles.own_count, 0);
		assert_int_equal(conf.profiles.slots, COOP_SANDBOX_SLOTS);
		assert_true(coop_sandbox_policy_silent(&conf.profiles.defaults));
		assert_true(coop_sandbox_policy_silent(&conf.profiles.ceiling));
		has(conf.policy, "\"destructive\":\"deny\"");
		coop_conf_clear(&conf);
		assert_null(conf.policy);
	}
}

static void all_sections(void **state)
{
	struct coop_conf conf = parsed("\xef\xbb\xbf[keeper]\r\n"
				       "max_running = 7\r\n"
				       "  spool_stream_bytes=1M   \n"
				       "idle_exit_ms: 30s\n"
				       "[policy]\n"
				       "denied_commands = rm\n"
				       "denied_commands = /bin/dd\n"
				       "deny_patterns = a ; b # c\n"
				       "risk.sudo = deny\n"
				       "risk.destructive = allow\n"
				       "[records]\nenabled = no\n"
				       "[environment]\n"
				       "inherit = CI_*\ndeny = X\nset = A=b c = d\n"
				       "[audit]\nenabled=no\n"
				       "[keeper]\nmax_agents = 5");

	assert_int_equal(conf.settings.max_running, 7);
	assert_int_equal(conf.settings.spool_stream_bytes, 1 << 20);
	assert_int_equal(conf.settings.idle_exit_ms, 30000);
	assert_int_equal(conf.settings.max_agents, 5);
	assert_false(conf.records || conf.audit);
	assert_string_equal(conf.env.inherit.items[0], "CI_*");
	assert_string_equal(conf.env.set.items[0], "A=b c = d");
	has(conf.policy, "[\"rm\",\"/bin/dd\"]");
	has(conf.policy, "[\"a ; b # c\"]");
	has(conf.policy, "\"sudo\":\"deny\"");
	has(conf.policy, "\"destructive\":\"allow\"");
	has(conf.policy, "\"network_exfil\":\"deny\"");
	coop_conf_clear(&conf);
}

/* [sandbox] and [profile NAME], in any order; a section that comes again goes on. */
static void sandboxes(void **state)
{
	struct coop_conf conf = parsed("[sandbox]\n"
				       "profile = build\nnetwork = none\nhome = hidden\n"
				       "at_most = workspace-write\nat_most_network = host\n"
				       "privileged = yes\nuser = coop\nslots = 0\n"
				       "require = files\nrequire = kill\ntolerate = seccomp\n"
				       "memory_bytes = 2G\ncpu_quota = 0.25\nprotect = .ci\n"
				       "[profile build]\n"
				       "base = workspace-write\nnetwork = host\n"
				       "allow_write = /var/cache/ccache/\ndeny_read = ~/private\n"
				       "deny_read = /etc/*.key\nprotect_only =\nmax_pids = 64\n"
				       "[profile empty]\n"
				       "[profile old-tool]\nbase = full\nnew_privileges = yes\n"
				       "[profile build]\nallow_write = /x\n");
	const struct coop_profiles *profiles = &conf.profiles;
	const struct coop_sandbox_policy *build = &profiles->own[0];

	assert_string_equal(profiles->defaults.name, "build");
	assert_int_equal(profiles->defaults.network, COOP_NET_NONE);
	assert_int_equal(profiles->defaults.home, COOP_HOME_HIDDEN);
	assert_int_equal(profiles->ceiling.profile, COOP_PROFILE_WORKSPACE_WRITE);
	assert_int_equal(profiles->ceiling.network, COOP_NET_HOST);
	assert_true(profiles->privileged);
	assert_string_equal(profiles->user, "coop");
	assert_int_equal(profiles->slots, 0);
	assert_int_equal(profiles->defaults.require, COOP_PROTECT_BIT(COOP_PROTECT_FILES) |
							     COOP_PROTECT_BIT(COOP_PROTECT_KILL));
	assert_int_equal(profiles->defaults.tolerate, COOP_PROTECT_BIT(COOP_PROTECT_SECCOMP));
	assert_int_equal(profiles->defaults.limits.memory_bytes, 2LL << 30);
	assert_int_equal(profiles->defaults.limits.cpu_quota_millis, 250);
	assert_string_equal(profiles->defaults.protect[0], ".ci");
	assert_int_equal(profiles->own_count, 3);
	assert_string_equal(build->name, "build");
	assert_int_equal(build->network, COOP_NET_HOST);
	assert_string_equal(build->allow_write[0], "/var/cache/ccache");
	assert_string_equal(build->allow_write[1], "/x");
	assert_string_equal(build->deny_read[1], "/etc/*.key");
	assert_true(build->protect_replaces && build->protect && !*build->protect);
	assert_int_equal(build->limits.max_pids, 64);
	assert_int_equal(profiles->own[1].profile, COOP_PROFILE_WORKSPACE_WRITE);
	assert_true(profiles->own[2].new_privileges);
	coop_conf_clear(&conf);
}

static void refused_texts(void **state)
{
	static const struct {
		const char *text;
		int line;
	} cases[] = {
		{"max_running = 5", 1},
		{"\n\n[nothing]\n", 3},
		{"[keeper]\n[nothing]\n[keeper]\n", 2},
		{"[keeper", 1},
		{"[]\n", 1},
		{"[ keeper ]", 1},
		{"[Keeper]", 1},
		{"[keeper] max_running = 5", 1},
		{"[keeper] # why not", 1},
		{"[keeper]]", 1},
		{"\xef\xbb\xbf\xef\xbb\xbf[nothing]", 1},
		{"[keeper]\nmax_running", 2},
		{"[keeper]\nmax_running = 5\n  6\n", 3},
		{"[keeper]\nmax_running = 5 ; five\n", 2},
		{"[keeper]\nmax_running =\n", 2},
		{"[keeper]\n= 5\n", 2},
		{"[keeper]\nmax_running = 0\n", 2},
		{"[keeper]\n\n# x\nmax_running = 5\nmax_running = 5\n", 5},
		{"[keeper]\nMAX_RUNNING = 5\n", 2},
		{"[keeper]\nmax_running2 = 5\n", 2},
		{"[keeper]\nenabled = yes\n", 2},
		{"[policy]\nmax_running = 5\n", 2},
		{"[policy]\nmode = perhaps\n", 2},
		{"[policy]\nmode = enforce\nmode = enforce\n", 3},
		{"[policy]\nrisk.sudo = deny\nrisk.sudo = deny\n", 3},
		{"[policy]\nrisk.sudo = perhaps\n", 2},
		{"[policy]\nrisk.nothing = deny\n", 2},
		{"[policy]\nrisk = deny\n", 2},
		{"[policy]\ndenied_commands =\n", 2},
		{"[policy]\ndenied_command = x\n", 2},
		{"[environment]\ninherit = A B\n", 2},
		{"[environment]\ninherits = A\n", 2},
		{"[environment]\nset = A=1\nset = B=1\nset = A=2\n", 4},
		{"[records]\nenabled = true\n", 2},
		{"[records]\nenabled = yes\nenabled = yes\n", 3},
		{"[audit]\nenable = yes\n", 2},
		{"[audit]\nenabled = yes\n[records]\nenabled = no\n[audit]\nenabled = no\n", 6},
		{"[profile]\n", 1},
		{"[profile ]\n", 1},
		{"[profile  a]\n", 1},
		{"[profile a b]\n", 1},
		{"[profile full]\n", 1},
		{"[profile baseline]\n", 1},
		{"[profile worktree]\n", 1},
		{"[profile aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa]\n", 1},
		{"[sandbox a]\n", 1},
		{"[sandbox]\nprofile = gone\n", 2},
		{"\n[keeper]\n[sandbox]\n\nprofile = gone\n[profile a]\n", 5},
		{"[sandbox]\nprofile = full\nprofile = full\n", 3},
		{"[sandbox]\nprofile =\n", 2},
		{"[sandbox]\nbase = full\n", 2},
		{"[sandbox]\nprotect_only = x\n", 2},
		{"[sandbox]\nworkspace = /w\n", 2},
		{"[sandbox]\nnetwork = allowlist\n", 2},
		{"[sandbox]\nnetwork = none\nnetwork = none\n", 3},
		{"[sandbox]\nat_most = build\n[profile build]\n", 2},
		{"[sandbox]\nat_most_network = all\n", 2},
		{"[sandbox]\nat_most_root = minimal\nat_most_root = host\n", 3},
		{"[sandbox]\nat_most_home = all\n", 2},
		{"[sandbox]\nat_most_memory_bytes = 1K\n", 2},
		{"[sandbox]\nat_most_max_pids = 5\nat_most_max_pids = 5\n", 3},
		{"[sandbox]\nat_most_pids = 5\n", 2},
		{"[sandbox]\nat_most_ = 5\n", 2},
		{"[sandbox]\nprivileged = true\n", 2},
		{"[sandbox]\nprivileged = no\nprivileged = yes\n", 3},
		{"[sandbox]\nuser = root\n", 2},
		{"[sandbox]\nuser = 00\n", 2},
		{"[sandbox]\nuser =\n", 2},
		{"[sandbox]\nuser = a\nuser = a\n", 3},
		{"[sandbox]\nslots = 65\n", 2},
		{"[sandbox]\nslots = -1\n", 2},
		{"[sandbox]\nslots = 1\nslots = 1\n", 3},
		{"[sandbox]\nrequire = sky\n", 2},
		{"[sandbox]\nrequire = kill\ntolerate = kill\n", 3},
		{"[sandbox]\n[profile a]\n[sandbox]\nalways_require = kill\n\ntolerate = kill\n",
		 6},
		{"[sandbox]\nalways_require = sky\n", 2},
		{"[sandbox]\nmemory_bytes = 1K\n", 2},
		{"[sandbox]\nmemory_bytes = 1MB\n", 2},
		{"[sandbox]\nmemory_bytes = 9999999999999T\n", 2},
		{"[sandbox]\nmemory_bytes = 1M\nmemory_bytes = 1M\n", 3},
		{"[sandbox]\nmax_pids = 1K\n", 2},
		{"[sandbox]\ncpu_quota = 0\n", 2},
		{"[sandbox]\ncpu_quota = 1.\n", 2},
		{"[sandbox]\ncpu_quota = 1.0001\n", 2},
		{"[sandbox]\ncpu_quota = 99999\n", 2},
		{"[sandbox]\ncpu_quota = -1\n", 2},
		{"[sandbox]\ndeny_read = x\n", 2},
		{"[sandbox]\nallow_write = /x/*\n", 2},
		{"[sandbox]\nprotect = ../x\n", 2},
		{"[profile a]\nat_most = full\n", 2},
		{"[profile a]\nuser = x\n", 2},
		{"[profile a]\nbase = build\n", 2},
		{"[profile a]\nbase = full\nbase = full\n", 3},
		{"[profile a]\nprotect = x\nprotect_only = y\n", 3},
		{"[profile a]\nprotect_only = x\nprotect = y\n", 3},
		{"[profile a]\nnew_privileges = no\nnew_privileges = yes\n", 3},
		{"[keeper]\n[profile b]\n[profile a]\nnew_privileges = yes\n", 4},
		{"[profile a]\nat_most_root = minimal\n", 2},
		{"[profile a]\nalways_require = kill\n", 2},
		{"[profile a]\nbase = read-only\nallow_write = /x\n", 3},
		{"[profile a]\nallow_read = /x\n", 2},
		{"[profile a]\nbase = full\nnetwork = none\n", 3},
		{"[profile a]\nbase = full\nhome = hidden\n", 3},
		{"[profile a]\nbase = full\ndeny_read = /x\n", 3},
		{"[profile a]\nprotect_only = x\n[profile b]\nbase = full\n[profile a]\nbase = "
		 "full\n",
		 2},
		{"[profile a]\nbase = full\nrequire = files\n", 3},
		{"[profile a]\nrequire = files\ntolerate = files\n", 3},
		{"[keeper]\nmax_running = 5\rmax_agents = 6\n", 2},
		{"[keeper]\nmax_running = 5\f\n", 2},
		{"# \x1b[1m\n", 1},
		{"# \x7f\n", 1},
		{"# caf\xe9\n", 1},
		{"\n\xff\xfe[keeper]\n", 2},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		(void)refused(cases[i].text, cases[i].line);
}

/* Nothing is cut at a NUL, and a line that the INI library would cut is refused. */
static void refused_sizes(void **state)
{
	static const char nul[] = "[keeper]\nmax_running = 5\0"
				  "0\n";
	size_t room = COOP_CONF_LINE_MAX + 64;
	char *text = malloc(room);

	assert_non_null(strstr(refused_bytes(nul, sizeof nul - 1, 2), "control character"));
	assert_non_null(text);
	(void)snprintf(text, room, "[environment]\nset = A=");
	size_t start = strlen(text), line = COOP_CONF_LINE_MAX - strlen("set = A=");
	memset(text + start, 'x', line);
	(void)snprintf(text + start + line, room - start - line, "\nset = B=1\n");
	struct coop_conf conf = parsed(text);
	assert_int_equal(conf.env.set.count, 2);
	assert_int_equal(strlen(conf.env.set.items[0]), 2 + line);
	coop_conf_clear(&conf);
	text[start + line] = 'x';
	(void)snprintf(text + start + line + 1, room - start - line - 1, "\n");
	assert_non_null(strstr(refused(text, 2), "longer than"));
	assert_null(strstr(refused(text, 2), "xx"));
	free(text);
}

/* Values of variables are in no message. */
static void no_values(void **state)
{
	assert_null(strstr(refused("[environment]\nset = A B=hunter2", 2), "hunter2"));
	assert_null(strstr(refused("[environment]\nset = hunter2", 2), "hunter2"));
	assert_null(strstr(refused("[environment]\nset = A=x\nset = A=hunter2", 3), "hunter2"));
	assert_null(strstr(refused("[environment]\nhunter2", 2), "hunter2"));
}

struct place {
	char dir[64], path[96];
};

static int make_place(void **state)
{
	struct place *place = calloc(1, sizeof *place);

	if (!place)
		return -1;
	*state = place;
	(void)snprintf(place->dir, sizeof place->dir, "/tmp/coop-conf-XXXXXX");
	if (!mkdtemp(place->dir))
		return -1;
	(void)snprintf(place->path, sizeof place->path, "%s/coop.conf", place->dir);
	(void)unsetenv("COOP_CONF");
	return 0;
}

static int drop_place(void **state)
{
	struct place *place = *state;

	(void)unlink(place->path);
	(void)rmdir(place->path);
	(void)rmdir(place->dir);
	free(place);
	return 0;
}

static void put(const char *path, const char *text, mode_t mode)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(chmod(path, mode), 0);
}

static void loaded(void **state)
{
	static const char *const overrides[] = {"max_running=9", "max_agents=3", "max_agents=4",
						NULL};
	struct place *place = *state;
	struct coop_conf conf;
	struct coop_err err = {0};

	put(place->path, "[keeper]\nmax_running = 5\nmax_running = 6\n", 0600);
	assert_true(coop_conf_load(place->path, NULL, &conf, &err) < 0);
	assert_string_equal(err.details, "\"field\":\"configuration\",\"line\":3");

	put(place->path, "[keeper]\nmax_running = 2000\nmax_tokens = 6\n", 0644);
	assert_int_equal(coop_conf_load(place->path, NULL, &conf, &err), 0);
	assert_int_equal(conf.settings.max_running, 2000);
	assert_int_equal(conf.settings.principal_max_running, 2000);
	coop_conf_clear(&conf);
	assert_int_equal(coop_conf_load(place->path, overrides, &conf, &err), 0);
	assert_int_equal(conf.settings.max_running, 9);
	assert_int_equal(conf.settings.max_agents, 4);
	assert_int_equal(conf.settings.max_tokens, 6);
	coop_conf_clear(&conf);
	assert_int_equal(coop_conf_load(NULL, overrides, &conf, &err), 0);
	assert_int_equal(conf.settings.max_tokens, 4096);
	coop_conf_clear(&conf);
	assert_int_equal(coop_conf_load("", NULL, &conf, &err), 0);
	coop_conf_clear(&conf);

	static const char *const bad[] = {"max_agents=x", NULL};
	assert_true(coop_conf_load(place->path, bad, &conf, &err) < 0);
	assert_string_equal(err.details, "\"field\":\"max_agents\"");
}

static const char *load_fault(const char *path)
{
	static struct coop_err err;
	struct coop_conf conf = {0};

	err = (struct coop_err){0};
	assert_true(coop_conf_load(path, NULL, &conf, &err) < 0);
	assert_null(conf.policy);
	assert_string_equal(err.details, "\"field\":\"configuration\"");
	assert_non_null(strstr(err.message, path));
	return err.message;
}

static void files(void **state)
{
	struct place *place = *state;
	struct coop_conf conf;
	struct coop_err err = {0};

	/* Not there: as an empty one, unless it was named. */
	assert_int_equal(coop_conf_load(place->path, NULL, &conf, &err), 0);
	coop_conf_clear(&conf);
	(void)setenv("COOP_CONF", place->path, 1);
	assert_non_null(strstr(load_fault(place->path), "No such file"));
	(void)unsetenv("COOP_CONF");

	put(place->path, "", 0620);
	assert_non_null(strstr(load_fault(place->path), "others may write"));
	put(place->path, "", 0602);
	assert_non_null(strstr(load_fault(place->path), "others may write"));
	if (geteuid() == 0) {
		put(place->path, "", 0644);
		assert_int_equal(chown(place->path, 12345, 0), 0);
		assert_non_null(strstr(load_fault(place->path), "another user"));
	} else {
		put(place->path, "", 0);
		assert_non_null(strstr(load_fault(place->path), "Permission denied"));
	}
	assert_int_equal(unlink(place->path), 0);
	assert_int_equal(mkdir(place->path, 0700), 0);
	assert_non_null(strstr(load_fault(place->path), "not a regular file"));
	assert_int_equal(rmdir(place->path), 0);
	assert_int_equal(mkfifo(place->path, 0600), 0);
	assert_non_null(strstr(load_fault(place->path), "not a regular file"));
	assert_int_equal(unlink(place->path), 0);

	put(place->path, "", 0600);
	assert_int_equal(truncate(place->path, COOP_CONF_FILE_MAX + 1), 0);
	assert_non_null(strstr(load_fault(place->path), "1 MiB"));
	assert_int_equal(truncate(place->path, 0), 0);
	assert_int_equal(coop_conf_load(place->path, NULL, &conf, &err), 0);
	coop_conf_clear(&conf);
}

/* Every allocation may fail: then nothing leaks, and nothing is blamed on the file. */
static void no_memory(void **state)
{
	struct place *place = *state;
	bool done = false;

	put(place->path,
	    "[policy]\ndeny_patterns = x\ndenied_commands = y\n[environment]\nset = A=1\ninherit = "
	    "X\n[profile a]\nallow_write = /x\nprotect_only =\n[sandbox]\nprofile = a\nuser = "
	    "u\n",
	    0600);
	for (int i = 1; !done && i < 200; i++) {
		struct coop_conf conf = {0};
		struct coop_err err = {0};
		char fault[32];
		(void)snprintf(fault, sizeof fault, "alloc:%d", i);
		(void)setenv("COOP_FAULT", fault, 1);
		unsigned long before = coop_mem_failures();
		coop_mem_init();
		int r = coop_conf_load(place->path, NULL, &conf, &err);
		(void)unsetenv("COOP_FAULT");
		coop_mem_init();
		done = coop_mem_failures() == before;
		assert_int_equal(r, done ? 0 : -ENOMEM);
		assert_int_equal(err.code, done ? COOP_OK : COOP_INTERNAL);
		coop_conf_clear(&conf);
	}
	assert_true(done);
}

static void paths(void **state)
{
	char path[256], tiny[8];
	bool root = geteuid() == 0;

	(void)setenv("COOP_CONF", "/x/y.conf", 1);
	assert_int_equal(coop_conf_path(path, sizeof path), 0);
	assert_string_equal(path, "/x/y.conf");
	assert_int_equal(coop_conf_path(tiny, sizeof tiny), -ENAMETOOLONG);
	(void)setenv("COOP_CONF", "", 1);
	(void)setenv("XDG_CONFIG_HOME", "/xdg", 1);
	(void)setenv("HOME", "/home/u", 1);
	assert_int_equal(coop_conf_path(path, sizeof path), 0);
	assert_string_equal(path, root ? "/etc/coop/coop.conf" : "/xdg/coop/coop.conf");
	(void)setenv("XDG_CONFIG_HOME", "", 1);
	assert_int_equal(coop_conf_path(path, sizeof path), 0);
	assert_string_equal(path, root ? "/etc/coop/coop.conf" : "/home/u/.config/coop/coop.conf");
	(void)unsetenv("COOP_CONF");
	(void)unsetenv("XDG_CONFIG_HOME");
}

/* The example that is installed holds every setting, with its default, and parses with every
 * commented key in force too. */
static void example(void **state)
{
	struct coop_conf conf;
	struct coop_err err = {0};
	struct coop_settings standard;
	char *text = calloc(1, COOP_CONF_FILE_MAX), *key;
	FILE *file = fopen(COOP_CONF_EXAMPLE, "r");

	assert_non_null(file);
	assert_non_null(text);
	assert_true(fread(text, 1, COOP_CONF_FILE_MAX - 1, file) > 0);
	assert_int_equal(fclose(file), 0);
	/* "#key = value" is a key that is switched off; "# text" is text. */
	for (key = text; (key = strstr(key, "\n#")); key++) {
		if (key[2] >= 'a' && key[2] <= 'z')
			key[1] = ' ';
	}
	if (parse_bytes(text, strlen(text), &conf, &err) < 0)
		fail_msg("%s", err.message);
	coop_settings_defaults(&standard);
	standard.given = conf.settings.given;
	assert_memory_equal(&conf.settings, &standard, sizeof standard);
	assert_int_equal(conf.settings.given, (1ULL << 27) - 1);
	assert_true(conf.env.inherit.count && conf.env.deny.count && conf.env.set.count);
	assert_int_equal(conf.profiles.own_count, 2);
	assert_int_equal(conf.profiles.slots, COOP_SANDBOX_SLOTS);
	assert_true(conf.profiles.user && conf.profiles.defaults.require_set);
	coop_conf_clear(&conf);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults),
		cmocka_unit_test(all_sections),
		cmocka_unit_test(sandboxes),
		cmocka_unit_test(refused_texts),
		cmocka_unit_test(refused_sizes),
		cmocka_unit_test(no_values),
		cmocka_unit_test_setup_teardown(loaded, make_place, drop_place),
		cmocka_unit_test_setup_teardown(files, make_place, drop_place),
		cmocka_unit_test_setup_teardown(no_memory, make_place, drop_place),
		cmocka_unit_test(paths),
		cmocka_unit_test(example),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
