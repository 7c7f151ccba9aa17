/* Uploads: a file of its own beside the target, which takes the target's place when all of it has
 * come. */
#include "doors/files/upload.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "doors/files/inflate.h"
#include "doors/files/talk.h"

struct upload {
	char path[FILES_PATH_MAX]; /* as it was asked for */
	char name[NAME_MAX + 1];   /* of the target, in `directory` */
	char draft[64];            /* of what is written, in `directory`; "": there is none */
	int directory, fd;
	struct files_inflate *inflate; /* NULL: plain bytes */
	uint64_t size, limit;
};

static void drop_upload(struct files_talk *talk)
{
	struct upload *upload = talk->state;

	if (*upload->draft)
		(void)unlinkat(upload->directory, upload->draft, 0);
	if (upload->fd >= 0)
		(void)close(upload->fd);
	if (upload->directory >= 0)
		(void)close(upload->directory);
	files_inflate_free(upload->inflate);
	free(upload);
}

/* A link is written through, as everywhere: the file that it leads to is the target. One that leads
 * nowhere is replaced itself. */
static int follow_link(const char *path, char ret_target[FILES_PATH_MAX])
{
	struct stat found;
	COOP_AUTO_FD int link = files_path_open(path, O_PATH | O_NOFOLLOW, 0);

	if (link < 0 || fstat(link, &found) < 0 || !S_ISLNK(found.st_mode))
		return 0;
	COOP_AUTO_FD int file = files_path_open(path, O_PATH, 0);
	if (file < 0)
		return file == -ENOENT ? 0 : file;
	int r = files_path_real(file, ret_target);
	return r == -ENOENT ? -EINVAL : r;
}

/* Opens the target's directory, made if need be. */
static int open_directory(struct upload *upload, const char *target)
{
	char parent[FILES_PATH_MAX];
	const char *name = NULL;

	upload->directory = files_path_open_parent(target, &name);
	if (upload->directory == -ENOENT) {
		(void)snprintf(parent, sizeof parent, "%.*s", (int)(strrchr(target, '/') - target),
			       target);
		int r = files_path_make(parent);
		if (r < 0)
			return r;
		upload->directory = files_path_open_parent(target, &name);
	}
	if (upload->directory < 0)
		return upload->directory == -EBUSY ? -EISDIR : upload->directory;
	int n = snprintf(upload->name, sizeof upload->name, "%s", name);
	return n >= (int)sizeof upload->name ? -ENAMETOOLONG : 0;
}

/* What is there now; its permissions stay. */
static int look_at_target(const struct upload *upload, bool *ret_replaces, mode_t *ret_mode)
{
	struct stat found;

	*ret_replaces = false;
	if (fstatat(upload->directory, upload->name, &found, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	*ret_replaces = true;
	*ret_mode = S_ISREG(found.st_mode) ? found.st_mode & 0777 : 0;
	if (S_ISREG(found.st_mode) || S_ISLNK(found.st_mode))
		return 0;
	return S_ISDIR(found.st_mode) ? -EISDIR : -EINVAL;
}

static int open_draft(struct files_talk *talk, struct upload *upload)
{
	bool replaces;
	mode_t mode = 0;
	int r = look_at_target(upload, &replaces, &mode);
	char draft[sizeof upload->draft];

	while (r == 0 && upload->fd < 0) {
		(void)snprintf(draft, sizeof draft, "%s%s%d-%u", FILES_DRAFT,
			       replaces ? FILES_DRAFT_REPLACES : "", (int)getpid(),
			       talk->server->uploads++);
		upload->fd = openat(upload->directory, draft,
				    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
		if (upload->fd < 0 && errno != EEXIST)
			return -errno;
	}
	if (r < 0)
		return r;
	memcpy(upload->draft, draft, sizeof draft);
	/* Where the mode cannot be kept the file still can be written. */
	if (mode)
		(void)fchmod(upload->fd, mode);
	return 0;
}

static int begin(struct files_talk *talk, const struct files_request *request,
		 struct upload *upload)
{
	const json_int_t limit = json_integer_value(json_object_get(request->json, "limit"));
	char target[FILES_PATH_MAX];

	upload->limit = limit > 0 ? (uint64_t)limit : UINT64_MAX;
	if (json_is_true(json_object_get(request->json, "gzip")) &&
	    !(upload->inflate = files_inflate_new()))
		return -ENOMEM;
	memcpy(target, upload->path, sizeof target);
	int r = follow_link(upload->path, target);
	if (r == 0)
		r = open_directory(upload, target);
	return r == 0 ? open_draft(talk, upload) : r;
}

enum files_turn files_open_write(struct files_talk *talk, struct files_request *request)
{
	struct upload *upload = coop_mem_zalloc(sizeof *upload);

	if (!upload)
		return files_fail(talk, -ENOMEM, NULL);
	upload->fd = upload->directory = -1;
	talk->kind = FILES_UPLOAD;
	talk->state = upload;
	talk->drop = drop_upload;
	if (files_take_path(talk, request, "path", upload->path) < 0)
		return FILES_OVER;
	int r = begin(talk, request, upload);
	if (r < 0)
		return files_fail(talk, r, upload->path);
	files_send_done(talk);
	return FILES_DONE;
}

static int write_all(struct upload *upload, const uint8_t *bytes, size_t size)
{
	if (size > upload->limit - upload->size)
		return -EFBIG;
	upload->size += size;
	while (size) {
		ssize_t written = write(upload->fd, bytes, size);
		if (written < 0 && errno != EINTR)
			return -errno;
		if (written > 0) {
			bytes += written;
			size -= (size_t)written;
		}
	}
	return 0;
}

/* A slice of what came, unpacked. */
static int write_packed(struct upload *upload, struct files_request *request, bool *ret_more)
{
	COOP_AUTO_FREE uint8_t *place = coop_mem_alloc(COOP_FILES_SLICE);
	size_t used = 0, made = 0;

	if (!place)
		return -ENOMEM;
	int r = files_inflate_run(upload->inflate, request->data + request->used,
				  request->size - request->used, place, COOP_FILES_SLICE, &used,
				  &made);
	if (r < 0)
		return r;
	request->used += used;
	/* A full slice: there may be more, also of input that is used up. */
	*ret_more = made == COOP_FILES_SLICE || request->used < request->size;
	return write_all(upload, place, made);
}

static int write_plain(struct upload *upload, struct files_request *request, bool *ret_more)
{
	const size_t left = request->size - request->used;
	const size_t size = left < COOP_FILES_SLICE ? left : COOP_FILES_SLICE;
	int r = write_all(upload, request->data + request->used, size);

	request->used += size;
	*ret_more = request->used < request->size;
	return r;
}

enum files_turn files_write(struct files_talk *talk, struct files_request *request)
{
	struct upload *upload = talk->state;
	bool more = false;
	int r = upload->inflate ? write_packed(upload, request, &more)
				: write_plain(upload, request, &more);

	if (r < 0)
		return files_fail(talk, r, upload->path);
	if (more)
		return FILES_AGAIN;
	files_send_done(talk);
	return FILES_DONE;
}

enum files_turn files_commit(struct files_talk *talk, struct files_request *request)
{
	struct upload *upload = talk->state;

	(void)request;
	if (upload->inflate && !files_inflate_complete(upload->inflate))
		return files_fail(talk, -EBADMSG, upload->path);
	/* Some file systems only say now that there was no room. */
	if (close(COOP_TAKE_FD(upload->fd)) < 0 && errno != EINTR)
		return files_fail(talk, -errno, upload->path);
	if (renameat(upload->directory, upload->draft, upload->directory, upload->name) < 0)
		return files_fail(talk, -errno, upload->path);
	upload->draft[0] = '\0';
	return files_send_entry(talk, upload->path);
}
