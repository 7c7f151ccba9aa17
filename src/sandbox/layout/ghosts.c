#include "sandbox/layout/ghosts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/io/log.h"
#include "base/mem.h"
#include "sandbox/layout/ghosts_disk.h"

#define BUCKETS 1024u

struct entry {
	struct entry *next;
	struct coop_ghost_mark mark;
	size_t users;
	bool left; /* to the next keeper */
	char path[];
};

struct coop_ghosts {
	struct entry *buckets[BUCKETS];
	size_t count;
	bool changed; /* since the list was written */
	bool unsaved; /* since the list was saved */
	int list;     /* fd of the list in memory; -1: none is kept */
	off_t end;    /* of its lines */
	struct coop_ghost_stock stock;
	struct coop_ghost_parent parent;      /* open only within a call */
	int removed[COOP_GHOSTS_REMOVED_MAX]; /* folders that nobody has freed yet */
	size_t removed_count;
};

/* The place that points to the path's entry, or to NULL where it would go. */
static struct entry **find(struct coop_ghosts *ghosts, const char *path)
{
	uint32_t key = 2166136261u;

	for (const char *c = path; *c; c++)
		key = (key ^ (unsigned char)*c) * 16777619u;
	struct entry **place = &ghosts->buckets[key % BUCKETS];
	while (*place && strcmp((*place)->path, path) != 0)
		place = &(*place)->next;
	return place;
}

static void write_list(struct coop_ghosts *ghosts)
{
	struct coop_buf text = {0};
	struct coop_ghost_front front = {0};
	int r = 0;

	if (!ghosts->changed)
		return;
	ghosts->changed = false;
	if (ghosts->list < 0)
		return;
	ghosts->unsaved = true;
	for (size_t i = 0; i < BUCKETS; i++) {
		for (const struct entry *entry = ghosts->buckets[i]; entry && r == 0;
		     entry = entry->next)
			r = coop_ghost_list_add(&front, &text, entry->path, &entry->mark);
	}
	ghosts->end = (off_t)coop_buf_size(&text);
	if (r == 0)
		r = coop_ghost_list_write(ghosts->list, 0, &text);
	if (r < 0)
		coop_log(COOP_LOG_WARN, "the list of placeholders cannot be kept error=%s",
			 strerror(-r));
	coop_buf_clear(&text);
}

static void finish(struct coop_ghosts *ghosts)
{
	coop_ghost_parent_close(&ghosts->parent);
	write_list(ghosts);
}

/* An fd, or -1. */
static int open_saved(const char *state)
{
	char path[4200];

	(void)snprintf(path, sizeof path, "%s/ghosts", state);
	return open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
}

struct coop_ghosts *coop_ghosts_new(const char *state, int memory)
{
	struct coop_ghosts *ghosts = coop_mem_zalloc(sizeof *ghosts);

	if (!ghosts)
		return NULL;
	ghosts->list = -1;
	ghosts->parent = COOP_GHOST_PARENT;
	ghosts->stock = COOP_GHOST_STOCK;
	ghosts->parent.stock = &ghosts->stock;
	if (!state)
		return ghosts;
	(void)coop_ghost_stock_open(&ghosts->stock, state); /* it only saves time */
	COOP_AUTO_FD int saved = open_saved(state);
	if (saved < 0) {
		coop_log(COOP_LOG_WARN, "no list of placeholders is kept state=%s error=%s", state,
			 strerror(errno));
		return ghosts;
	}
	coop_ghost_list_remove_all(saved);
	coop_ghost_list_remove_all(memory); /* it may have outlived keeper and guard */
	ghosts->list = memory;
	ghosts->changed = true;
	finish(ghosts);
	coop_ghosts_save(state, memory);
	return ghosts;
}

bool coop_ghosts_changed(struct coop_ghosts *ghosts)
{
	bool changed = ghosts->unsaved;

	ghosts->unsaved = false;
	return changed;
}

/* So many bytes of it are lines. Behind them are those of longer lists before. */
static size_t lines_size(const struct coop_buf *text)
{
	const char *begin = (const char *)coop_buf_front(text), *at = begin, *nul;
	const char *end = begin ? begin + coop_buf_size(text) : NULL;

	while (at < end && *at && (nul = memchr(at, 0, (size_t)(end - at))))
		at = nul + 1;
	return begin ? (size_t)(at - begin) : 0;
}

/* Whether there is nothing to be replaced. */
static bool saved_none(const char *state)
{
	char path[4200], first = 0;

	(void)snprintf(path, sizeof path, "%s/ghosts", state);
	COOP_AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	return fd >= 0 ? pread(fd, &first, 1, 0) >= 0 && !first : errno == ENOENT;
}

static int save(const char *state, struct coop_buf *text)
{
	COOP_AUTO_FD int saved = open_saved(state);

	return saved < 0 ? -errno : coop_ghost_list_write(saved, 0, text);
}

void coop_ghosts_save(const char *state, int memory)
{
	struct coop_buf all = {0}, text = {0};
	int r = coop_ghost_list_read(memory, &all);

	if (r == 0)
		r = coop_buf_append(&text, coop_buf_front(&all), lines_size(&all));
	if (r == 0 && (coop_buf_size(&text) || !saved_none(state)))
		r = save(state, &text);
	/* What is not listed stays behind if the keeper is killed; no reason to refuse anything. */
	if (r < 0)
		coop_log(COOP_LOG_WARN, "the list of placeholders cannot be written error=%s",
			 strerror(-r));
	coop_buf_clear(&text);
	coop_buf_clear(&all);
}

static void keep_removed(struct coop_ghosts *ghosts, int folder)
{
	if (folder < 0)
		return;
	if (ghosts->removed_count < COOP_GHOSTS_REMOVED_MAX)
		ghosts->removed[ghosts->removed_count++] = folder;
	else
		(void)close(folder);
}

size_t coop_ghosts_removed(struct coop_ghosts *ghosts, int ret[COOP_GHOSTS_REMOVED_MAX])
{
	size_t count = ghosts->removed_count;

	memcpy(ret, ghosts->removed, count * sizeof *ret);
	ghosts->removed_count = 0;
	return count;
}

static void remove_at(struct coop_ghosts *ghosts, struct entry **place)
{
	struct entry *entry = *place;

	keep_removed(ghosts, coop_ghost_remove(&ghosts->parent, entry->path, &entry->mark));
	*place = entry->next;
	ghosts->count--;
	ghosts->changed = true;
	free(entry);
}

void coop_ghosts_leave(struct coop_ghosts *ghosts, bool (*leave)(void *user, const char *path),
		       void *user)
{
	for (size_t i = 0; i < BUCKETS; i++) {
		for (struct entry *entry = ghosts->buckets[i]; entry; entry = entry->next)
			entry->left = leave(user, entry->path);
	}
}

static void forget_left(struct coop_ghosts *ghosts)
{
	for (size_t i = 0; i < BUCKETS; i++) {
		for (struct entry *entry; (entry = ghosts->buckets[i]);) {
			ghosts->buckets[i] = entry->next;
			free(entry);
		}
	}
}

void coop_ghosts_free(struct coop_ghosts *ghosts)
{
	if (!ghosts)
		return;
	for (size_t i = 0; i < BUCKETS; i++) {
		for (struct entry **place = &ghosts->buckets[i]; *place;) {
			if ((*place)->left)
				place = &(*place)->next;
			else
				remove_at(ghosts, place);
		}
	}
	finish(ghosts);
	forget_left(ghosts);
	coop_ghost_stock_close(&ghosts->stock);
	for (size_t i = 0; i < ghosts->removed_count; i++)
		(void)close(ghosts->removed[i]);
	free(ghosts);
}

/* No reason to refuse the process: the name is taken, or cannot be made by anybody inside
 * either. */
static bool passed_over(struct coop_ghosts *ghosts, const char *path, int status)
{
	switch (-status) {
	case EACCES:
	case EPERM:
		return !coop_ghost_openable(&ghosts->parent, path);
	case EEXIST:
	case EROFS:
	case ENOENT:
	case ENOTDIR:
	case ELOOP:
	case ENAMETOOLONG:
		return true;
	default:
		return false;
	}
}

static int add(struct coop_ghosts *ghosts, struct entry **place, const struct coop_ghost *ghost)
{
	size_t size = strlen(ghost->path) + 1;
	struct entry *entry = coop_mem_zalloc(sizeof *entry + size);

	if (!entry)
		return -ENOMEM;
	int r = coop_ghost_make(&ghosts->parent, ghost, &entry->mark);
	if (r < 0) {
		free(entry);
		return r;
	}
	memcpy(entry->path, ghost->path, size);
	entry->users = 1;
	*place = entry;
	ghosts->count++;
	ghosts->changed = true;
	return 0;
}

/* One that somebody removed meanwhile is made again. Where somebody put something in its place,
 * that is not ours. */
static int take(struct coop_ghosts *ghosts, struct coop_ghost *ghost)
{
	struct entry **place = find(ghosts, ghost->path), *entry = *place;
	int r = 0;

	if (!entry) {
		r = add(ghosts, place, ghost);
	} else {
		if (!coop_ghost_unchanged(&ghosts->parent, ghost->path, &entry->mark)) {
			r = coop_ghost_make(&ghosts->parent, ghost, &entry->mark);
			ghosts->changed = true;
		}
		entry->users += r == 0;
	}
	ghost->held = r == 0;
	return r < 0 && !passed_over(ghosts, ghost->path, r) ? r : 0;
}

static void release(struct coop_ghosts *ghosts, struct coop_ghost *list, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct entry *entry = list[i].held ? *find(ghosts, list[i].path) : NULL;
		list[i].held = false;
		if (entry)
			entry->users--;
	}
}

static void remove_unused(struct coop_ghosts *ghosts, struct coop_ghost *list, size_t count)
{
	/* Backwards, as they were made: what lies in another goes first. */
	while (count--) {
		struct entry **place = find(ghosts, list[count].path);
		if (*place && (*place)->users == 0)
			remove_at(ghosts, place);
	}
}

/* Names that are about to be made stand behind the lines of the list until it is written again:
 * a keeper that is killed in between has left some of them. */
static void announce(struct coop_ghosts *ghosts, const struct coop_ghost *list, size_t count)
{
	struct coop_buf text = {0};
	int r = 0;

	for (size_t i = 0; i < count && r == 0 && ghosts->list >= 0; i++) {
		if (!*find(ghosts, list[i].path))
			r = coop_ghost_list_announce(&text, &list[i]);
	}
	if (r == 0 && coop_buf_size(&text)) {
		(void)coop_ghost_list_write(ghosts->list, ghosts->end, &text);
		ghosts->changed = true;
	}
	coop_buf_clear(&text);
}

int coop_ghosts_take(struct coop_ghosts *ghosts, struct coop_ghost *list, size_t count)
{
	int r = 0;

	for (size_t i = 0; i < count; i++)
		list[i].held = false;
	announce(ghosts, list, count);
	for (size_t i = 0; i < count && r == 0; i++)
		r = take(ghosts, &list[i]);
	if (r < 0) {
		release(ghosts, list, count);
		remove_unused(ghosts, list, count);
	}
	finish(ghosts);
	return r;
}

void coop_ghosts_drop(struct coop_ghosts *ghosts, struct coop_ghost *list, size_t count)
{
	release(ghosts, list, count);
	remove_unused(ghosts, list, count);
	finish(ghosts);
}

bool coop_ghosts_stands(const struct coop_ghosts *ghosts, struct coop_ghost_parent *near,
			const char *path)
{
	if (!ghosts->count)
		return false;
	/* Looking changes nothing. */
	const struct entry *entry = *find((struct coop_ghosts *)(uintptr_t)ghosts, path);
	return entry && coop_ghost_unchanged(near, path, &entry->mark);
}

size_t coop_ghosts_count(const struct coop_ghosts *ghosts)
{
	return ghosts->count;
}

void coop_ghosts_free_list(struct coop_ghost *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(list[i].path);
	free(list);
}
