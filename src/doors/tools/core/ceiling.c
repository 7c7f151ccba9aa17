#include "doors/tools/core/ceiling.h"

json_t *coop_door_ceiling_args(const struct coop_door_ceiling *ceiling)
{
	json_t *sandbox = json_pack("{s:s*, s:s*}", "profile", ceiling->profile, "workspace",
				    ceiling->workspace);

	/* An empty list is one that was given: none is allowed. */
	if (sandbox && ceiling->no_workspace &&
	    json_object_set_new(sandbox, "allow_write", json_array()) < 0) {
		json_decref(sandbox);
		return NULL;
	}
	return sandbox ? json_pack("{s:o}", "sandbox", sandbox) : NULL;
}
