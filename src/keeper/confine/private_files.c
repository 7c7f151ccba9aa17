#include "keeper/confine/private_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io/paths.h"
#include "base/mem.h"
#include "keeper/confine/confine.h"
#include "keeper/confine/injections.h"
#include "keeper/core/keeper.h"
#include "keeper/host/host.h"
#include "keeper/host/views.h"
#include "keeper/process/process.h"
#include "records/secret.h"
#include "sandbox/layout/masks.h"

#define RANDOM_BYTES 16u
#define RANDOM_TEXT (2 * RANDOM_BYTES + 1)

/* A name that a later keeper of the same socket finds again. A root keeper's processes are somebody
 * else, and cannot come to what lies beside its socket. */
static int choose_dir(struct coop_keeper *keeper)
{
	char random[RANDOM_TEXT];
	uint8_t hash[COOP_HASH_SIZE];
	const char *socket = coop_place_of(keeper)->socket;
	size_t size = sizeof coop_views_of(keeper)->files_dir;
	int n;

	if (*coop_views_of(keeper)->files_dir)
		return 0;
	if (*socket && !coop_host_of(keeper)->root_keeper) {
		n = snprintf(coop_views_of(keeper)->files_dir, size, "%s.files", socket);
	} else {
		int r = *socket ? coop_hash(socket, strlen(socket), hash)
				: coop_secret_random(RANDOM_BYTES, random);
		if (r < 0)
			return r;
		for (size_t i = 0; *socket && i < RANDOM_BYTES; i++)
			(void)snprintf(random + 2 * i, 3, "%02x", hash[i]);
		bool run = coop_host_of(keeper)->root_keeper && access("/run", W_OK) == 0;
		n = snprintf(coop_views_of(keeper)->files_dir, size, "%s/coop-files-%s",
			     run ? "/run" : "/tmp", random);
	}
	if (n > 0 && (size_t)n < size - RANDOM_TEXT)
		return 0;
	coop_views_of(keeper)->files_dir[0] = 0;
	return -ENAMETOOLONG;
}

static int make_dir(const struct coop_keeper *keeper)
{
	int r = coop_paths_make_dir(coop_views_of(keeper)->files_dir);

	/* Others go through it, and see nothing of what is in it. */
	if (r == 0 && coop_host_of(keeper)->root_keeper &&
	    chmod(coop_views_of(keeper)->files_dir, 0711) < 0)
		r = -errno;
	return r;
}

static int unavailable(struct coop_err *err, const char *reason)
{
	int r = coop_err_set(err, COOP_SANDBOX_UNAVAILABLE, "sandbox: files: %s", reason);

	coop_err_detail(err, "protection", "files");
	coop_err_detail(err, "reason", reason);
	coop_err_detail_raw(err, "tolerable", "false");
	return r;
}

static int failed(struct coop_err *err, int error)
{
	int r = coop_err_set(err, COOP_SPAWN_FAILED, "the files for the process cannot be made: %s",
			     strerror(error));

	coop_err_detail(err, "step", "files");
	coop_err_detail(err, "errno", coop_err_errno_name(error));
	return r;
}

int coop_private_files_name(struct coop_process *process, struct coop_injections *injections,
			    struct coop_err *err)
{
	struct coop_keeper *keeper = process->keeper;
	struct coop_confine *confine = process->confine;
	char folder[sizeof coop_views_of(keeper)->files_dir + RANDOM_TEXT + 1], random[RANDOM_TEXT];

	if (coop_injections_fixed(injections))
		return unavailable(err, confine->policy.profile == COOP_PROFILE_FULL
						? "a file at a fixed path needs a confined "
						  "profile, and this is full"
						: "a file at a fixed path needs a mount "
						  "namespace, and there is none on this host");
	int r = choose_dir(keeper);
	/* Before any rules are made: what comes later is not among them. */
	if (r == 0)
		r = make_dir(keeper);
	if (r == 0)
		r = coop_secret_random(RANDOM_BYTES, random);
	if (r < 0)
		return failed(err, -r);
	(void)snprintf(folder, sizeof folder, "%s/%s", coop_views_of(keeper)->files_dir, random);
	confine->files = coop_mem_strdup(folder);
	if (!confine->files || coop_injections_place(injections, folder) < 0)
		return coop_err_no_memory(err);
	return 0;
}

/* Readable by its owner alone, from the first byte. */
static int write_file(int folder, const char *name, const struct coop_injection *file,
		      const struct coop_launcher_class *whose)
{
	COOP_AUTO_FD int fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0400);

	if (fd < 0)
		return -errno;
	for (size_t at = 0; at < file->size;) {
		ssize_t n = write(fd, file->bytes + at, file->size - at);
		if (n < 0 && errno != EINTR)
			return -errno;
		at += n > 0 ? (size_t)n : 0;
	}
	return whose->other_ids && fchown(fd, whose->uid, whose->gid) < 0 ? -errno : 0;
}

/* In the keeper's hands until it is whole, then given to whom the command runs as. */
static int write_all(const struct coop_process *process, const struct coop_injections *injections)
{
	const struct coop_launcher_class *whose = &process->confine->launcher;
	const char *path = process->confine->files;
	int r = mkdir(path, 0700) < 0 ? -errno : 0;
	COOP_AUTO_FD int folder =
		r < 0 ? -1 : open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (r == 0 && folder < 0)
		r = -errno;
	for (size_t i = 0; r == 0 && i < injections->count; i++)
		r = write_file(folder, injections->names[i], &injections->files[i], whose);
	if (r == 0 && whose->other_ids && fchown(folder, whose->uid, whose->gid) < 0)
		r = -errno;
	return r;
}

int coop_private_files_write(struct coop_process *process, const struct coop_injections *injections,
			     struct coop_err *err)
{
	if (!injections || !process->confine->files)
		return 0;
	int r = write_all(process, injections);
	return r < 0 ? failed(err, -r) : 0;
}

void coop_private_files_remove(struct coop_process *process)
{
	struct coop_confine *confine = process->confine;

	if (!confine->files)
		return;
	coop_paths_remove_all(confine->files);
	free(confine->files);
	confine->files = NULL;
}

struct coop_masks *coop_private_files_masks(struct coop_keeper *keeper)
{
	/* A root keeper's commands have no layer over a home. */
	if (!coop_host_of(keeper)->masks && *coop_views_of(keeper)->files_dir &&
	    *coop_place_of(keeper)->socket && !coop_host_of(keeper)->root_keeper)
		coop_host_of(keeper)->masks = coop_masks_new(coop_views_of(keeper)->files_dir);
	return coop_host_of(keeper)->masks;
}

void coop_private_files_clean(struct coop_keeper *keeper)
{
	/* One without a socket has a new name each time. */
	if (!*coop_place_of(keeper)->socket || choose_dir(keeper) < 0)
		return;
	coop_paths_remove_all(coop_views_of(keeper)->files_dir);
	/* It is there from the start, so that every view is made without it. A root keeper's lies
	 * where views are private anyway. */
	if (!coop_host_of(keeper)->root_keeper)
		(void)make_dir(keeper);
}

void coop_private_files_end(struct coop_keeper *keeper)
{
	if (*coop_views_of(keeper)->files_dir)
		coop_paths_remove_all(coop_views_of(keeper)->files_dir);
}
