/* Lists a directory, and those below it to a depth, as the text {"entries":[E…]}, sorted by
 * path. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json/jsonw.h"
#include "base/mem.h"
#include "doors/files/content.h"

/* A directory whose names are still to be read. */
struct place {
	struct place *next;
	unsigned depth; /* 1: the one that was asked for */
	char path[];
};

/* One entry: its path (NUL-ended) and its JSON, both in the listing's text. */
struct row {
	uint32_t path, json, size;
};

struct listing {
	unsigned depth;
	struct place *places; /* the first one is being read */
	DIR *dir;
	struct coop_buf text;
	struct row *rows;
	size_t count, room;
};

static void drop_listing(struct files_talk *talk)
{
	struct listing *listing = talk->state;

	while (listing->places) {
		struct place *place = listing->places;
		listing->places = place->next;
		free(place);
	}
	if (listing->dir)
		(void)closedir(listing->dir);
	coop_buf_clear(&listing->text);
	free(listing->rows);
	free(listing);
}

static int add_place(struct listing *listing, const char *path, unsigned depth)
{
	const size_t size = strlen(path) + 1;
	struct place *place = coop_mem_alloc(sizeof *place + size);

	if (!place)
		return -ENOMEM;
	place->depth = depth;
	memcpy(place->path, path, size);
	/* Behind the first, which may be in use. */
	struct place **at = listing->places ? &listing->places->next : &listing->places;
	place->next = *at;
	*at = place;
	return 0;
}

static int add_row(struct listing *listing, const struct row *row)
{
	if (listing->count == listing->room) {
		size_t room = listing->room ? listing->room * 2 : 64;
		struct row *grown = coop_mem_realloc(listing->rows, room * sizeof *grown);
		if (!grown)
			return -ENOMEM;
		listing->rows = grown;
		listing->room = room;
	}
	listing->rows[listing->count++] = *row;
	return 0;
}

static int add_entry(struct files_talk *talk, struct listing *listing, const char *path,
		     const char *name)
{
	struct coop_jsonw w = {.out = &listing->text};
	struct row row = {.path = (uint32_t)coop_buf_size(&listing->text)};
	struct stat found;

	/* What has gone since its name was read was not there. */
	if (fstatat(dirfd(listing->dir), name, &found, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (files_entry_is_placeholder(dirfd(listing->dir), name, &found))
		return 0;
	if (coop_buf_append(&listing->text, path, strlen(path) + 1) < 0)
		return -ENOMEM;
	row.json = (uint32_t)coop_buf_size(&listing->text);
	files_entry_write(&w, NULL, path, &found, dirfd(listing->dir), name, &talk->server->names);
	row.size = (uint32_t)coop_buf_size(&listing->text) - row.json;
	if (listing->count >= COOP_FILES_LIST_MAX ||
	    coop_buf_size(&listing->text) > COOP_FILES_LIST_BYTES)
		return -EFBIG;
	int r = w.failed ? -ENOMEM : add_row(listing, &row);
	if (r == 0 && S_ISDIR(found.st_mode) && listing->places->depth < listing->depth)
		r = add_place(listing, path, listing->places->depth + 1);
	return r;
}

/* Opens the next directory. Below the first, what cannot be read is listed without what is in
 * it. */
static int next_place(struct listing *listing)
{
	const struct place *place = listing->places;
	const int follow = place->depth == 1 ? 0 : O_NOFOLLOW;
	COOP_AUTO_FD int fd =
		files_path_open(place->path, O_RDONLY | O_DIRECTORY | O_NONBLOCK | follow, 0);

	if (fd >= 0 && (listing->dir = fdopendir(fd))) {
		(void)COOP_TAKE_FD(fd);
		return 0;
	}
	if (place->depth == 1)
		return fd < 0 ? fd : -errno;
	return 1;
}

static void leave_place(struct listing *listing)
{
	struct place *place = listing->places;

	if (listing->dir)
		(void)closedir(listing->dir);
	listing->dir = NULL;
	listing->places = place->next;
	free(place);
}

static int read_name(struct files_talk *talk, struct listing *listing)
{
	char path[FILES_PATH_MAX];

	errno = 0;
	const struct dirent *entry = readdir(listing->dir);
	if (!entry) {
		const int error = errno;
		leave_place(listing);
		return -error;
	}
	if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
		return 0;
	if (files_path_join(listing->places->path, entry->d_name, path) < 0)
		return 0;
	return add_entry(talk, listing, path, entry->d_name);
}

static int work(struct files_talk *talk, struct listing *listing)
{
	int r = 0;

	for (unsigned i = 0; i < FILES_TURN && listing->places && r == 0; i++) {
		if (listing->dir) {
			r = read_name(talk, listing);
		} else if ((r = next_place(listing)) > 0) {
			leave_place(listing);
			r = 0;
		}
	}
	return r;
}

static int compare_rows(const void *a, const void *b, void *text)
{
	const char *base = text;

	return strcmp(base + ((const struct row *)a)->path, base + ((const struct row *)b)->path);
}

/* The sorted text. */
static int finish(struct listing *listing, struct coop_buf *ret)
{
	const uint8_t *base = coop_buf_front(&listing->text);
	int r = coop_buf_append(ret, "{\"entries\":[", 12);

	if (listing->count)
		qsort_r(listing->rows, listing->count, sizeof *listing->rows, compare_rows,
			coop_buf_front(&listing->text));
	for (size_t i = 0; i < listing->count && r == 0; i++) {
		const struct row *row = &listing->rows[i];
		if (i)
			r = coop_buf_append(ret, ",", 1);
		if (r == 0)
			r = coop_buf_append(ret, base + row->json, row->size);
	}
	return r == 0 ? coop_buf_append(ret, "]}", 2) : r;
}

/* Turns the listing into a content. */
static enum files_turn answer(struct files_talk *talk, struct listing *listing)
{
	const size_t count = listing->count;
	struct coop_buf text = {0}, head = {0};
	struct coop_jsonw w = {.out = &head};
	int r = finish(listing, &text);

	drop_listing(talk);
	talk->state = NULL;
	talk->drop = NULL;
	struct files_content *content = r == 0 ? files_content_begin(talk) : NULL;
	if (!content) {
		coop_buf_clear(&text);
		return files_fail(talk, -ENOMEM, NULL);
	}
	content->text = text;
	coop_jsonw_begin(&w, NULL);
	coop_jsonw_uint(&w, "count", count);
	return files_content_first(talk, &w, coop_buf_size(&text));
}

static int begin(struct files_talk *talk, const struct files_request *request, const char *path)
{
	const json_t *depth = json_object_get(request->json, "depth");
	struct listing *listing = coop_mem_zalloc(sizeof *listing);

	if (!listing)
		return -ENOMEM;
	talk->kind = FILES_WORK;
	talk->state = listing;
	talk->drop = drop_listing;
	listing->depth = 1;
	if (depth && (json_integer_value(depth) < 1 ||
		      json_integer_value(depth) > (json_int_t)COOP_FILES_DEPTH_MAX))
		return -EINVAL;
	if (depth)
		listing->depth = (unsigned)json_integer_value(depth);
	int r = add_place(listing, path, 1);
	if (r < 0)
		return r;
	r = next_place(listing);
	return r == -ENOTDIR ? files_path_not_directory(path) : r;
}

enum files_turn files_list(struct files_talk *talk, struct files_request *request)
{
	struct listing *listing = talk->state;
	char path[FILES_PATH_MAX] = "";
	int r;

	if (listing) {
		r = work(talk, listing);
	} else {
		if (files_take_path(talk, request, "path", path) < 0)
			return FILES_OVER;
		r = begin(talk, request, path);
		listing = talk->state;
	}
	if (r < 0)
		return files_fail(talk, r, *path ? path : NULL);
	return listing->places ? FILES_AGAIN : answer(talk, listing);
}
