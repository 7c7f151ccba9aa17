#include "keeper/confine/credentials.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "keeper/conf/conf.h"
#include "keeper/conf/homes.h"
#include "keeper/confine/confine.h"
#include "keeper/core/keeper.h"
#include "keeper/host/host.h"
#include "sandbox/layout/layout.h"
#include "sandbox/layout/layout_path.h"
#include "sandbox/policy/credentials.h"

#define FILES_MAX 1024 /* of a folder, whose names are counted */

struct looking {
	const struct coop_layout *layout; /* NULL: nothing is hidden, see `why` */
	const char *why;
	struct coop_jsonw *w;
};

/* Other names of the same file: of those nothing is hidden by hiding this one. */
static uint64_t other_names(int folder, const char *name)
{
	struct stat st;

	return fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
			       st.st_nlink > 1
		       ? (uint64_t)st.st_nlink - 1
		       : 0;
}

/* Of a file, or of the files that lie in the folder. */
static uint64_t count_links(const char *path)
{
	uint64_t count = other_names(AT_FDCWD, path);
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir && fd >= 0)
		(void)close(fd);
	int left = FILES_MAX;
	for (const struct dirent *entry; dir && left-- && (entry = readdir(dir));)
		count += other_names(dirfd(dir), entry->d_name);
	if (dir)
		(void)closedir(dir);
	return count;
}

/* Whether neither the name nor what it leads to is seen; *ret_how in words. */
static bool is_hidden(const struct looking *looking, const char *path, const char **ret_how)
{
	char real[COOP_PATH_SIZE];
	bool exists;
	const char *how = looking->layout ? coop_layout_hides(looking->layout, path) : NULL;

	*ret_how = how ? how : looking->why;
	if (!how || coop_path_resolve(path, real, &exists) < 0 || !exists || !strcmp(real, path))
		return how != NULL;
	how = coop_layout_hides(looking->layout, real);
	*ret_how = how ? how : "what the link leads to can be seen";
	return how != NULL;
}

static void write_home(const struct looking *looking, const char *home)
{
	struct coop_found rows[COOP_CREDENTIALS_MAX];
	char path[COOP_PATH_SIZE];
	const char *how;

	coop_credentials_look(home, NULL, rows);
	for (uint32_t i = 0; i < coop_credentials_count; i++) {
		if (rows[i].state == COOP_FOUND_MISSING ||
		    coop_path_join(home, coop_credentials[i], path) < 0 || access(path, F_OK) < 0)
			continue;
		bool hidden = is_hidden(looking, path, &how);
		coop_jsonw_begin(looking->w, NULL);
		coop_jsonw_string(looking->w, "path", path);
		coop_jsonw_bool(looking->w, "hidden", hidden);
		coop_jsonw_string(looking->w, "reason", how);
		coop_jsonw_uint(looking->w, "hard_links", count_links(path));
		coop_jsonw_end(looking->w);
	}
}

static int lay_out(struct coop_keeper *keeper, const struct coop_confine *confine,
		   const struct coop_homes *homes, struct coop_layout *ret, struct coop_err *err)
{
	const char *others[COOP_HOMES_MAX] = {NULL};
	const struct coop_layout_input input = {
		.policy = &confine->policy,
		.host = &coop_host_of(keeper)->can,
		.root_keeper = coop_host_of(keeper)->root_keeper,
		.home = coop_homes_first(homes),
		.other_homes = others,
		.cwd = "/",
	};

	for (size_t i = 1; i < homes->count; i++)
		others[i - 1] = homes->list[i];
	return coop_layout_build(&input, ret, err);
}

void coop_credentials_write(struct coop_keeper *keeper, const struct coop_confine *confine,
			    struct coop_jsonw *w)
{
	const struct coop_sandbox_policy *defaults = &coop_conf_of(keeper)->profiles.defaults;
	struct looking looking = {.w = w, .why = "it can be seen"};
	struct coop_layout layout = {0};
	struct coop_homes homes;
	struct coop_err err;

	coop_homes_find(NULL, &coop_conf_of(keeper)->env, true, NULL, &homes);
	if (defaults->profile == COOP_PROFILE_FULL)
		looking.why = "commands are not confined by default: [sandbox] profile = full";
	else if (confine->kind == COOP_CONFINE_NONE)
		looking.why = "nothing on this host confines files";
	else if (lay_out(keeper, confine, &homes, &layout, &err) == 0)
		looking.layout = &layout;
	else
		looking.why = "the view of the files cannot be made";
	coop_jsonw_array(w, "credentials");
	for (size_t i = 0; i < homes.count; i++)
		write_home(&looking, homes.list[i]);
	coop_jsonw_array_end(w);
	coop_layout_clear(&layout);
}
