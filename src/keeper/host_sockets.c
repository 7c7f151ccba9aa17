#include "keeper/host_sockets.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/textfile.h"

#define TABLE "/proc/net/unix"
#define TABLE_MAX (8u << 20)
#define MANY 256u /* reading so many takes longer than a start may */
#define KEPT_NS 250000000u
#define KNOWN_NS UINT64_C(5000000000)
#define FIELDS_BEFORE_PATH 7

/* What stands behind the fields of a line; NULL: the socket has no name. */
static const char *path_of(const char *line)
{
	for (int i = 0; i < FIELDS_BEFORE_PATH; i++) {
		line += strspn(line, " ");
		line += strcspn(line, " \n");
	}
	return *line == ' ' && line[1] == '/' ? line + 1 : NULL;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Connections of a server carry its path, too: each is looked at once. Returns how many are left. */
static size_t drop_repeated(char **paths, size_t count)
{
	size_t kept = 0;

	if (count)
		qsort(paths, count, sizeof *paths, by_text);
	for (size_t i = 0; i < count; i++) {
		if (!kept || strcmp(paths[kept - 1], paths[i]) != 0)
			paths[kept++] = paths[i];
	}
	return kept;
}

/* Where the path leads, if that is a socket. A name may be older than what is there now, or mean something in another view. */
static char *resolve(const char *path)
{
	char real[PATH_MAX];
	struct stat status;

	if (!realpath(path, real) || lstat(real, &status) < 0 || !S_ISSOCK(status.st_mode))
		return NULL;
	return coop_mem_strdup(real);
}

/* Cuts the table into lines, and gives the paths in it; how many. `ret` NULL: only counts. */
static size_t find_paths(char *table, char **ret)
{
	size_t count = 0;
	char *end;

	for (char *line = table; (end = strchr(line, '\n')) && count < COOP_HOST_SOCKETS_MAX;
	     line = end + 1) {
		const char *path = path_of(line);
		if (!path)
			continue;
		if (ret) {
			*end = 0;
			ret[count] = line + (path - line);
		}
		count++;
	}
	return count;
}

/* Whether the names are those of the last time. */
static bool same(const struct coop_host_sockets *sockets, char *const *names, size_t count)
{
	const char *known = (const char *)coop_buf_front(&sockets->names);
	size_t left = coop_buf_size(&sockets->names);

	for (size_t i = 0; i < count; i++) {
		size_t size = strlen(names[i]) + 1;
		if (size > left || memcmp(known, names[i], size) != 0)
			return false;
		known += size;
		left -= size;
	}
	return !left && sockets->paths;
}

static void forget(struct coop_host_sockets *sockets)
{
	for (size_t i = 0; i < sockets->count; i++)
		free(sockets->paths[i]);
	free(sockets->paths);
	sockets->paths = NULL;
	sockets->count = 0;
	coop_buf_consume(&sockets->names, coop_buf_size(&sockets->names));
}

/* Takes the list over. What cannot be kept for want of memory is looked for again the next time. */
static void resolve_all(struct coop_host_sockets *sockets, char **names, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (coop_buf_append(&sockets->names, names[i], strlen(names[i]) + 1) < 0)
			break;
	}
	for (size_t i = 0; i < count; i++) {
		char *real = resolve(names[i]);
		if (real)
			names[sockets->count++] = real;
	}
	names[sockets->count] = NULL;
	sockets->paths = names;
	sockets->resolved_at = coop_clock_now();
}

void coop_host_sockets_clear(struct coop_host_sockets *sockets)
{
	forget(sockets);
	coop_buf_clear(&sockets->names);
	coop_buf_clear(&sockets->table);
	if (sockets->opened)
		(void)close(sockets->fd);
	sockets->opened = false;
}

/* 0 or -errno. */
static int read_table(struct coop_host_sockets *sockets)
{
	if (!sockets->opened) {
		sockets->fd = open(TABLE, O_RDONLY | O_CLOEXEC);
		if (sockets->fd < 0)
			return -errno;
		sockets->opened = true;
	}
	coop_buf_consume(&sockets->table, coop_buf_size(&sockets->table));
	int r = coop_textfile_read_again(sockets->fd, TABLE_MAX, &sockets->table);
	/* As much as there is room for. */
	return r == -EFBIG ? 0 : r;
}

const char *const *coop_host_sockets_list(struct coop_host_sockets *sockets)
{
	uint64_t now = coop_clock_now();

	if (sockets->count > MANY && now - sockets->read_at < KEPT_NS)
		return (const char *const *)sockets->paths;
	sockets->read_at = now;
	int r = read_table(sockets);
	char *text = (char *)coop_buf_front(&sockets->table);
	char **names = r < 0 ? NULL : coop_mem_alloc((find_paths(text, NULL) + 1) * sizeof *names);
	if (!names)
		return (const char *const *)sockets->paths;
	size_t count = drop_repeated(names, find_paths(text, names));
	/* Where they lead is mostly known already, and takes longer to find out than all the rest. */
	if (same(sockets, names, count) && now - sockets->resolved_at < KNOWN_NS) {
		free(names);
	} else {
		forget(sockets);
		resolve_all(sockets, names, count);
	}
	return (const char *const *)sockets->paths;
}
