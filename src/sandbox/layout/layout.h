/* From a policy to the operations that make a process's view of the files: in the parent, before
 * anything is started. */
#ifndef COOP_SANDBOX_LAYOUT_H
#define COOP_SANDBOX_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "interface/err.h"
#include "sandbox/layout/ghosts.h"
#include "sandbox/layout/host.h"
#include "sandbox/layout/masks.h"
#include "sandbox/layout/mountinfo.h"
#include "sandbox/plan/plan.h"
#include "sandbox/policy/policy.h"

/* A file that the caller gives to the process. */
struct coop_found_memory;

struct coop_injection {
	const char *path;
	const uint8_t *bytes;
	size_t size;
};

/* A folder that will be seen under its own path: opened and checked once. */
struct coop_layout_root {
	const char *path; /* canonical */
	/* a detached mount with other owners (root keeper); -1: found by path, dev and ino */
	int fd;
	uint64_t dev, ino;
};

struct coop_layout_input {
	const struct coop_sandbox_policy *policy; /* merged; not `full` */
	const struct coop_host *host;
	bool root_keeper;
	const char *home; /* of the user whose command it is; canonical; NULL: none */
	/* Of the last look through that home (found.h); NULL: nothing is remembered. */
	struct coop_found_memory **credentials;
	/* further folders that he calls so: private in the same way, without a layer.
	 * NULL-terminated; NULL: none */
	const char *const *other_homes;
	const char *cwd; /* canonical */
	const char *const
		*hidden; /* the keeper's own: state, sockets, files. NULL-terminated, canonical */
	/* What no command may write, whatever the policy says: absolute, links and dots as they
	 * are. NULL-terminated; NULL: none. */
	const char *const *sealed;
	/* A folder of which a command sees nothing but the trees that lie in it; canonical; NULL:
	 * none. */
	const char *emptied;
	const struct coop_layout_root *writable; /* workspace and allow_write, outermost first */
	size_t writable_count;
	const struct coop_layout_root *readable; /* allow_read, and cwd where it would be hidden */
	size_t readable_count;
	/* What is seen as /tmp, and written to on disk; NULL: a private one. Without mounts it can
	 * be written where it lies. */
	const struct coop_layout_root *tmp;
	const struct coop_injection *injections;
	size_t injection_count;
	/* files of the system that every process of this kind sees with other content */
	const struct coop_injection *replaced;
	size_t replaced_count;
	bool terminal;
	/* canonical paths of sockets of the host that are to be out of reach; NULL-terminated,
	 * NULL: none */
	const char *const *sockets;
	/* where may be looked for names that an agent gave; NULL: anywhere */
	const struct coop_lookable *seen;
	struct coop_masks *masks; /* where names of the home may be hidden for all; NULL: nowhere */
	/* what stands for other processes counts as missing; NULL: none */
	const struct coop_ghosts *ghosts;
	/* What is mounted now, as somebody knows it; NULL: the kernel is asked, which costs as much
	 * as a tenth of a start. */
	const struct coop_mountinfo *mounts;
};

/* What was made: the pieces of a plan's body. `base` is what every process of the same kind begins
 * with and a slot does in advance: all operations and rules up to base_ops and base_rules, with the
 * text up to base_text; it never depends on the command, and two layouts of the same kind have the
 * same bytes there.
 *
 * The order is: root, private folders, devices, proc, replaced files, home, the keeper's own
 * covered (base); a /tmp that is shared, trees from the outside in, mount points that only hold a
 * name, what is read-only, what is covered, given files, the change of root where that must come
 * last. Operations on placeholders are COOP_OP_OPTIONAL: where none could be made nobody inside can
 * make the name either. Without mounts there are rules only. */
struct coop_layout {
	struct coop_buf ops;   /* struct coop_plan_op */
	struct coop_buf rules; /* struct coop_plan_rule */
	/* what their offsets point to; begins with one NUL, so that no offset is 0 */
	struct coop_buf text;
	uint32_t base_ops, base_rules, base_text;
	/* to be made before the process starts; may be taken over, see ghosts.h */
	struct coop_ghost *ghosts;
	size_t ghost_count;
	int home; /* enum coop_home as achieved */
	/* the view has nothing of the host's at the working directory: it is covered, masked, or
	 * not shown */
	bool cwd_hidden;
	char note[160]; /* why files are only partly protected; empty: they are */
	/* for the report: a credential has names elsewhere, which may be seen; empty: none is
	 * known to */
	char links[160];
	/* for the report: how many matches globs had at the start; empty: no globs */
	char globs[96];
};

/* 0 with *ret filled (to be cleared); or the error filled, naming the field. Touches nothing on
 * disk. */
int coop_layout_build(const struct coop_layout_input *input, struct coop_layout *ret,
		      struct coop_err *err);
void coop_layout_clear(struct coop_layout *layout);

/* Whether path, resolved, is one of the credentials that are hidden in that home, or lies in
 * one. `memory` as in found.h; NULL: nothing is remembered. */
bool coop_layout_is_credential(const char *home, struct coop_found_memory **memory,
			       const char *path);
/* Whether path, resolved, lies in what a minimal root shows of every host, or is it. */
bool coop_layout_is_system(const char *path);

/* Whether a view that was built so shows nothing at path, resolved or a link, and why not, in
 * words; NULL: it is seen. */
const char *coop_layout_hides(const struct coop_layout *layout, const char *path);

/* After coop_ghosts_take: a placeholder that is held must be found, so what stands on it is no
 * longer optional. */
void coop_layout_insist(struct coop_layout *layout);

#endif
