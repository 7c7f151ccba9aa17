#include "sandbox/policy/found.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/mem.h"

#define ENTRIES_MAX 4096u /* of a folder; in a larger one each name is looked for */
#define READ_BYTES 16384u /* of a folder's entries at a time */
#define PLACES_MAX                                                                     \
	64u /* folders that a memory knows; where there are more nothing is remembered \
	     */
/* A change this soon after another may leave a folder with the same times: the kernel's clock
 * for them goes by ticks. */
#define TICK_NS INT64_C(20000000)
#define SECOND_NS INT64_C(1000000000)

/* A folder as it was looked at: the first `size` bytes of a row's name lead to it. */
struct place {
	uint32_t row, size;
	uint64_t dev, ino;
	int64_t changed, modified; /* nanoseconds */
};

struct coop_found_memory {
	char *folder;
	int64_t looked; /* when the look began, by the clock of file systems */
	bool whole;     /* all places are known */
	uint32_t place_count, row_count;
	struct place places[PLACES_MAX];
	struct coop_found rows[];
};

/* Rows that lie in one folder, from first to before end; their names in it begin at offset. */
struct group {
	const struct coop_rows *rows;
	int folder;
	uint32_t first, end, offset;
	struct coop_found *ret;
	struct coop_found_memory *memory; /* NULL: nothing is remembered */
};

static void look_in(const struct group *group);

/* To be read, or only to be searched where no more is allowed: then to read it fails. */
static int open_folder(int at, const char *path, int flags)
{
	int fd = openat(at, path, O_RDONLY | O_NONBLOCK | O_DIRECTORY | O_CLOEXEC | flags);

	return fd >= 0 || errno != EACCES
		       ? fd
		       : openat(at, path, O_PATH | O_DIRECTORY | O_CLOEXEC | flags);
}

/* What the row is called from this folder on. */
static const char *name_of(const struct group *group, uint32_t row)
{
	const char *const *name =
		(const void *)((const char *)group->rows->first + row * group->rows->stride);

	return *name + group->offset;
}

/* Order of a name against the one that the row has in this folder. */
static int compare_name(const char *name, const char *row)
{
	for (;; name++, row++) {
		int want = *row == '/' ? 0 : (unsigned char)*row, is = (unsigned char)*name;
		if (is != want || !want)
			return is - want;
	}
}

/* The rows of the group that begin with that name: *ret_end is behind the last. */
static uint32_t find_name(const struct group *group, const char *name, uint32_t *ret_end)
{
	uint32_t low = group->first, high = group->end;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (compare_name(name, name_of(group, middle)) > 0)
			low = middle + 1;
		else
			high = middle;
	}
	for (high = low; high < group->end && !compare_name(name, name_of(group, high));)
		high++;
	*ret_end = high;
	return low;
}

/* A name of the folder that some rows begin with, and what it is. */
static void found(const struct group *group, uint32_t first, uint32_t end, unsigned char type)
{
	const char *row = name_of(group, first);
	size_t size = strcspn(row, "/");

	for (uint32_t i = first; i < end; i++) {
		const char *rest = name_of(group, i) + size;
		group->ret[i].sure = false;
		group->ret[i].state = type == DT_LNK ? COOP_FOUND_LINKED
				      : *rest        ? COOP_FOUND_MISSING
						     : COOP_FOUND_PLAIN;
		/* In what is no folder the next name is the one that is missing. */
		if (group->ret[i].state == COOP_FOUND_MISSING)
			group->ret[i].known =
				(uint32_t)(group->offset + size + 1 + strcspn(rest + 1, "/"));
	}
	if (type != DT_DIR || !row[size])
		return;
	char name[NAME_MAX + 1];
	if (size >= sizeof name)
		return;
	memcpy(name, row, size);
	name[size] = 0;
	COOP_AUTO_FD int folder = open_folder(group->folder, name, O_NOFOLLOW);
	look_in(&(struct group){group->rows, folder, first, end, group->offset + (uint32_t)size + 1,
				group->ret, group->memory});
}

static unsigned char type_of(int folder, const char *name)
{
	struct stat st;

	if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return DT_UNKNOWN;
	return S_ISLNK(st.st_mode) ? DT_LNK : S_ISDIR(st.st_mode) ? DT_DIR : DT_REG;
}

/* One call for each name: where the folder may be searched and not read, or is too large to be. */
static void look_for_each(const struct group *group)
{
	char name[NAME_MAX + 1];

	for (uint32_t i = group->first, end; i < group->end; i = end) {
		const char *row = name_of(group, i);
		size_t size = strcspn(row, "/");
		end = i + 1;
		if (size >= sizeof name)
			continue;
		memcpy(name, row, size);
		name[size] = 0;
		(void)find_name(group, name, &end);
		unsigned char type = type_of(group->folder, name);
		if (type != DT_UNKNOWN)
			found(group, i, end, type);
	}
}

static void meet(const struct group *group, const struct dirent64 *entry)
{
	uint32_t end, first = find_name(group, entry->d_name, &end);
	unsigned char type = entry->d_type;

	if (first == end)
		return;
	if (type == DT_UNKNOWN)
		type = type_of(group->folder, entry->d_name);
	found(group, first, end, type);
}

/* False: it may not be read, or has too many entries. Without the C library's stream, which asks
 * for memory and more calls: nearly every start reads a folder. */
static bool read_entries(const struct group *group)
{
	alignas(struct dirent64) char room[READ_BYTES];
	size_t left = ENTRIES_MAX;
	ssize_t size;

	while ((size = getdents64(group->folder, room, sizeof room)) > 0) {
		const struct dirent64 *entry;
		for (ssize_t at = 0; at < size; at += entry->d_reclen) {
			entry = (const void *)(room + at);
			if (left-- == 0)
				return false;
			meet(group, entry);
		}
	}
	return size == 0;
}

static int64_t nanoseconds(const struct timespec *time)
{
	return time->tv_sec * SECOND_NS + time->tv_nsec;
}

static struct place place_of(const struct stat *st)
{
	return (struct place){.dev = st->st_dev,
			      .ino = st->st_ino,
			      .changed = nanoseconds(&st->st_ctim),
			      .modified = nanoseconds(&st->st_mtim)};
}

/* Before the folder is read: what changes meanwhile makes the memory worthless, as it should. */
static void remember(const struct group *group)
{
	struct coop_found_memory *memory = group->memory;
	struct stat st;

	if (!memory || !memory->whole)
		return;
	if (memory->place_count == PLACES_MAX || fstat(group->folder, &st) < 0) {
		memory->whole = false;
		return;
	}
	struct place *place = &memory->places[memory->place_count++];
	*place = place_of(&st);
	place->row = group->first;
	place->size = group->offset ? group->offset - 1 : 0;
	memory->whole = place->changed + TICK_NS < memory->looked &&
			place->modified + TICK_NS < memory->looked;
}

static void look_in(const struct group *group)
{
	for (uint32_t i = group->first; i < group->end; i++) {
		const char *row = name_of(group, i);
		group->ret[i] =
			(struct coop_found){.state = COOP_FOUND_MISSING,
					    .sure = true,
					    .known = group->offset + (uint32_t)strcspn(row, "/")};
	}
	if (group->folder >= 0) {
		remember(group);
		if (read_entries(group))
			return;
		look_for_each(group);
	} else if (group->memory) {
		group->memory->whole = false;
	}
	for (uint32_t i = group->first; i < group->end; i++)
		group->ret[i].sure = false;
}

static void look(const char *folder, const struct coop_rows *rows, struct coop_found_memory *memory,
		 struct coop_found *ret)
{
	COOP_AUTO_FD int fd = open_folder(AT_FDCWD, folder, 0);

	look_in(&(struct group){rows, fd, 0, rows->count, 0, ret, memory});
}

void coop_found_look(const char *folder, const struct coop_rows *rows, struct coop_found *ret)
{
	look(folder, rows, NULL, ret);
}

static bool is_unchanged(int fd, const struct coop_rows *rows, const struct place *known)
{
	const struct group all = {.rows = rows};
	char path[PATH_MAX];
	struct stat st;

	if (known->size >= sizeof path)
		return false;
	memcpy(path, name_of(&all, known->row), known->size);
	path[known->size] = 0;
	if ((known->size ? fstatat(fd, path, &st, AT_SYMLINK_NOFOLLOW) : fstat(fd, &st)) < 0)
		return false;
	const struct place now = place_of(&st);
	return now.dev == known->dev && now.ino == known->ino && now.changed == known->changed &&
	       now.modified == known->modified;
}

static bool still_holds(const struct coop_found_memory *memory, const char *folder,
			const struct coop_rows *rows)
{
	if (!memory || !memory->whole || strcmp(memory->folder, folder) != 0)
		return false;
	COOP_AUTO_FD int fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	for (uint32_t i = 0; i < memory->place_count; i++) {
		if (fd < 0 || !is_unchanged(fd, rows, &memory->places[i]))
			return false;
	}
	return true;
}

/* One for that folder; NULL without memory: then nothing is remembered. */
static struct coop_found_memory *begin_memory(const char *folder, const struct coop_rows *rows)
{
	struct coop_found_memory *memory =
		coop_mem_zalloc(sizeof *memory + rows->count * sizeof memory->rows[0]);
	struct timespec now;

	if (!memory)
		return NULL;
	memory->folder = coop_mem_strdup(folder);
	memory->row_count = rows->count;
	memory->whole = memory->folder && clock_gettime(CLOCK_REALTIME_COARSE, &now) == 0;
	memory->looked = memory->whole ? nanoseconds(&now) : 0;
	return memory;
}

void coop_found_look_again(const char *folder, const struct coop_rows *rows,
			   struct coop_found_memory **memory, struct coop_found *ret)
{
	if (still_holds(*memory, folder, rows)) {
		memcpy(ret, (*memory)->rows, (*memory)->row_count * sizeof ret[0]);
		return;
	}
	coop_found_forget(*memory);
	*memory = begin_memory(folder, rows);
	look(folder, rows, *memory, ret);
	if (*memory)
		memcpy((*memory)->rows, ret, rows->count * sizeof ret[0]);
}

void coop_found_forget(struct coop_found_memory *memory)
{
	if (memory)
		free(memory->folder);
	free(memory);
}
