#include "policy/paths.h"

#include <string.h>

#include "base/text/glob.h"

/* Appends the parts of `text`; `..` takes the last one away and stops at the root, as the kernel
 * does. */
static bool append(struct coop_path *path, size_t *used, const char *text)
{
	while (*text) {
		const char *slash = strchr(text, '/');
		size_t size = slash ? (size_t)(slash - text) : strlen(text);

		if (size == 2 && text[0] == '.' && text[1] == '.') {
			while (*used && path->text[--*used] != '/')
				;
		} else if (size && !(size == 1 && *text == '.')) {
			if (*used + 1 + size + 1 > sizeof path->text)
				return false;
			path->text[(*used)++] = '/';
			memcpy(path->text + *used, text, size);
			*used += size;
		}
		text += size + (text[size] == '/');
	}
	return true;
}

bool coop_path_make(struct coop_path *ret, const char *cwd, const char *text)
{
	size_t used = 0;

	if (*text != '/' && (!cwd || !append(ret, &used, cwd)))
		return false;
	if (!append(ret, &used, text))
		return false;
	if (!used)
		ret->text[used++] = '/';
	ret->text[used] = '\0';
	return true;
}

bool coop_path_within(const char *path, const char *root)
{
	size_t size = strlen(root);

	while (size && root[size - 1] == '/')
		size--;
	return !strncmp(path, root, size) && (!path[size] || path[size] == '/');
}

const char *coop_path_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

bool coop_path_disk(const char *path)
{
	static const char *const kinds[] = {"sd",     "hd",    "vd",  "xvd",     "nvme",
					    "mmcblk", "disk/", "dm-", "mapper/", "md",
					    "nbd",    "zd",    "sr"};

	if (!strcmp(path, "/proc/sysrq-trigger"))
		return true;
	if (strncmp(path, "/dev/", 5) != 0)
		return false;
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		if (!strncmp(path + 5, kinds[i], strlen(kinds[i])))
			return true;
	}
	return false;
}

bool coop_path_system(const char *path)
{
	static const char *const folders[] = {"/bin",  "/boot",  "/dev",   "/etc",    "/home",
					      "/lib",  "/lib32", "/lib64", "/libx32", "/opt",
					      "/proc", "/root",  "/run",   "/sbin",   "/srv",
					      "/sys",  "/usr",   "/var",   "/mnt",    "/media"};

	/* They lie directly under the root, and so does what a pattern fits there. */
	if (path[0] != '/' || strchr(path + 1, '/'))
		return false;
	bool pattern = coop_glob_special(path);
	for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
		if (pattern ? coop_glob_match(path, folders[i], NULL) : !strcmp(path, folders[i]))
			return true;
	}
	return false;
}
