#include "keeper/conf/users.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "keeper/conf/env.h"

#define FILE_BYTES_MAX                                                                            \
	(256u << 10) /* of a list that is copied; behind larger ones there is a directory service \
		      */
#define LINE_BYTES 4608
#define OWN_NAME "coop"

enum { PASSWD, GROUP };

static const char *const places[COOP_USERS_FILES] = {
	[PASSWD] = "/etc/passwd", [GROUP] = "/etc/group"};

static int read_whole(const char *path, struct coop_buf *ret, struct stat *ret_seen)
{
	COOP_AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

	if (fd < 0 || fstat(fd, ret_seen) < 0)
		return -errno;
	if (!S_ISREG(ret_seen->st_mode) || ret_seen->st_size > FILE_BYTES_MAX)
		return -EFBIG;
	uint8_t *room = coop_buf_reserve(ret, (size_t)ret_seen->st_size + 1);
	if (!room)
		return -ENOMEM;
	ssize_t n = read(fd, room, (size_t)ret_seen->st_size);
	if (n != ret_seen->st_size)
		return -EIO;
	coop_buf_commit(ret, (size_t)n);
	return 0;
}

/* The line of the list that has that number in its third field, or that name in its first; NULL:
 * none has. */
static const char *listed(const struct coop_buf *list, const char *name, uint32_t id)
{
	const char *line = (const char *)coop_buf_front(list), *end = line + coop_buf_size(list);
	char number[16];
	size_t name_size = name ? strlen(name) : 0;
	int digits = snprintf(number, sizeof number, "%u:", id);

	for (const char *next; line < end; line = next) {
		const char *stop = memchr(line, '\n', (size_t)(end - line));
		next = stop ? stop + 1 : end;
		size_t size = (size_t)(next - line);
		const char *one = memchr(line, ':', size);
		if (name && one && (size_t)(one - line) == name_size &&
		    !memcmp(line, name, name_size))
			return line;
		const char *two = one ? memchr(one + 1, ':', (size_t)(next - one - 1)) : NULL;
		if (!name && two && next - two - 1 >= digits &&
		    !memcmp(two + 1, number, (size_t)digits))
			return line;
	}
	return NULL;
}

/* The name at the front of a line, kept once for all processes; NULL: there is no line, or no
 * memory. A line that `listed` has found has its colon; behind its end nothing is certain. */
static const char *keep_name(struct coop_users *users, const char *line)
{
	size_t size = line ? (size_t)((const char *)rawmemchr(line, ':') - line) : 0;

	for (size_t i = 0; i < users->name_count; i++) {
		if (!strncmp(users->names[i], line ? line : "", size) && !users->names[i][size])
			return users->names[i];
	}
	char **grown = size ? coop_mem_realloc(users->names,
					       (users->name_count + 1) * sizeof *users->names)
			    : NULL;
	if (!grown)
		return NULL;
	users->names = grown;
	char *name = coop_mem_alloc(size + 1);
	if (!name)
		return NULL;
	memcpy(name, line, size);
	name[size] = 0;
	return users->names[users->name_count++] = name;
}

/* As a service of the host knows him, which is out of reach inside; else a name of ours that nobody
 * has. */
static void name_of(int which, uint32_t id, const struct coop_buf *list, char *ret, size_t size)
{
	const struct passwd *user = which == PASSWD ? getpwuid(id) : NULL;
	const struct group *group = which == GROUP ? getgrgid(id) : NULL;
	const char *known = user ? user->pw_name : group ? group->gr_name : NULL;

	(void)snprintf(ret, size, "%.200s", known && *known ? known : OWN_NAME);
	if (listed(list, ret, 0))
		(void)snprintf(ret, size, "%s-%u", OWN_NAME, id);
}

static const char *shell(void)
{
	const struct passwd *entry = getpwuid(geteuid());

	return entry && entry->pw_shell && *entry->pw_shell ? entry->pw_shell : "/bin/sh";
}

static int add_line(int which, uint32_t id, uint32_t gid, struct coop_buf *list)
{
	char name[256], line[LINE_BYTES];
	size_t size = coop_buf_size(list);
	bool open_end = size && coop_buf_front(list)[size - 1] != '\n';
	int n;

	name_of(which, id, list, name, sizeof name);
	if (which == PASSWD)
		n = snprintf(line, sizeof line, "%s%s:x:%u:%u::%.4000s:%.200s\n",
			     open_end ? "\n" : "", name, id, gid, coop_env_home(), shell());
	else
		n = snprintf(line, sizeof line, "%s%s:x:%u:\n", open_end ? "\n" : "", name, id);
	return n < 0 || (size_t)n >= sizeof line ? -ENAMETOOLONG
						 : coop_buf_append(list, line, (size_t)n);
}

/* By place, size and time: the lists are looked at for each start, and read anew when they have
 * changed. */
static bool same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static void make(struct coop_users *users, int which, uint32_t id, uint32_t gid)
{
	struct coop_users_file *file = &users->files[which];
	const char *line = NULL;

	coop_buf_clear(&file->text);
	*file = (struct coop_users_file){.read = true, .id = id};
	int r = read_whole(places[which], &file->text, &file->seen);
	if (r == 0)
		line = listed(&file->text, NULL, id);
	if (r == 0 && !line)
		r = add_line(which, id, gid, &file->text);
	bool known = line;
	if (r == 0)
		file->name = keep_name(users, known ? line : listed(&file->text, NULL, id));
	if (r < 0 || known)
		coop_buf_clear(&file->text);
}

size_t coop_users_files(struct coop_users *users, uint32_t uid, uint32_t gid,
			struct coop_injection ret[COOP_USERS_FILES])
{
	size_t count = 0;

	for (int i = 0; i < (int)COOP_USERS_FILES; i++) {
		struct coop_users_file *file = &users->files[i];
		uint32_t id = i == PASSWD ? uid : gid;
		struct stat now;
		if (stat(places[i], &now) < 0)
			continue;
		if (!file->read || file->id != id || !same(&file->seen, &now))
			make(users, i, id, gid);
		if (coop_buf_size(&file->text))
			ret[count++] = (struct coop_injection){.path = places[i],
							       .bytes = coop_buf_front(&file->text),
							       .size = coop_buf_size(&file->text)};
	}
	return count;
}

const char *coop_users_name(struct coop_users *users, uint32_t uid, uint32_t gid, bool view)
{
	struct coop_injection unused[COOP_USERS_FILES];
	const struct coop_users_file *file = &users->files[PASSWD];

	if (!view && uid == geteuid())
		return *coop_env_user() ? coop_env_user() : NULL;
	/* For a view they have just been made. */
	if (!view || file->id != uid)
		(void)coop_users_files(users, uid, gid, unused);
	/* Without the view's file only the host's says it. */
	return file->id == uid && (view || !coop_buf_size(&file->text)) ? file->name : NULL;
}

void coop_users_clear(struct coop_users *users)
{
	for (size_t i = 0; i < users->name_count; i++)
		free(users->names[i]);
	free(users->names);
	for (size_t i = 0; i < COOP_USERS_FILES; i++)
		coop_buf_clear(&users->files[i].text);
}
