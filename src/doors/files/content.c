#include "doors/files/content.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json/jsonw.h"
#include "base/mem.h"

/* Files of /proc and the like have no size, and are read at once, up to this. */
#define SIZELESS_MAX (4u << 20)

static void drop_content(struct files_talk *talk)
{
	struct files_content *content = talk->state;

	if (content->fd >= 0)
		(void)close(content->fd);
	coop_buf_clear(&content->text);
	free(content);
}

struct files_content *files_content_begin(struct files_talk *talk)
{
	struct files_content *content = coop_mem_zalloc(sizeof *content);

	if (!content)
		return NULL;
	content->fd = -1;
	talk->kind = FILES_CONTENT;
	talk->state = content;
	talk->drop = drop_content;
	return content;
}

static ssize_t read_at(int fd, uint8_t *place, size_t size, uint64_t offset)
{
	ssize_t got;

	do
		got = pread(fd, place, size, (off_t)offset);
	while (got < 0 && errno == EINTR);
	return got < 0 ? -errno : got;
}

/* Answers with `w` and a piece of the content. */
static enum files_turn send_piece(struct files_talk *talk, struct coop_jsonw *w, uint64_t offset,
				  size_t max)
{
	const struct files_content *content = talk->state;
	const size_t held = coop_buf_size(&content->text);
	COOP_AUTO_FREE uint8_t *place = NULL;
	const uint8_t *bytes = NULL;
	ssize_t size = 0;

	if (max > COOP_FILES_SLICE)
		max = COOP_FILES_SLICE;
	if (content->fd < 0 && offset < held) {
		bytes = coop_buf_front(&content->text) + offset;
		size = (ssize_t)(held - offset < max ? held - offset : max);
	} else if (content->fd >= 0 && max) {
		place = coop_mem_alloc(max);
		size = place ? read_at(content->fd, place, max, offset) : -ENOMEM;
		bytes = place;
	}
	if (size < 0) {
		coop_buf_clear(w->out);
		return files_fail(talk, (int)size, NULL);
	}
	files_send_json(talk, w, bytes, (size_t)size);
	return FILES_DONE;
}

enum files_turn files_content_first(struct files_talk *talk, struct coop_jsonw *w, uint64_t size)
{
	const bool whole = size <= COOP_FILES_SLICE;

	coop_jsonw_uint(w, "size", size);
	coop_jsonw_bool(w, "whole", whole);
	coop_jsonw_end(w);
	enum files_turn turn = send_piece(talk, w, 0, COOP_FILES_SLICE);
	return whole ? FILES_OVER : turn;
}

/* What a file without a size holds. */
static int read_sizeless(struct files_content *content)
{
	for (;;) {
		uint8_t *place = coop_buf_reserve(&content->text, 65536);
		ssize_t size =
			place ? read_at(content->fd, place, 65536, coop_buf_size(&content->text))
			      : -ENOMEM;
		if (size < 0)
			return (int)size;
		coop_buf_commit(&content->text, (size_t)size);
		if (coop_buf_size(&content->text) > SIZELESS_MAX)
			return -EFBIG;
		if (size == 0)
			break;
	}
	if (coop_buf_size(&content->text)) {
		(void)close(content->fd);
		content->fd = -1;
	}
	return 0;
}

/* Opens without waiting for anybody at the other end of what turns out to be no file. */
static int open_file(const char *path, struct files_content *content, struct stat *ret_found)
{
	int fd = files_path_open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);

	if (fd < 0)
		return fd == -ENOTDIR ? -ENOENT : fd == -ENXIO ? -EINVAL : fd;
	content->fd = fd;
	if (fstat(fd, ret_found) < 0)
		return -errno;
	if (files_entry_is_placeholder(fd, "", ret_found))
		return -ENOENT;
	if (!S_ISREG(ret_found->st_mode))
		return S_ISDIR(ret_found->st_mode) ? -EISDIR : -EINVAL;
	return ret_found->st_size ? 0 : read_sizeless(content);
}

enum files_turn files_open_read(struct files_talk *talk, struct files_request *request)
{
	struct files_content *content = files_content_begin(talk);
	struct coop_buf text = {0};
	struct coop_jsonw w = {.out = &text};
	char path[FILES_PATH_MAX];
	struct stat found;

	if (!content)
		return files_fail(talk, -ENOMEM, NULL);
	if (files_take_path(talk, request, "path", path) < 0)
		return FILES_OVER;
	int r = open_file(path, content, &found);
	if (r < 0)
		return files_fail(talk, r, path);
	if (content->fd < 0)
		found.st_size = (off_t)coop_buf_size(&content->text);
	coop_jsonw_begin(&w, NULL);
	files_entry_write(&w, "file", path, &found, -1, "", &talk->server->names);
	return files_content_first(talk, &w, (uint64_t)found.st_size);
}

enum files_turn files_read(struct files_talk *talk, struct files_request *request)
{
	const json_t *offset = json_object_get(request->json, "offset");
	const json_t *max = json_object_get(request->json, "max");
	struct coop_buf text = {0};
	struct coop_jsonw w = {.out = &text};

	if (json_integer_value(offset) < 0 || json_integer_value(max) < 0)
		return files_fail(talk, -EINVAL, "read");
	coop_jsonw_begin(&w, NULL);
	coop_jsonw_end(&w);
	return send_piece(talk, &w, (uint64_t)json_integer_value(offset),
			  max ? (size_t)json_integer_value(max) : COOP_FILES_SLICE);
}
