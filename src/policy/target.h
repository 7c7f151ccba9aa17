/* A file or folder that a command would remove or change as a whole, and how much of a loss that
 * is. */
#ifndef COOP_POLICY_TARGET_H
#define COOP_POLICY_TARGET_H

#include "policy/risk.h"

struct coop_target {
	struct coop_path path;
	bool glob; /* the path still holds a pattern */
};

/* From an argument. Of `dir/` + `*` the target is dir. False: it is known only when the command
 * runs. */
bool coop_target_make(const struct coop_scene *scene, const struct coop_run *run,
		      const struct coop_word *word, struct coop_target *ret);

/* In the workspace, where the command runs, or in a folder for temporary files. */
bool coop_target_inside(const struct coop_scene *scene, const struct coop_target *target);

/* Inside, and not one of these folders itself, nor above one. */
bool coop_target_expendable(const struct coop_scene *scene, const struct coop_target *target);

/* The root, a folder of the system directly under it, or the home. */
bool coop_target_vital(const struct coop_scene *scene, const struct coop_target *target);

#endif
