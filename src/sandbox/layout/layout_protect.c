/* What stays read-only inside writable roots. */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "sandbox/layout/layout_builder.h"
#include "sandbox/layout/layout_path.h"
#include "sandbox/layout/protected.h"

/* What the operator and requests name may be a folder by its nature, should it be missing. */
static struct coop_stand_in stand_in(const char *path)
{
	static const char *const names[] = {".git", "hooks", ".vscode", ".idea"};
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	struct coop_stand_in missing = {0};

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		missing.folder |= !strcmp(name, names[i]);
	return missing;
}

static void protect_in(struct coop_builder *b, const char *root, const char *name,
		       struct coop_stand_in missing)
{
	char path[COOP_PATH_SIZE];
	const char *top;

	if (coop_path_join(root, name, path) < 0 || !coop_path_normal(path))
		return;
	/* A tree or layer inside may have taken its place. */
	if (coop_builder_zone(b, path, &top) == COOP_ZONE_WRITABLE)
		coop_layout_seal_in(b, top, path, COOP_SEAL_READONLY, missing);
}

/* A name of the root itself that was looked for and is not there, or only as a placeholder,
 * needs no second look. False: something else decides. */
static bool hold_in(struct coop_builder *b, const char *root, const char *name,
		    const struct coop_found *found, struct coop_stand_in stand_in)
{
	char path[COOP_PATH_SIZE];
	const char *top;
	bool missing = found->state == COOP_FOUND_MISSING && found->sure &&
		       found->known == strcspn(name, "/");
	if ((!missing && (found->state != COOP_FOUND_PLAIN || strchr(name, '/'))) ||
	    coop_path_join(root, name, path) < 0 ||
	    coop_builder_zone(b, path, &top) != COOP_ZONE_WRITABLE || strcmp(top, root) != 0 ||
	    (!missing && !coop_builder_stands(b, path)))
		return false;
	coop_layout_hold(b, root, name, stand_in);
	return true;
}

static void protect_row(struct coop_builder *b, const char *root, const struct coop_protected *row,
			const struct coop_found *found)
{
	struct coop_stand_in missing = {.folder = row->folder,
					.flat = strncmp(row->name, ".git/", 5) != 0,
					.content = row->content};

	if (!row->held && found->state == COOP_FOUND_MISSING)
		return;
	if (!hold_in(b, root, row->name, found, missing))
		protect_in(b, root, row->name, missing);
}

static void protect_root(struct coop_builder *b, const char *root)
{
	const struct coop_sandbox_policy *policy = b->input->policy;
	struct coop_found found[COOP_PROTECTED_MAX];
	size_t count;

	if (!policy->protect_replaces) {
		const struct coop_protected *rows = coop_protected_look(root, found, &count);
		for (size_t i = 0; i < count; i++)
			protect_row(b, root, &rows[i], &found[i]);
		coop_layout_git(b, root);
	}
	for (char *const *p = policy->protect; p && *p; p++) {
		if (**p != '/')
			protect_in(b, root, *p, stand_in(*p));
	}
}

/* An absolute path, of `protect` or of deny_write: it matters where something can be written. */
static void protect_absolute(struct coop_builder *b, const char *given)
{
	char path[COOP_PATH_SIZE], real[COOP_PATH_SIZE];
	const char *top;
	bool exists;

	if (coop_path_expand(given, b->input->home, path) < 0 || !coop_path_normal(path))
		return;
	if (coop_builder_zone(b, path, &top) == COOP_ZONE_WRITABLE) {
		coop_layout_seal_in(b, top, path, COOP_SEAL_READONLY, stand_in(path));
		return;
	}
	if (coop_path_resolve(path, real, &exists) < 0)
		return;
	enum coop_zone zone = coop_builder_zone(b, real, &top);
	if (zone == COOP_ZONE_WRITABLE)
		coop_layout_seal_in(b, "/", path, COOP_SEAL_READONLY, stand_in(real));
	else if (zone == COOP_ZONE_LAYER && exists)
		coop_builder_seal(b, real, COOP_SEAL_READONLY, COOP_OP_OPTIONAL);
}

/* The same folder under another mount that is writable as well. Elsewhere it is read-only
 * anyway. */
static void protect_alias(void *context, const char *alias)
{
	struct coop_builder *b = context;
	const char *top;

	if (coop_path_normal(alias) && coop_builder_zone(b, alias, &top) == COOP_ZONE_WRITABLE &&
	    !coop_builder_sealed(b, alias, COOP_SEAL_READONLY))
		coop_layout_seal_in(b, top, alias, COOP_SEAL_READONLY, (struct coop_stand_in){0});
}

/* Seals grow while they are looked at: those that were there at the start count. */
static void protect_aliases(struct coop_builder *b)
{
	size_t count = coop_buf_size(&b->seals) / sizeof(struct coop_seal);
	char path[COOP_PATH_SIZE];

	for (size_t i = 0; i < count; i++) {
		const struct coop_seal *list = (const void *)coop_buf_front(&b->seals);
		/* The list may move when it grows. */
		(void)snprintf(path, sizeof path, "%s", list[i].path);
		b->firm = list[i].firm;
		if (list[i].kind == COOP_SEAL_READONLY && !(list[i].flags & COOP_OP_OPTIONAL))
			coop_layout_aliases(b, path, protect_alias, b);
	}
	b->firm = false;
}

void coop_layout_protect(struct coop_builder *b)
{
	const struct coop_sandbox_policy *policy = b->input->policy;

	for (size_t i = 0; i < b->input->writable_count; i++)
		protect_root(b, b->input->writable[i].path);
	for (char *const *p = policy->protect; p && *p; p++) {
		if (**p == '/' || !strncmp(*p, "~/", 2))
			protect_absolute(b, *p);
	}
	for (char *const *p = policy->deny_write; p && *p; p++)
		protect_absolute(b, *p);
	/* Every link on the way counts, also those that lead through a writable folder and out
	 * of it. What says how commands are confined is held without mounts, too. */
	b->firm = true;
	for (const char *const *p = b->input->sealed; p && *p; p++)
		coop_layout_seal_in(b, "/", *p, COOP_SEAL_READONLY,
				    (struct coop_stand_in){.content = ""});
	b->firm = false;
	protect_aliases(b);
}
