#include "keeper/store/told.h"

#include "keeper/confine/confine.h"
#include "keeper/confine/parks.h"
#include "keeper/process/process.h"
#include "sandbox/policy/policy.h"
#include "sandbox/policy/protection.h"

void coop_confine_write(const struct coop_process *process, struct coop_jsonw *w, const char *name)
{
	static const char *const kinds[] = {"none", "landlock", "namespaces"};
	const struct coop_confine *confine = process->confine;

	if (!coop_confine_profile(process)) {
		coop_jsonw_raw(w, name, "{\"kind\":\"none\",\"enforced\":false}");
		return;
	}
	const struct coop_sandbox_policy *policy = &confine->policy;
	coop_jsonw_begin(w, name);
	coop_jsonw_string(w, "profile", coop_confine_profile(process));
	coop_jsonw_string(w, "kind", kinds[confine->kind]);
	coop_jsonw_bool(w, "enforced",
			policy->profile != COOP_PROFILE_FULL &&
				coop_achieved_enforced(confine->achieved));
	coop_jsonw_string(w, "workspace", policy->workspace);
	coop_jsonw_string(w, "network", coop_network_name((enum coop_network)policy->network));
	coop_jsonw_string(w, "home", coop_home_name((enum coop_home)confine->home));
	coop_jsonw_string(w, "root", coop_root_name((enum coop_root)policy->root));
	if (confine->launcher.other_ids)
		coop_jsonw_uint(w, "user", confine->launcher.uid);
	else
		coop_jsonw_null(w, "user");
	coop_jsonw_raw(w, "asked", confine->asked ? confine->asked : "{}");
	coop_jsonw_array(w, "require");
	for (int i = 0; i < COOP_PROTECT_COUNT; i++) {
		if (policy->require & COOP_PROTECT_BIT(i))
			coop_jsonw_string(w, NULL, coop_protection_name((enum coop_protection)i));
	}
	coop_jsonw_array_end(w);
	coop_achieved_write(confine->achieved, w, "protections");
	coop_parks_write(process, w, "agent_limits");
	if (*confine->globs)
		coop_jsonw_string(w, "globs", confine->globs);
	if (*confine->links)
		coop_jsonw_string(w, "hard_links", confine->links);
	coop_jsonw_end(w);
}
