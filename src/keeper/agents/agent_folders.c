#include "keeper/agents/agent_folders.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io/log.h"
#include "base/io/paths.h"
#include "base/mem.h"
#include "keeper/agents/left_out.h"
#include "keeper/agents/trash.h"
#include "keeper/core/books.h"
#include "keeper/core/keeper.h"
#include "keeper/owner/agent.h"
#include "keeper/owner/agent_folder.h"
#include "records/secret.h"

#define HALF_BYTES 8u /* of a mark: so many random ones, so many that prove them */
#define HALF_TEXT (2 * HALF_BYTES)
#define NUMBER_MAX 20u /* digits of an agent's number */
#define HEX "0123456789abcdef"

int coop_agent_folder_discard(const struct coop_agent *agent, struct coop_trash *trash)
{
	const char *root = coop_agent_folder(agent);

	if (!root)
		return 0;
	COOP_AUTO_FREE char *whole = coop_agent_folder_beside(root, "");
	return whole ? coop_trash_add(trash, whole) : -ENOMEM;
}

/* What proves the random half. 0 or -errno. */
static int prove(const struct coop_keeper *keeper, const char *half, char ret[HALF_TEXT + 1])
{
	uint8_t hash[COOP_HASH_SIZE];
	char text[COOP_HASH_TEXT];
	int r = coop_secret_hash(coop_books_of(keeper)->secret, "folder", half, HALF_TEXT, hash);

	if (r < 0)
		return r;
	coop_hash_format(hash, text);
	memcpy(ret, text, HALF_TEXT);
	ret[HALF_TEXT] = 0;
	return 0;
}

/* Half of it is random, and the other half proves by the key that it is this keeper's: several may
 * share a data folder. */
static int make_mark(const struct coop_keeper *keeper, char ret[COOP_AGENT_FOLDER_MARK])
{
	int r = coop_secret_random(HALF_BYTES, ret);

	return r < 0 ? r : prove(keeper, ret, ret + HALF_TEXT);
}

static size_t root_size(const struct coop_agent_settings *settings)
{
	return strlen(settings->extras.folder_in) + NUMBER_MAX + COOP_AGENT_FOLDER_MARK + 3 +
	       strlen(COOP_AGENT_FOLDER_WORK);
}

/* Room for the whole path. 0 or -ENOMEM. */
static int make_root(struct coop_agent_settings *settings)
{
	char **roots = coop_mem_zalloc(2 * sizeof *roots);

	if (!roots || !(roots[0] = coop_mem_zalloc(root_size(settings)))) {
		free(roots);
		return -ENOMEM;
	}
	settings->workspace = roots;
	return 0;
}

int coop_agent_folder_choose(struct coop_keeper *keeper, struct coop_agent_settings *settings,
			     struct coop_err *err)
{
	struct coop_agent_extras *extras = &settings->extras;
	char why[512];

	if (settings->workspace)
		return coop_err_field(err, COOP_INVALID_INPUT, "folder",
				      "folder does not go with workspace: it is the workspace");
	if (!*coop_place_of(keeper)->data_dir)
		return coop_err_field(err, COOP_INVALID_INPUT, "folder",
				      "folder is not to be had of a private keeper");
	int r = coop_keeper_settle_data(keeper, true);
	if (r < 0) {
		coop_paths_explain_dir(coop_place_of(keeper)->data_dir, r, why, sizeof why);
		return coop_err_set(err, COOP_UNAVAILABLE, "the data folder cannot be used: %s",
				    why);
	}
	if (make_mark(keeper, extras->folder_mark) < 0 ||
	    !(extras->folder_in = coop_mem_strdup(coop_place_of(keeper)->data_dir)) ||
	    make_root(settings) < 0) {
		free(extras->folder_in);
		extras->folder_in = NULL;
		return coop_err_no_memory(err);
	}
	return 0;
}

void coop_agent_folder_name(struct coop_agent_settings *settings, int64_t id)
{
	const struct coop_agent_extras *extras = &settings->extras;

	(void)snprintf(settings->workspace[0], root_size(settings),
		       "%s/%lld-%s" COOP_AGENT_FOLDER_WORK, extras->folder_in, (long long)id,
		       extras->folder_mark);
}

/* All or nothing: what was made is taken back, as nobody would know of it. */
int coop_agent_folder_make(const struct coop_agent_settings *settings)
{
	const char *root = settings->workspace[0];
	COOP_AUTO_FREE char *whole = coop_agent_folder_beside(root, "");
	COOP_AUTO_FREE char *tmp = coop_agent_folder_beside(root, COOP_AGENT_FOLDER_TMP);

	if (!whole || !tmp)
		return -ENOMEM;
	if (mkdir(whole, 0700) < 0)
		return -errno;
	int r = mkdir(root, 0700) < 0 || mkdir(tmp, 0700) < 0 ? -errno : 0;
	if (r < 0) {
		(void)rmdir(root);
		(void)rmdir(whole);
	}
	return r;
}

/* <number>-<mark>, and maybe that it is on its way out. */
static bool of_our_making(const struct coop_keeper *keeper, const char *name)
{
	size_t digits = strspn(name, "0123456789");
	const char *mark = name + digits + 1;
	char proof[HALF_TEXT + 1];

	if (!digits || digits > NUMBER_MAX || name[digits] != '-' ||
	    strspn(mark, HEX) != COOP_AGENT_FOLDER_MARK - 1)
		return false;
	const char *rest = mark + COOP_AGENT_FOLDER_MARK - 1;
	if (*rest && strcmp(rest, COOP_AGENT_FOLDER_GONE) != 0)
		return false;
	return prove(keeper, mark, proof) == 0 && !memcmp(proof, mark + HALF_TEXT, HALF_TEXT);
}

int coop_agent_folder_restore(struct coop_keeper *keeper, struct coop_agent_settings *settings,
			      int64_t id, struct coop_err *err)
{
	const struct coop_agent_extras *extras = &settings->extras;
	char name[NUMBER_MAX + COOP_AGENT_FOLDER_MARK + 2];

	if (!extras->folder_in)
		return 0;
	(void)snprintf(name, sizeof name, "%lld-%s", (long long)id, extras->folder_mark);
	if (coop_keeper_settle_data(keeper, true) < 0 ||
	    strcmp(extras->folder_in, coop_place_of(keeper)->data_dir) != 0)
		return coop_err_set(err, COOP_INVALID_INPUT,
				    "its folder lies in %.200s, and the data folder is %.200s",
				    extras->folder_in, coop_place_of(keeper)->data_dir);
	if (!of_our_making(keeper, name))
		return coop_err_set(err, COOP_INVALID_INPUT,
				    "the mark of its folder is not of this keeper's making");
	int r = make_root(settings);
	if (r == 0)
		coop_agent_folder_name(settings, id);
	return r;
}

static bool holds(const char *path, const char *root)
{
	size_t size = strlen(path);

	return root && !strncmp(root, path, size) && !strcmp(root + size, COOP_AGENT_FOLDER_WORK);
}

/* Whose it is decides the database alone: one without an agent is left over. */
static bool has_agent(const struct coop_keeper *keeper, const char *path, int64_t id)
{
	if (coop_left_out_has(keeper, id))
		return true;
	COOP_LIST_EACH(coop_agents_principals(keeper), link)
	{
		struct coop_agent *first =
			COOP_LIST_ITEM(link, struct coop_principal, in_keeper)->first;
		for (struct coop_agent *agent = NULL;
		     first && (agent = coop_agent_next(first, agent));) {
			if (holds(path, coop_agent_folder(agent)))
				return true;
		}
	}
	return false;
}

/* One entry of the data folder. */
static void sweep_one(struct coop_keeper *keeper, int fd, const char *name,
		      struct coop_trash *trash)
{
	char path[COOP_PATHS_MAX + 300];
	struct stat st;

	(void)snprintf(path, sizeof path, "%s/%s", coop_place_of(keeper)->data_dir, name);
	if (!of_our_making(keeper, name) || fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    !S_ISDIR(st.st_mode) || st.st_uid != geteuid() ||
	    has_agent(keeper, path, strtoll(name, NULL, 10)))
		return;
	coop_log(COOP_LOG_INFO, "a folder without an agent is deleted path=%s", path);
	(void)coop_trash_add(trash, path); /* without memory the next keeper does it */
}

void coop_agent_folders_sweep(struct coop_keeper *keeper)
{
	struct coop_trash *trash;
	const struct dirent *entry;

	/* It is made now: what a sandbox hides must be there when it starts, and folders in it come
	 * later. */
	if (!*coop_place_of(keeper)->data_dir || coop_keeper_settle_data(keeper, true) < 0 ||
	    !(trash = coop_trash_new()))
		return;
	DIR *data = opendir(coop_place_of(keeper)->data_dir);
	while (data && (entry = readdir(data)))
		sweep_one(keeper, dirfd(data), entry->d_name, trash);
	if (data)
		(void)closedir(data);
	coop_trash_empty(keeper, trash);
}
