/* Sandbox policies as they are given: what is said is kept, in plain form, and what cannot be
 * understood is refused with its name. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "sandboxing.h"

static void protections(void **state)
{
	struct coop_achieved achieved = {.asked = COOP_PROTECT_BIT(COOP_PROTECT_FILES) |
						  COOP_PROTECT_BIT(COOP_PROTECT_PIDS)};
	struct coop_buf out = {0};
	struct coop_jsonw w = {.out = &out};

	for (unsigned i = 0; i < COOP_PROTECT_COUNT; i++)
		assert_int_equal(coop_protection_parse(coop_protection_name(i)), i);
	assert_int_equal(coop_protection_parse("file"), COOP_PROTECT_COUNT);
	assert_int_equal(coop_protection_parse(""), COOP_PROTECT_COUNT);
	coop_held_set(&achieved, COOP_PROTECT_FILES, COOP_ENFORCED, "mounts, landlock", NULL);
	coop_held_set(&achieved, COOP_PROTECT_PIDS, COOP_PARTIAL, "rlimit", "no %s", "cgroup");
	assert_false(coop_achieved_enforced(&achieved));
	coop_achieved_write(&achieved, &w, NULL);
	json_t *json = json_loadb((const char *)coop_buf_front(&out), coop_buf_size(&out), 0, NULL);
	json_t *wanted = json_of(
		"{'files':{'state':'enforced','mechanism':'mounts, landlock','reason':null},"
		"'network':{'state':'none','mechanism':null,'reason':null},"
		"'identity':{'state':'none','mechanism':null,'reason':null},"
		"'ipc':{'state':'none','mechanism':null,'reason':null},"
		"'privileges':{'state':'none','mechanism':null,'reason':null},"
		"'seccomp':{'state':'none','mechanism':null,'reason':null},"
		"'kill':{'state':'none','mechanism':null,'reason':null},"
		"'max_pids':{'state':'partial','mechanism':'rlimit','reason':'no cgroup'}}");
	assert_true(json_equal(json, wanted));
	json_decref(json);
	json_decref(wanted);
	coop_buf_clear(&out);
	coop_held_set(&achieved, COOP_PROTECT_PIDS, COOP_ENFORCED, "cgroup v2", NULL);
	assert_true(coop_achieved_enforced(&achieved));
	achieved.asked = 0;
	assert_false(coop_achieved_enforced(&achieved));
}

/* Texts that are read, and how they are written then. */
static void kept(void **state)
{
	static const struct {
		const char *given, *written;
	} cases[] = {
		{"{}", "{'sandbox':null,'limits':null}"},
		{"{'sandbox':null,'limits':null,'sandbox_profile':null}",
		 "{'sandbox':null,'limits':null}"},
		{"{'sandbox':{},'limits':{}}", "{'sandbox':null,'limits':null}"},
		{"{'sandbox':{'profile':null,'deny_read':null},'limits':{'max_pids':null}}",
		 "{'sandbox':null,'limits':null}"},
		{"{'sandbox':{'profile':'baseline','home':'cow'}}",
		 "{'sandbox':{'profile':'workspace-write','home':'cow'},'limits':null}"},
		{"{'sandbox':{'profile':'restricted','root':'minimal','network':'none'}}",
		 "{'sandbox':{'profile':'read-only','root':'minimal','network':'none'},"
		 "'limits':null}"},
		{"{'sandbox_profile':'unrestricted'}",
		 "{'sandbox':{'profile':'full'},'limits':null}"},
		{"{'sandbox_profile':'worktree','sandbox':{'workspace':'/w'}}",
		 "{'sandbox':{'profile':'workspace-write','workspace':'/w','require':[]},"
		 "'limits':null}"},
		{"{'sandbox_profile':'os_hardened'}",
		 "{'sandbox':{'profile':'workspace-write','require':['files','network','identity',"
		 "'ipc','privileges','seccomp','kill']},'limits':null}"},
		{"{'sandbox':{'workspace':'//a/./b/../c/','allow_write':['/x/','/x','~/y//z'],"
		 "'deny_write':['/x/[id]'],'deny_read':['~/','/e/*/k?y','/a/../../b'],'protect':"
		 "['./.git/hooks/','/p','~/q','a//b'],'allow_read':[]}}",
		 "{'sandbox':{'workspace':'/a/c','allow_write':['/x','~/y/z'],'deny_write':"
		 "['/x/[id]'],'deny_read':['~/','/e/*/k?y','/b'],'protect':['.git/hooks','/p',"
		 "'~/q','a/b'],'allow_read':[]},'limits':null}"},
		{"{'sandbox':{'require':['kill','memory_bytes'],'tolerate':['files','files']}}",
		 "{'sandbox':{'require':['kill','memory_bytes'],'tolerate':['files']},"
		 "'limits':null}"},
		{"{'limits':{'memory_bytes':1048576,'cpu_quota':1.5,'max_pids':4194304,"
		 "'max_cpu_secs':1,'max_open_files':4,'max_file_bytes':1,'tmp_bytes':4096}}",
		 "{'sandbox':null,'limits':{'memory_bytes':1048576,'cpu_quota':1.5,"
		 "'max_pids':4194304,'max_cpu_secs':1,'max_open_files':4,'max_file_bytes':1,"
		 "'tmp_bytes':4096}}"},
		{"{'limits':{'cpu_quota':4096}}", "{'sandbox':null,'limits':{'cpu_quota':4096}}"},
		{"{'limits':{'cpu_quota':0.001}}", "{'sandbox':null,'limits':{'cpu_quota':0.001}}"},
		{"{'limits':{'cpu_quota':2.0104}}", "{'sandbox':null,'limits':{'cpu_quota':2.01}}"},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct coop_sandbox_policy policy = policy_of(cases[i].given, NULL), copy;
		struct coop_err err;
		written(&policy, cases[i].written);
		assert_int_equal(coop_sandbox_policy_copy(&policy, &copy, &err), 0);
		coop_sandbox_policy_clear(&policy);
		written(&policy, "{'sandbox':null,'limits':null}");
		written(&copy, cases[i].written);
		coop_sandbox_policy_clear(&copy);
	}
}

static void refused(void **state)
{
	static const struct {
		const char *given, *field;
	} cases[] = {
		{"{'sandbox':[]}", "sandbox"},
		{"{'sandbox':{'profiles':'full'}}", "sandbox.profiles"},
		{"{'sandbox':{'profiles':null}}", "sandbox.profiles"},
		{"{'sandbox':{'profile':'wide'}}", "sandbox.profile"},
		{"{'sandbox':{'profile':'worktree'}}", "sandbox.profile"},
		{"{'sandbox':{'profile':''}}", "sandbox.profile"},
		{"{'sandbox':{'profile':1}}", "sandbox.profile"},
		{"{'sandbox':{'profile':'full\\u0000'}}", "sandbox.profile"},
		{"{'sandbox_profile':'full'}", "sandbox_profile"},
		{"{'sandbox_profile':'worktree','sandbox':{'profile':'full'}}", "sandbox_profile"},
		{"{'sandbox_profile':'os_hardened','sandbox':{'tolerate':['ipc']}}",
		 "sandbox.tolerate"},
		{"{'sandbox':{'network':'all'}}", "sandbox.network"},
		{"{'sandbox':{'home':true}}", "sandbox.home"},
		{"{'sandbox':{'root':'none'}}", "sandbox.root"},
		{"{'sandbox':{'workspace':'w'}}", "sandbox.workspace"},
		{"{'sandbox':{'workspace':'~/w'}}", "sandbox.workspace"},
		{"{'sandbox':{'workspace':''}}", "sandbox.workspace"},
		{"{'sandbox':{'workspace':'/'}}", "sandbox.workspace"},
		{"{'sandbox':{'workspace':'/x/..'}}", "sandbox.workspace"},
		{"{'sandbox':{'workspace':'/x\\u0000'}}", "sandbox.workspace"},
		{"{'sandbox':{'workspace':['/x']}}", "sandbox.workspace"},
		{"{'sandbox':{'allow_write':'/x'}}", "sandbox.allow_write"},
		{"{'sandbox':{'allow_write':['/x','y']}}", "sandbox.allow_write[1]"},
		{"{'sandbox':{'allow_write':['/x/*']}}", "sandbox.allow_write[0]"},
		{"{'sandbox':{'allow_write':['/']}}", "sandbox.allow_write[0]"},
		{"{'sandbox':{'allow_write':['~/../x']}}", "sandbox.allow_write[0]"},
		{"{'sandbox':{'allow_read':['']}}", "sandbox.allow_read[0]"},
		{"{'sandbox':{'deny_write':['~x']}}", "sandbox.deny_write[0]"},
		{"{'sandbox':{'deny_write':['/x?']}}", "sandbox.deny_write[0]"},
		{"{'sandbox':{'deny_read':['*.key']}}", "sandbox.deny_read[0]"},
		{"{'sandbox':{'deny_read':[null]}}", "sandbox.deny_read[0]"},
		{"{'sandbox':{'deny_read':['/a\\u0000b']}}", "sandbox.deny_read[0]"},
		{"{'sandbox':{'protect':['a','../x']}}", "sandbox.protect[1]"},
		{"{'sandbox':{'protect':['a/../b']}}", "sandbox.protect[0]"},
		{"{'sandbox':{'protect':['.']}}", "sandbox.protect[0]"},
		{"{'sandbox':{'protect':['~']}}", "sandbox.protect[0]"},
		{"{'sandbox':{'protect':['a*']}}", "sandbox.protect[0]"},
		{"{'sandbox':{'require':'files'}}", "sandbox.require"},
		{"{'sandbox':{'require':['files','sky']}}", "sandbox.require[1]"},
		{"{'sandbox':{'tolerate':[1]}}", "sandbox.tolerate[0]"},
		{"{'sandbox':{'require':['files'],'tolerate':['files']}}", "sandbox.tolerate"},
		{"{'limits':[]}", "limits"},
		{"{'limits':{'memory':1}}", "limits.memory"},
		{"{'limits':{'memory_bytes':0}}", "limits.memory_bytes"},
		{"{'limits':{'memory_bytes':'64M'}}", "limits.memory_bytes"},
		{"{'limits':{'memory_bytes':2e6}}", "limits.memory_bytes"},
		{"{'limits':{'cpu_quota':0}}", "limits.cpu_quota"},
		{"{'limits':{'cpu_quota':-1}}", "limits.cpu_quota"},
		{"{'limits':{'cpu_quota':0.0004}}", "limits.cpu_quota"},
		{"{'limits':{'cpu_quota':4096.1}}", "limits.cpu_quota"},
		{"{'limits':{'cpu_quota':1e300}}", "limits.cpu_quota"},
		{"{'limits':{'max_pids':9223372036854775807}}", "limits.max_pids"},
		{"{'limits':{'max_open_files':3}}", "limits.max_open_files"},
		{"{'limits':{'tmp_bytes':-1}}", "limits.tmp_bytes"},
	};
	struct coop_sandbox_policy policy;
	struct coop_err err;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		if (try_read(cases[i].given, NULL, &policy, &err) >= 0)
			fail_msg("taken: %s", cases[i].given);
		assert_int_equal(err.code, COOP_INVALID_INPUT);
		names_field(&err, cases[i].field, cases[i].given);
	}
}

/* What other tools have and this one has not is not taken for something else. */
static void unavailable(void **state)
{
	static const char *const cases[] = {"{'sandbox':{'network':'allowlist'}}",
					    "{'sandbox':{'allowed_domains':['a.example']}}",
					    "{'sandbox':{'allowed_domains':[]}}",
					    "{'sandbox':{'denied_domains':['b.example']}}"};
	struct coop_sandbox_policy policy;
	struct coop_err err;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_true(try_read(cases[i], NULL, &policy, &err) < 0);
		assert_int_equal(err.code, COOP_SANDBOX_UNAVAILABLE);
		assert_non_null(strstr(err.details, "\"protection\":\"network\""));
	}
}

static void sizes(void **state)
{
	struct coop_sandbox_policy policy;
	struct coop_err err;
	json_t *list = json_array(), *args = json_pack("{s:{s:o}}", "sandbox", "deny_read", list);
	char *path = calloc(1, 4200);

	assert_non_null(path);
	for (int i = 0; i < 256; i++) {
		(void)snprintf(path, 4200, "/%d", i);
		assert_int_equal(json_array_append_new(list, json_string(path)), 0);
	}
	assert_int_equal(coop_sandbox_policy_read(args, NULL, &policy, &err), 0);
	coop_sandbox_policy_clear(&policy);
	assert_int_equal(json_array_append_new(list, json_string("/x")), 0);
	assert_true(coop_sandbox_policy_read(args, NULL, &policy, &err) < 0);
	assert_int_equal(err.code, COOP_TOO_LARGE);
	assert_int_equal(json_array_clear(list), 0);
	memset(path, '/', 4095);
	path[4094] = 'x';
	assert_int_equal(json_array_append_new(list, json_string(path)), 0);
	assert_int_equal(coop_sandbox_policy_read(args, NULL, &policy, &err), 0);
	assert_string_equal(policy.deny_read[0], "/x");
	coop_sandbox_policy_clear(&policy);
	path[4095] = 'x';
	assert_int_equal(json_array_set_new(list, 0, json_string(path)), 0);
	err = (struct coop_err){0};
	assert_true(coop_sandbox_policy_read(args, NULL, &policy, &err) < 0);
	assert_int_equal(err.code, COOP_TOO_LARGE);
	assert_non_null(strstr(err.message, "sandbox.deny_read[0] has more than 4095 bytes"));
	free(path);
	json_decref(args);
}

static void own_profiles(void **state)
{
	struct coop_profiles profiles;
	struct coop_err err;
	struct coop_sandbox_policy policy;

	coop_profiles_init(&profiles);
	SET_LINES(&profiles, "build", "network", "host", "allow_write", "/cache", "deny_read",
		  "~/private", "protect_only", ".git/hooks", "memory_bytes", "4G", "require",
		  "files", "require", "kill");
	policy = policy_of("{'sandbox':{'profile':'build','workspace':'/w','home':'hidden',"
			   "'allow_write':['/x'],'protect':['Makefile'],'tolerate':['kill']},"
			   "'limits':{'max_pids':5}}",
			   &profiles);
	assert_string_equal(policy.name, "build");
	assert_true(policy.protect_replaces);
	assert_int_equal(policy.limits_asked, COOP_PROTECT_BIT(COOP_PROTECT_PIDS));
	written(&policy,
		"{'sandbox':{'profile':'workspace-write','workspace':'/w','network':'host','home':"
		"'hidden','allow_write':['/x','/cache'],'deny_read':['~/private'],'protect':"
		"['Makefile','.git/hooks'],'require':['files'],'tolerate':['kill']},"
		"'limits':{'memory_bytes':4294967296,'max_pids':5}}");
	coop_sandbox_policy_clear(&policy);

	/* An operator's grant. */
	assert_true(try_read("{'sandbox':{'profile':'privileged'}}", &profiles, &policy, &err) < 0);
	assert_int_equal(err.code, COOP_PERMISSION_DENIED);
	names_field(&err, "sandbox.profile", "privileged");
	SET_LINES(&profiles, NULL, "privileged", "yes");
	policy = policy_of("{'sandbox':{'profile':'privileged'}}", &profiles);
	assert_int_equal(policy.profile, COOP_PROFILE_FULL);
	coop_sandbox_policy_clear(&policy);
	coop_profiles_clear(&profiles);
	assert_false(profiles.privileged);
	coop_profiles_clear(&profiles);
}

/* Every allocation may fail: nothing leaks, and nobody is blamed. */
static void no_memory(void **state)
{
	struct coop_profiles profiles;
	bool done = false;

	coop_profiles_init(&profiles);
	SET_LINES(&profiles, "build", "allow_write", "/cache");
	for (int i = 1; !done && i < 100; i++) {
		struct coop_sandbox_policy policy, copy, merged;
		struct coop_err err = {0};
		char fault[32];
		json_t *args = json_of("{'sandbox':{'profile':'build','workspace':'/w',"
				       "'allow_write':['/x'],'deny_read':['/y']}}");
		(void)snprintf(fault, sizeof fault, "alloc:%d", i);
		(void)setenv("COOP_FAULT", fault, 1);
		unsigned long before = coop_mem_failures();
		coop_mem_init();
		int r = coop_sandbox_policy_read(args, &profiles, &policy, &err);
		if (r == 0) {
			r = coop_sandbox_policy_copy(&policy, &copy, &err);
			if (r == 0) {
				r = coop_sandbox_policy_merge(&profiles, NULL, 0, &copy, &merged,
							      &err);
				coop_sandbox_policy_clear(&copy);
			}
			if (r == 0)
				coop_sandbox_policy_clear(&merged);
			coop_sandbox_policy_clear(&policy);
		}
		(void)unsetenv("COOP_FAULT");
		coop_mem_init();
		done = coop_mem_failures() == before;
		assert_int_equal(r, done ? 0 : -ENOMEM);
		assert_int_equal(err.code, done ? COOP_OK : COOP_INTERNAL);
		json_decref(args);
	}
	assert_true(done);
	coop_profiles_clear(&profiles);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(protections), cmocka_unit_test(kept),
		cmocka_unit_test(refused),     cmocka_unit_test(unavailable),
		cmocka_unit_test(sizes),       cmocka_unit_test(own_profiles),
		cmocka_unit_test(no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
