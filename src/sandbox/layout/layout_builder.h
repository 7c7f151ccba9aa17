/* A layout in the making: shared by the files layout*.c, and by nothing else.
 *
 * Operations are written in the order in which they are carried out. What each does to the view is
 * noted as a zone, so that later ones know what is seen where. What holds single paths (pins,
 * read-only ones, covers) is collected as seals and written at the end, each kind sorted. The first
 * failure stays in `failed`; all functions do nothing after it, so that it is looked at once. */
#ifndef COOP_SANDBOX_LAYOUT_BUILDER_H
#define COOP_SANDBOX_LAYOUT_BUILDER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "sandbox/layout/ghosts_disk.h"
#include "sandbox/layout/layout.h"
#include "sandbox/layout/layout_path.h"
#include "sandbox/layout/mountinfo.h"
#include "sandbox/policy/credentials.h"

#define COOP_LAYOUT_TMP "/tmp"

enum coop_zone {
	COOP_ZONE_HOST,     /* the host's, read-only */
	COOP_ZONE_PRIVATE,  /* nothing of the host's, writable */
	COOP_ZONE_LAYER,    /* the host's under a private layer */
	COOP_ZONE_READABLE, /* a tree that was brought in */
	COOP_ZONE_WRITABLE, /* the same, writable on disk */
	COOP_ZONE_OWN,      /* devices and processes of its own */
};

/* From the weakest to the strongest. */
enum coop_seal_kind { COOP_SEAL_PIN, COOP_SEAL_READONLY, COOP_SEAL_COVER, COOP_SEAL_COUNT };

struct coop_zone_entry {
	char *path;
	enum coop_zone zone;
};

struct coop_seal {
	char *path;
	enum coop_seal_kind kind;
	uint32_t flags; /* enum coop_plan_op_flag */
	bool shallow;   /* hard links of what lies in it are not looked for */
	bool firm;      /* nobody writes there, without mounts neither */
};

/* What stands on disk for a name that is missing. A socket reads as an empty file inside; of all
 * zeroes it is one for a name at the end, and an empty folder for one on the way. */
struct coop_stand_in {
	bool folder;       /* at the end, too */
	bool flat;         /* on the way a socket does as well */
	bool never_folder; /* not even on a file system that has no sockets */
	/* at the end a plain file with that, which whoever reads it takes for nothing; static */
	const char *content;
};

struct coop_builder {
	const struct coop_layout_input *input;
	struct coop_layout *out;
	struct coop_err *err;
	int failed;
	bool degraded; /* no mounts: only rules */
	bool shallow;  /* for the seals that follow, as in them */
	bool firm;     /* the same */
	/* the home lies in a writable root or in a /tmp that is shared, which come first */
	bool home_later;
	struct coop_ghost_parent near; /* where placeholders of others were looked for last */
	struct coop_buf zones;         /* struct coop_zone_entry */
	struct coop_buf seals;         /* struct coop_seal */
	struct coop_buf masks; /* names hidden in the home, relative to it, each with its NUL */
	uint32_t mask_count;
	struct coop_found credentials[COOP_CREDENTIALS_MAX]; /* in the home, once looked for */
	bool looked;
	struct coop_mountinfo mounts; /* if nobody knew them */
	size_t ghost_room;
	size_t included;      /* files that settings of git name */
	size_t settings_read; /* bytes of such settings */
};

void coop_builder_clear(struct coop_builder *b);

/* Keeps the first failure. */
void coop_builder_fail(struct coop_builder *b, int status);
void coop_builder_no_memory(struct coop_builder *b);

/* Appends to the text; the offset. */
uint32_t coop_builder_text(struct coop_builder *b, const void *bytes, size_t size);
uint32_t coop_builder_string(struct coop_builder *b, const char *text);

/* Appends the operation, with path filled in (NULL: none). Nothing without mounts. */
void coop_builder_op(struct coop_builder *b, struct coop_plan_op op, const char *path);
void coop_builder_rule(struct coop_builder *b, enum coop_plan_access access, const char *path);

/* Notes that from here on path and what is below it is of that zone. */
void coop_builder_enter(struct coop_builder *b, const char *path, enum coop_zone zone);
/* What is seen at path: the last that was entered and holds it. *ret_top (may be NULL) is where
 * that begins. */
enum coop_zone coop_builder_zone(const struct coop_builder *b, const char *path,
				 const char **ret_top);
/* Whether a tree was brought in at path or below. */
bool coop_builder_holds_tree(const struct coop_builder *b, const char *path);

void coop_builder_seal(struct coop_builder *b, const char *path, enum coop_seal_kind kind,
		       uint32_t flags);
/* Whether path, or what it lies in, has a seal of that kind already. */
bool coop_builder_sealed(const struct coop_builder *b, const char *path, enum coop_seal_kind kind);
/* Sorts, drops what others make needless, writes the operations. */
void coop_builder_write_seals(struct coop_builder *b);

/* Asks for a placeholder. It, good until the next is asked for; NULL where there are none, or
 * without memory. */
struct coop_ghost *coop_builder_ghost(struct coop_builder *b, const char *path, bool folder);
/* Whether one is asked for: it was looked for, and is not there. */
bool coop_builder_missing(const struct coop_builder *b, const char *path);

/* Says why files are only partly protected. The first reason stays. */
__attribute__((format(printf, 2, 3))) void coop_builder_note(struct coop_builder *b,
							     const char *format, ...);

/* lstat, to which a placeholder is missing. 0 or -errno. */
int coop_builder_look(struct coop_builder *b, const char *path, struct stat *ret);
/* Whether a placeholder of another process stands there. */
bool coop_builder_stands(struct coop_builder *b, const char *path);

/* layout_home.c: the home folder, and the names that are hidden in it. */
void coop_layout_home(struct coop_builder *b);
/* Whether path, in the home's layer, or what it lies in is hidden there. */
bool coop_layout_masks_path(const struct coop_builder *b, const char *path);
/* Covers the credentials that are seen all the same. */
void coop_layout_cover_masks(struct coop_builder *b);

/* layout_base.c: the part that every process of a kind begins with. */
void coop_layout_base(struct coop_builder *b);
void coop_layout_pivot(struct coop_builder *b, bool early);
/* Whether the root is left only when the command's own part is there. */
bool coop_layout_pivots_late(const struct coop_builder *b);

/* layout_protect.c: deny_write and protected paths. */
void coop_layout_protect(struct coop_builder *b);

/* layout_git.c: what git reads by way of `.git` in that folder; and that it takes the folder itself
 * for no repository. */
void coop_layout_git(struct coop_builder *b, const char *root);

/* layout_include.c: what a file of git's settings includes, and what that does. */
void coop_layout_includes(struct coop_builder *b, const char *file);

/* layout_seal.c: seals path, which begins with root; that has no links. Behind it there may be
 * links and dots: all that can be written on the way becomes pinned, what is missing there is held
 * by a placeholder. */
void coop_layout_seal_in(struct coop_builder *b, const char *root, const char *path,
			 enum coop_seal_kind kind, struct coop_stand_in missing);
/* The same for root/name, read-only, where the root is known not to have its first name. */
void coop_layout_hold(struct coop_builder *b, const char *root, const char *name,
		      struct coop_stand_in missing);

/* layout_deny.c: deny_read, the keeper's own, sockets. */
void coop_layout_deny(struct coop_builder *b);
/* One path, whose links are resolved. */
void coop_layout_deny_real(struct coop_builder *b, const char *real);
/* What is mounted, read once if it is not known; empty if that cannot be. */
const struct coop_mountinfo *coop_layout_mounts(struct coop_builder *b);
/* Calls `tell` with the other paths of the same file or folder. */
void coop_layout_aliases(struct coop_builder *b, const char *real,
			 void (*tell)(void *context, const char *alias), void *context);
void coop_layout_hide_keeper(struct coop_builder *b);
/* The folder that is seen without what is in it, before trees are added. */
void coop_layout_empty(struct coop_builder *b);

/* layout_twins.c: the same files under other names. */
void coop_layout_twins(struct coop_builder *b);

/* layout_files.c: what the caller injects, and files of the system with other content. */
void coop_layout_files(struct coop_builder *b);
void coop_layout_replaced(struct coop_builder *b);

/* layout_rules.c: Landlock. */
void coop_layout_base_rules(struct coop_builder *b);
void coop_layout_rules(struct coop_builder *b);

#endif
