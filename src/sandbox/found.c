#include "sandbox/found.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

#define ENTRIES_MAX 4096u /* of a folder; in a larger one each name is looked for */

/* Rows that lie in one folder, from first to before end; their names in it begin at offset. */
struct group {
	const struct coop_rows *rows;
	int folder;
	uint32_t first, end, offset;
	struct coop_found *ret;
};

static void look_in(const struct group *group);

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
	size_t size = strcspn(row, "/");
	int order = strncmp(name, row, size);

	return order ? order : name[size] ? 1 : 0;
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
	COOP_AUTO_FD int folder =
		openat(group->folder, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	look_in(&(struct group){group->rows, folder, first, end, group->offset + (uint32_t)size + 1,
				group->ret});
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

/* False: it has too many entries. */
static bool read_entries(const struct group *group, DIR *dir)
{
	size_t left = ENTRIES_MAX;

	for (const struct dirent *entry; (entry = readdir(dir));) {
		uint32_t end, first = find_name(group, entry->d_name, &end);
		unsigned char type = entry->d_type;
		if (left-- == 0)
			return false;
		if (first == end)
			continue;
		if (type == DT_UNKNOWN)
			type = type_of(group->folder, entry->d_name);
		found(group, first, end, type);
	}
	return true;
}

static void look_in(const struct group *group)
{
	for (uint32_t i = group->first; i < group->end; i++) {
		const char *row = name_of(group, i);
		group->ret[i] =
			(struct coop_found){.state = COOP_FOUND_MISSING,
					    .known = group->offset + (uint32_t)strcspn(row, "/")};
	}
	if (group->folder < 0)
		return;
	int copy = openat(group->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	if (!dir && copy >= 0)
		(void)close(copy);
	if (!dir || !read_entries(group, dir))
		look_for_each(group);
	if (dir)
		(void)closedir(dir);
}

void coop_found_look(const char *folder, const struct coop_rows *rows, struct coop_found *ret)
{
	COOP_AUTO_FD int fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);

	look_in(&(struct group){rows, fd, 0, rows->count, 0, ret});
}
