/* Which policy is in force: the request's over the operator's defaults, and never more than the
 * ceilings allow. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sandboxing.h"

#define CEILINGS_MAX 3u

/* The ceilings are arguments of agents, from the top down, up to the first NULL. */
static int try_merge(const struct coop_profiles *profiles, const char *const *above,
		     const char *asked, struct coop_sandbox_policy *ret, struct coop_err *err)
{
	struct coop_sandbox_policy ceilings[CEILINGS_MAX], request = policy_of(asked, profiles);
	const struct coop_sandbox_policy *list[CEILINGS_MAX];
	size_t count = 0;

	for (; count < CEILINGS_MAX && above[count]; count++) {
		ceilings[count] = policy_of(above[count], profiles);
		list[count] = &ceilings[count];
	}
	*err = (struct coop_err){0};
	int r = coop_sandbox_policy_merge(profiles, list, count, &request, ret, err);
	for (size_t i = 0; i < count; i++)
		coop_sandbox_policy_clear(&ceilings[i]);
	coop_sandbox_policy_clear(&request);
	return r;
}

struct merged {
	const char *above[CEILINGS_MAX];
	const char *asked;
	const char *sandbox; /* all of it, but `require` if it is the default */
	const char *limits;
};

static void merges(const struct coop_profiles *profiles, const struct merged *row)
{
	struct coop_sandbox_policy merged;
	struct coop_err err;
	char expected[1024];

	if (try_merge(profiles, row->above, row->asked, &merged, &err) < 0)
		fail_msg("%s: %s", row->asked, err.message);
	const char *require = strstr(row->sandbox, "'require'")
				      ? ""
				      : ",'require':['files','network','identity','privileges',"
					"'seccomp','kill']";
	(void)snprintf(expected, sizeof expected, "{'sandbox':{%s%s},'limits':%s}", row->sandbox,
		       require, row->limits ? row->limits : "null");
	/* What nobody said is looked at by itself: builtin(). */
	coop_sandbox_limits_keep(&merged.limits, ~merged.limits_builtin);
	written(&merged, expected);
	coop_sandbox_policy_clear(&merged);
}

#define MERGES(profiles, table)                                      \
	for (size_t i = 0; i < sizeof(table) / sizeof *(table); i++) \
	merges(profiles, &(table)[i])

#define USUAL "'network':'loopback','home':'cow','root':'host'"
#define NOTHING_MORE "'require':[]"

static void requests(void **state)
{
	static const struct merged table[] = {
		{{0}, "{}", "'profile':'workspace-write'," USUAL, NULL},
		{{0}, "{'sandbox':{'profile':'read-only'}}", "'profile':'read-only'," USUAL, NULL},
		{{0},
		 "{'sandbox':{'profile':'full'}}",
		 "'profile':'full','network':'host','home':'cow','root':'host'," NOTHING_MORE,
		 NULL},
		{{0},
		 "{'sandbox':{'profile':'full','workspace':'/w','network':'host',"
		 "'require':['kill']}}",
		 "'profile':'full','workspace':'/w','network':'host','home':'cow','root':'host',"
		 "'require':['kill']",
		 NULL},
		{{0},
		 "{'sandbox':{'workspace':'/w','network':'host','home':'hidden','allow_write':"
		 "['/x'],'deny_read':['/y'],'tolerate':['network','ipc']}}",
		 "'profile':'workspace-write','workspace':'/w','network':'host','home':'hidden',"
		 "'root':'host','allow_write':['/x'],'deny_read':['/y'],'require':['files',"
		 "'identity','privileges','seccomp','kill'],'tolerate':['network','ipc']",
		 NULL},
		{{0},
		 "{'sandbox_profile':'worktree'}",
		 "'profile':'workspace-write'," USUAL "," NOTHING_MORE,
		 NULL},
		{{0},
		 "{'sandbox_profile':'worktree','limits':{'max_pids':5}}",
		 "'profile':'workspace-write'," USUAL ",'require':['max_pids']",
		 "{'max_pids':5}"},
		{{0},
		 "{'sandbox':{'require':[],'tolerate':['max_pids']},'limits':{'max_pids':5}}",
		 "'profile':'workspace-write'," USUAL ",'require':[],'tolerate':['max_pids']",
		 "{'max_pids':5}"},
		/* A workspace that is only read needs no word, unless the rest is hidden. */
		{{0},
		 "{'sandbox':{'profile':'read-only','workspace':'/w'}}",
		 "'profile':'read-only'," USUAL,
		 NULL},
		{{0},
		 "{'sandbox':{'profile':'read-only','workspace':'/w','root':'minimal','allow_read':"
		 "['/r']}}",
		 "'profile':'read-only','network':'loopback','home':'cow','root':'minimal',"
		 "'allow_read':['/r','/w']",
		 NULL},
	};
	struct coop_profiles profiles;

	coop_profiles_init(&profiles);
	MERGES(&profiles, table);
	coop_profiles_clear(&profiles);
}

/* Where the request does not say, ceilings narrow without a word. */
static void ceilings(void **state)
{
	static const struct merged table[] = {
		{{"{'sandbox':{'profile':'read-only','network':'host','home':'hidden'}}"},
		 "{}",
		 "'profile':'read-only','network':'loopback','home':'hidden','root':'host'",
		 NULL},
		{{"{'sandbox':{'network':'none'}}", "{'sandbox':{'root':'minimal'}}"},
		 "{'sandbox':{'network':'none'}}",
		 "'profile':'workspace-write','network':'none','home':'cow','root':'minimal'",
		 NULL},
		{{"{'sandbox':{'deny_read':['/a'],'protect':['x']}}",
		  "{'sandbox':{'deny_read':['/b','/a'],'deny_write':['/c']}}"},
		 "{'sandbox':{'deny_read':['/d'],'protect':['y']}}",
		 "'profile':'workspace-write'," USUAL ",'deny_read':['/d','/a','/b'],"
		 "'deny_write':['/c'],'protect':['y','x']",
		 NULL},
		{{"{'limits':{'memory_bytes':4194304,'max_pids':9}}",
		  "{'limits':{'memory_bytes':8388608}}"},
		 "{'sandbox':{'tolerate':['memory_bytes']},'limits':{'max_pids':7,'cpu_quota':0.5}"
		 "}",
		 "'profile':'workspace-write'," USUAL ",'require':['files','network','identity',"
		 "'privileges','seccomp','kill','memory_bytes','cpu_quota','max_pids']",
		 "{'memory_bytes':4194304,'max_pids':7,'cpu_quota':0.5}"},
		/* What a ceiling requires cannot be tolerated away. */
		{{"{'sandbox':{'require':['files','ipc']}}"},
		 "{'sandbox_profile':'worktree','sandbox':{'tolerate':['files','kill']}}",
		 "'profile':'workspace-write'," USUAL ",'require':['files','ipc'],"
		 "'tolerate':['kill']",
		 NULL},
		/* The nearest workspace that all of them let. */
		{{"{'sandbox':{'workspace':'/w'}}", "{'sandbox':{'workspace':'/w/a'}}"},
		 "{}",
		 "'profile':'workspace-write','workspace':'/w/a'," USUAL,
		 NULL},
		{{"{'sandbox':{'workspace':'/w/a'}}", "{'sandbox':{'workspace':'/w'}}"},
		 "{}",
		 "'profile':'workspace-write','workspace':'/w/a'," USUAL,
		 NULL},
		{{"{'sandbox':{'allow_write':['/w','~/c']}}"},
		 "{'sandbox':{'workspace':'/w/b','allow_write':['~/c/d','/w']}}",
		 "'profile':'workspace-write','workspace':'/w/b','allow_write':['~/c/d','/w']"
		 "," USUAL,
		 NULL},
		{{"{'sandbox':{'profile':'full'}}"},
		 "{'sandbox':{'profile':'full'}}",
		 "'profile':'full','network':'host','home':'cow','root':'host'," NOTHING_MORE,
		 NULL},
	};
	struct coop_profiles profiles;

	coop_profiles_init(&profiles);
	MERGES(&profiles, table);
	coop_profiles_clear(&profiles);
}

static void refused(void **state)
{
	static const struct {
		const char *above[CEILINGS_MAX];
		const char *asked;
		enum coop_code code;
		const char *field;
	} table[] = {
		{{"{'sandbox':{'profile':'workspace-write'}}"},
		 "{'sandbox':{'profile':'full'}}",
		 COOP_PERMISSION_DENIED,
		 "sandbox.profile"},
		{{"{'sandbox':{'profile':'full','network':'loopback'}}"},
		 "{'sandbox_profile':'unrestricted'}",
		 COOP_PERMISSION_DENIED,
		 "sandbox.profile"},
		{{"{'sandbox':{'require':['files']}}"},
		 "{'sandbox':{'profile':'full'}}",
		 COOP_PERMISSION_DENIED,
		 "sandbox.profile"},
		{{"{}", "{'sandbox':{'network':'loopback'}}", "{}"},
		 "{'sandbox':{'network':'host'}}",
		 COOP_PERMISSION_DENIED,
		 "sandbox.network"},
		{{"{'sandbox':{'home':'read-only'}}"},
		 "{'sandbox':{'home':'cow'}}",
		 COOP_PERMISSION_DENIED,
		 "sandbox.home"},
		{{"{'sandbox':{'root':'minimal'}}"},
		 "{'sandbox':{'root':'host'}}",
		 COOP_PERMISSION_DENIED,
		 "sandbox.root"},
		{{"{'sandbox':{'workspace':'/w'}}"},
		 "{'sandbox':{'workspace':'/ww'}}",
		 COOP_PERMISSION_DENIED,
		 "sandbox.workspace"},
		{{"{'sandbox':{'allow_write':[]}}"},
		 "{'sandbox':{'workspace':'/w'}}",
		 COOP_PERMISSION_DENIED,
		 "sandbox.workspace"},
		{{"{'sandbox':{'workspace':'/w'}}"},
		 "{'sandbox':{'allow_write':['/w/x','/y']}}",
		 COOP_PERMISSION_DENIED,
		 "sandbox.allow_write"},
		{{"{'sandbox':{'root':'minimal','allow_read':['/r'],'workspace':'/w'}}"},
		 "{'sandbox':{'allow_read':['/w/x','/r/y','/s']}}",
		 COOP_PERMISSION_DENIED,
		 "sandbox.allow_read"},
		{{"{'sandbox':{'profile':'read-only'}}"},
		 "{'sandbox':{'allow_write':['/y']}}",
		 COOP_PERMISSION_DENIED,
		 "sandbox.allow_write"},
		{{"{'limits':{'cpu_quota':1.25}}"},
		 "{'limits':{'cpu_quota':1.251}}",
		 COOP_PERMISSION_DENIED,
		 "limits.cpu_quota"},
		{{0},
		 "{'sandbox':{'profile':'read-only','allow_write':['/y']}}",
		 COOP_INVALID_INPUT,
		 "sandbox.allow_write"},
		{{0},
		 "{'sandbox':{'allow_read':['/y']}}",
		 COOP_INVALID_INPUT,
		 "sandbox.allow_read"},
		{{0},
		 "{'sandbox':{'profile':'full','network':'none'}}",
		 COOP_INVALID_INPUT,
		 "sandbox.network"},
		{{0},
		 "{'sandbox':{'profile':'full','deny_read':['/x']}}",
		 COOP_INVALID_INPUT,
		 "sandbox.deny_read"},
		{{0},
		 "{'sandbox':{'profile':'full','require':['files']}}",
		 COOP_INVALID_INPUT,
		 "sandbox.require"},
		{{0},
		 "{'sandbox':{'require':['memory_bytes']}}",
		 COOP_INVALID_INPUT,
		 "sandbox.require"},
	};
	struct coop_profiles profiles;
	struct coop_sandbox_policy merged;
	struct coop_err err;

	coop_profiles_init(&profiles);
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		if (try_merge(&profiles, table[i].above, table[i].asked, &merged, &err) >= 0)
			fail_msg("taken: %s", table[i].asked);
		assert_int_equal(err.code, table[i].code);
		names_field(&err, table[i].field, table[i].asked);
	}
	coop_profiles_clear(&profiles);
}

static void defaults(void **state)
{
	static const struct merged table[] = {
		{{0},
		 "{}",
		 "'profile':'workspace-write','network':'none','home':'hidden','root':'host',"
		 "'allow_write':['/d/e'],'deny_read':['/k'],'protect':['p'],'require':['files',"
		 "'network','identity','privileges','seccomp','memory_bytes'],'tolerate':['kill']",
		 "{'memory_bytes':67108864,'cpu_quota':1.5}"},
		/* A request's own words win, but where something is forbidden. */
		{{0},
		 "{'sandbox':{'network':'host','allow_write':['/x'],'deny_read':['/y'],'require':"
		 "['kill']},'limits':{'cpu_quota':3}}",
		 "'profile':'workspace-write','network':'host','home':'hidden','root':'host',"
		 "'allow_write':['/x'],'deny_read':['/y','/k'],'protect':['p'],'require':['files',"
		 "'network','identity','privileges','seccomp','kill','cpu_quota']",
		 "{'memory_bytes':67108864,'cpu_quota':3}"},
		{{"{'sandbox':{'allow_write':['/w']},'limits':{'memory_bytes':1048576}}"},
		 "{'sandbox':{'tolerate':['files']}}",
		 "'profile':'workspace-write','network':'none','home':'hidden','root':'host',"
		 "'deny_read':['/k'],'protect':['p'],'require':['network','identity','privileges',"
		 "'seccomp','memory_bytes'],'tolerate':['files','kill']",
		 "{'memory_bytes':1048576,'cpu_quota':1.5}"},
		{{0},
		 "{'sandbox':{'profile':'full'}}",
		 "'profile':'full','network':'host','home':'cow','root':'host',"
		 "'require':['memory_bytes'],'tolerate':['kill']",
		 "{'memory_bytes':67108864,'cpu_quota':1.5}"},
	};
	struct coop_profiles profiles;

	coop_profiles_init(&profiles);
	SET_LINES(&profiles, NULL, "network", "none", "home", "hidden", "allow_write", "/d/e",
		  "deny_read", "/k", "protect", "p", "memory_bytes", "64M", "cpu_quota", "1.5",
		  "require", "files", "require", "memory_bytes", "tolerate", "kill");
	MERGES(&profiles, table);
	coop_profiles_clear(&profiles);
}

/* An own profile as what everybody gets, and one that is asked for by name. */
static void own_profiles(void **state)
{
	static const struct merged table[] = {
		{{0},
		 "{}",
		 "'profile':'read-only','network':'host','home':'read-only','root':'host',"
		 "'protect':[]",
		 "{'max_pids':3}"},
		{{0},
		 "{'sandbox':{'profile':'workspace-write'}}",
		 "'profile':'workspace-write','network':'none','home':'read-only','root':'host',"
		 "'protect':['p']",
		 NULL},
		{{"{'limits':{'max_pids':2},'sandbox':{'protect':['q']}}"},
		 "{'sandbox':{'profile':'quiet','protect':['r']}}",
		 "'profile':'read-only','network':'host','home':'read-only','root':'host',"
		 "'protect':['r','q'],'require':['files','network','identity','privileges',"
		 "'seccomp','kill','max_pids']",
		 "{'max_pids':2}"},
	};
	static const char *const above[CEILINGS_MAX] = {"{'sandbox':{'network':'loopback'}}"};
	static const char *const nobody[CEILINGS_MAX] = {0};
	struct coop_profiles profiles;
	struct coop_sandbox_policy merged;
	struct coop_err err;

	coop_profiles_init(&profiles);
	SET_LINES(&profiles, "quiet", "base", "read-only", "network", "host", "protect_only", "",
		  "max_pids", "3");
	SET_LINES(&profiles, "old", "base", "full", "new_privileges", "yes");
	SET_LINES(&profiles, NULL, "profile", "quiet", "network", "none", "home", "read-only",
		  "protect", "p");
	MERGES(&profiles, table);
	assert_true(try_merge(&profiles, above, "{'sandbox':{'profile':'quiet'}}", &merged, &err) <
		    0);
	names_field(&err, "sandbox.profile", "quiet");
	assert_non_null(strstr(err.message, "quiet has the network host"));
	assert_true(try_merge(&profiles, above, "{'sandbox':{'profile':'quiet','network':'host'}}",
			      &merged, &err) < 0);
	names_field(&err, "sandbox.network", "quiet, and asked for");
	assert_int_equal(try_merge(&profiles, nobody, "{}", &merged, &err), 0);
	assert_string_equal(merged.name, "quiet");
	assert_true(merged.protect_replaces);
	assert_int_equal(merged.limits_asked, 0);
	coop_sandbox_policy_clear(&merged);
	assert_int_equal(
		try_merge(&profiles, nobody, "{'sandbox':{'profile':'old'}}", &merged, &err), 0);
	assert_true(merged.new_privileges);
	coop_sandbox_policy_clear(&merged);
	coop_profiles_clear(&profiles);
}

static void at_most(void **state)
{
	static const char *const nobody[CEILINGS_MAX] = {0};
	struct coop_profiles profiles;
	struct coop_sandbox_policy merged;
	struct coop_err err;

	coop_profiles_init(&profiles);
	SET_LINES(&profiles, NULL, "at_most", "workspace-write", "profile", "full");
	assert_int_equal(try_merge(&profiles, nobody, "{}", &merged, &err), 0);
	assert_int_equal(merged.profile, COOP_PROFILE_WORKSPACE_WRITE);
	assert_int_equal(merged.network, COOP_NET_LOOPBACK);
	coop_sandbox_policy_clear(&merged);
	assert_true(try_merge(&profiles, nobody, "{'sandbox':{'profile':'full'}}", &merged, &err) <
		    0);
	names_field(&err, "sandbox.profile", "at_most");
	coop_profiles_clear(&profiles);

	/* `full` would have all of the network. */
	SET_LINES(&profiles, NULL, "at_most_network", "loopback");
	assert_true(try_merge(&profiles, nobody, "{'sandbox':{'network':'host'}}", &merged, &err) <
		    0);
	names_field(&err, "sandbox.network", "at_most_network");
	assert_true(try_merge(&profiles, nobody, "{'sandbox':{'profile':'full'}}", &merged, &err) <
		    0);
	names_field(&err, "sandbox.profile", "at_most_network");
	coop_profiles_clear(&profiles);
}

/* Of everything that can be said there is an operator's ceiling: what is asked for beyond it is
 * refused, what is not said is cut. */
static void operators_ceilings(void **state)
{
	static const struct merged table[] = {
		{{0},
		 "{}",
		 "'profile':'workspace-write','network':'loopback','home':'read-only','root':"
		 "'minimal','require':['files','network','identity','ipc','privileges','seccomp',"
		 "'kill','max_pids'],'tolerate':['memory_bytes']",
		 "{'memory_bytes':1048576,'max_pids':10}"},
		{{0},
		 "{'sandbox':{'home':'hidden','root':'minimal','require':[],'tolerate':['ipc',"
		 "'max_pids']},'limits':{'max_pids':9}}",
		 "'profile':'workspace-write','network':'loopback','home':'hidden','root':"
		 "'minimal','require':['ipc','max_pids']",
		 "{'memory_bytes':1048576,'max_pids':9}"},
		/* Own profiles give way, and so do agents' settings. */
		{{"{'limits':{'max_pids':20}}"},
		 "{'sandbox':{'profile':'lazy'}}",
		 "'profile':'workspace-write','network':'loopback','home':'read-only','root':"
		 "'minimal','require':['files','network','identity','ipc','privileges','seccomp',"
		 "'kill','max_pids'],'tolerate':['memory_bytes']",
		 "{'memory_bytes':1048576,'max_pids':10}"},
	};
	static const struct {
		const char *asked, *field;
	} beyond[] = {
		{"{'sandbox':{'root':'host'}}", "sandbox.root"},
		{"{'sandbox':{'home':'cow'}}", "sandbox.home"},
		{"{'limits':{'max_pids':11}}", "limits.max_pids"},
		{"{'limits':{'memory_bytes':2000000}}", "limits.memory_bytes"},
		{"{'sandbox':{'profile':'full'}}", "sandbox.profile"},
		{"{'sandbox_profile':'unrestricted'}", "sandbox.profile"},
		{"{'sandbox':{'profile':'wide'}}", "sandbox.profile"},
	};
	static const char *const nobody[CEILINGS_MAX] = {0};
	struct coop_profiles profiles;
	struct coop_sandbox_policy merged;
	struct coop_err err;

	coop_profiles_init(&profiles);
	SET_LINES(&profiles, "lazy", "tolerate", "ipc", "max_pids", "30");
	SET_LINES(&profiles, "wide", "root", "host");
	SET_LINES(&profiles, NULL, "at_most_root", "minimal", "at_most_home", "read-only",
		  "at_most_max_pids", "10", "at_most_memory_bytes", "1M", "tolerate",
		  "memory_bytes", "always_require", "ipc", "max_pids", "100", "root", "host");
	MERGES(&profiles, table);
	for (size_t i = 0; i < sizeof beyond / sizeof *beyond; i++) {
		assert_true(try_merge(&profiles, nobody, beyond[i].asked, &merged, &err) < 0);
		assert_int_equal(err.code, COOP_PERMISSION_DENIED);
		names_field(&err, beyond[i].field, beyond[i].asked);
	}
	coop_profiles_clear(&profiles);
}

/* `full` has nothing of what files and network need, but limits it has. */
static void operators_ceilings_of_full(void **state)
{
	static const char *const nobody[CEILINGS_MAX] = {0};
	struct coop_profiles profiles;
	struct coop_sandbox_policy merged;
	struct coop_err err;

	coop_profiles_init(&profiles);
	SET_LINES(&profiles, NULL, "at_most_max_pids", "10", "always_require", "max_pids");
	assert_int_equal(
		try_merge(&profiles, nobody, "{'sandbox':{'profile':'full'}}", &merged, &err), 0);
	assert_int_equal(merged.profile, COOP_PROFILE_FULL);
	assert_int_equal(merged.limits.max_pids, 10);
	assert_true(merged.insisted & COOP_PROTECT_BIT(COOP_PROTECT_PIDS));
	coop_sandbox_policy_clear(&merged);
	SET_LINES(&profiles, NULL, "always_require", "kill", "profile", "full");
	assert_int_equal(try_merge(&profiles, nobody, "{}", &merged, &err), 0);
	assert_int_equal(merged.profile, COOP_PROFILE_WORKSPACE_WRITE);
	coop_sandbox_policy_clear(&merged);
	assert_true(try_merge(&profiles, nobody, "{'sandbox':{'profile':'full'}}", &merged, &err) <
		    0);
	names_field(&err, "sandbox.profile", "always_require");
	coop_profiles_clear(&profiles);
}

/* A confined process has a number of processes that nobody had to ask for; whoever says something
 * is heard. */
static void builtin(void **state)
{
	static const struct {
		const char *above, *asked;
		int64_t pids;
		bool own; /* nobody said it */
	} table[] = {
		{NULL, "{}", 4096, true},
		{NULL, "{'sandbox':{'profile':'read-only'}}", 4096, true},
		{NULL, "{'sandbox':{'profile':'full'}}", 0, false},
		{NULL, "{'limits':{'max_pids':5000}}", 5000, false},
		{NULL, "{'limits':{'max_pids':5}}", 5, false},
		{"{'limits':{'max_pids':77}}", "{}", 77, false},
		{"{'limits':{'max_pids':9999}}", "{}", 4096, true},
	};
	struct coop_profiles profiles;
	struct coop_sandbox_policy merged;
	struct coop_err err;

	(void)state;
	coop_profiles_init(&profiles);
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		const char *const above[CEILINGS_MAX] = {table[i].above};
		assert_int_equal(try_merge(&profiles, above, table[i].asked, &merged, &err), 0);
		assert_int_equal(merged.limits.max_pids, table[i].pids);
		assert_int_equal(merged.limits_builtin,
				 table[i].own ? COOP_PROTECT_BIT(COOP_PROTECT_PIDS) : 0);
		coop_sandbox_policy_clear(&merged);
	}
	coop_profiles_clear(&profiles);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests),
		cmocka_unit_test(ceilings),
		cmocka_unit_test(refused),
		cmocka_unit_test(defaults),
		cmocka_unit_test(own_profiles),
		cmocka_unit_test(at_most),
		cmocka_unit_test(operators_ceilings),
		cmocka_unit_test(operators_ceilings_of_full),
		cmocka_unit_test(builtin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
