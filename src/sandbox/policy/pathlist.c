#include "sandbox/policy/pathlist.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "interface/bounds.h"
#include "sandbox/policy/policy.h"

static char *refuse(const char *field, const char *what, struct coop_err *err)
{
	(void)coop_err_field(err, COOP_INVALID_INPUT, field, "%s %s", field, what);
	return NULL;
}

/* What is wrong with the text before it is taken apart; NULL: nothing. */
static const char *fault_of(enum coop_pathlist_kind kind, const char *text)
{
	bool absolute = *text == '/', home = !strncmp(text, "~/", 2);

	if (!*text)
		return "must not be empty";
	if (kind == COOP_PATHLIST_FOLDER && !absolute)
		return "must be an absolute path";
	if (kind == COOP_PATHLIST_PROTECTED && !absolute && !home && *text == '~')
		return "must be a path; ~ stands for the home folder only as ~/";
	if (kind != COOP_PATHLIST_PROTECTED && !absolute && !home)
		return "must be an absolute path, or begin with ~/";
	/* Taken literally it would be a rule that holds nothing, and nobody would see that.
	 * Brackets are common in names. */
	if ((kind == COOP_PATHLIST_PLAIN || kind == COOP_PATHLIST_PROTECTED) && strpbrk(text, "*?"))
		return "must not be a pattern; only deny_read takes patterns";
	return NULL;
}

/* Appends the parts of `text`. False where `..` would leave what the path is relative to. */
static bool append_parts(char *out, size_t used, const char *text, bool absolute)
{
	size_t base = used;

	while (*text) {
		size_t size = strcspn(text, "/");

		if (size == 2 && !memcmp(text, "..", 2)) {
			if (!absolute)
				return false;
			while (used > base && out[--used] != '/')
				;
		} else if (size && !(size == 1 && *text == '.')) {
			if (used || absolute)
				out[used++] = '/';
			memcpy(out + used, text, size);
			used += size;
		}
		text += size + (text[size] == '/');
	}
	out[used] = 0;
	return true;
}

char *coop_pathlist_plain(enum coop_pathlist_kind kind, const char *text, const char *field,
			  struct coop_err *err)
{
	bool absolute = *text == '/', home = !strncmp(text, "~/", 2);
	const char *fault = fault_of(kind, text);
	size_t size = strlen(text);

	if (fault)
		return refuse(field, fault, err);
	if (size > COOP_PATH_SIZE - 1) {
		(void)coop_err_field(err, COOP_TOO_LARGE, field, "%s has more than %u bytes", field,
				     COOP_PATH_SIZE - 1);
		return NULL;
	}
	char *plain = coop_mem_alloc(size + 2);
	if (!plain) {
		(void)coop_err_no_memory(err);
		return NULL;
	}
	if (home)
		*plain = '~';
	if (!append_parts(plain, home, text + home, absolute))
		fault = "must not have .. in it";
	else if (!*plain)
		fault = absolute ? "must not be /" : "must name something in the workspace";
	if (fault) {
		free(plain);
		return refuse(field, fault, err);
	}
	if (!strcmp(plain, "~"))
		memcpy(plain, "~/", 3);
	return plain;
}

size_t coop_pathlist_count(char *const *list)
{
	size_t count = 0;

	while (list && list[count])
		count++;
	return count;
}

void coop_pathlist_free(char **list)
{
	for (char **item = list; item && *item; item++)
		free(*item);
	free(list);
}

static bool has(char *const *list, const char *path)
{
	for (; list && *list; list++) {
		if (!strcmp(*list, path))
			return true;
	}
	return false;
}

/* Takes `path` over, also on failure. */
static int append(char ***list, char *path, const char *field, struct coop_err *err)
{
	size_t count = coop_pathlist_count(*list);

	if (has(*list, path)) {
		free(path);
		return 0;
	}
	if (count >= COOP_SANDBOX_PATHS_MAX) {
		free(path);
		return coop_err_field(err, COOP_TOO_LARGE, field, "%s: more than %u entries", field,
				      COOP_SANDBOX_PATHS_MAX);
	}
	char **grown = coop_mem_realloc(*list, (count + 2) * sizeof *grown);
	if (!grown) {
		free(path);
		return coop_err_no_memory(err);
	}
	grown[count] = path;
	grown[count + 1] = NULL;
	*list = grown;
	return 0;
}

int coop_pathlist_add(char ***list, enum coop_pathlist_kind kind, const char *text,
		      const char *field, struct coop_err *err)
{
	char *plain = coop_pathlist_plain(kind, text, field, err);

	if (!plain)
		return err->code == COOP_INTERNAL ? -ENOMEM : -EINVAL;
	return append(list, plain, field, err);
}

int coop_pathlist_give(char ***list, struct coop_err *err)
{
	if (!*list)
		*list = coop_mem_zalloc(sizeof **list);
	return *list ? 0 : coop_err_no_memory(err);
}

int coop_pathlist_join(char ***list, char *const *more, const char *field, struct coop_err *err)
{
	int r = more ? coop_pathlist_give(list, err) : 0;

	for (; r == 0 && more && *more; more++) {
		char *path = coop_mem_strdup(*more);
		r = path ? append(list, path, field, err) : coop_err_no_memory(err);
	}
	return r;
}

bool coop_pathlist_within(const char *path, const char *root)
{
	size_t size = strlen(root);

	while (size && root[size - 1] == '/')
		size--;
	return !strncmp(path, root, size) && (!path[size] || path[size] == '/');
}

bool coop_pathlist_holds(char *const *list, const char *path)
{
	for (; list && *list; list++) {
		if (coop_pathlist_within(path, *list))
			return true;
	}
	return false;
}
