#include "doors/files/entry.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io/paths.h"
#include "doors/files/path.h"

/* From the files alone: what else a system may ask for names can keep all others waiting. */
static const char *user_name(struct files_names *names, uid_t uid)
{
	if (names->user.known && names->user.id == uid)
		return names->user.name;
	(void)snprintf(names->user.name, sizeof names->user.name, "%u", uid);
	FILE *file = fopen("/etc/passwd", "re");
	for (const struct passwd *row; file && (row = fgetpwent(file));) {
		if (row->pw_uid != uid)
			continue;
		(void)snprintf(names->user.name, sizeof names->user.name, "%s", row->pw_name);
		break;
	}
	if (file)
		(void)fclose(file);
	names->user.known = true;
	names->user.id = uid;
	return names->user.name;
}

static const char *group_name(struct files_names *names, gid_t gid)
{
	if (names->group.known && names->group.id == gid)
		return names->group.name;
	(void)snprintf(names->group.name, sizeof names->group.name, "%u", gid);
	FILE *file = fopen("/etc/group", "re");
	for (const struct group *row; file && (row = fgetgrent(file));) {
		if (row->gr_gid != gid)
			continue;
		(void)snprintf(names->group.name, sizeof names->group.name, "%s", row->gr_name);
		break;
	}
	if (file)
		(void)fclose(file);
	names->group.known = true;
	names->group.id = gid;
	return names->group.name;
}

static char type_letter(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFDIR:
		return 'd';
	case S_IFLNK:
		return 'l';
	case S_IFIFO:
		return 'p';
	case S_IFSOCK:
		return 's';
	case S_IFCHR:
		return 'c';
	case S_IFBLK:
		return 'b';
	default:
		return '-';
	}
}

/* As ls(1) shows them. */
static void write_permissions(mode_t mode, char ret_text[11])
{
	static const char letters[] = "rwxrwxrwx";

	ret_text[0] = type_letter(mode);
	for (unsigned i = 0; i < 9; i++)
		ret_text[1 + i] = mode & (0400u >> i) ? letters[i] : '-';
	if (mode & S_ISUID)
		ret_text[3] = mode & 0100 ? 's' : 'S';
	if (mode & S_ISGID)
		ret_text[6] = mode & 0010 ? 's' : 'S';
	if (mode & S_ISVTX)
		ret_text[9] = mode & 0001 ? 't' : 'T';
	ret_text[10] = '\0';
}

/* A file may claim any time; years have four digits. */
static void write_time(const struct timespec *when, char ret_text[COOP_CLOCK_TEXT])
{
	const int64_t last = 253402300799;
	int64_t seconds = when->tv_sec < 0 ? 0 : when->tv_sec > last ? last : when->tv_sec;

	coop_clock_format(seconds * 1000 + when->tv_nsec / 1000000, ret_text);
}

static const char *type_word(mode_t mode)
{
	return S_ISDIR(mode) ? "dir" : S_ISLNK(mode) ? "symlink" : "file";
}

static void write_target(struct coop_jsonw *w, mode_t mode, int directory, const char *link)
{
	char target[FILES_PATH_MAX];
	ssize_t size = S_ISLNK(mode) ? readlinkat(directory, link, target, sizeof target - 1) : -1;

	if (size >= 0)
		target[size] = '\0';
	coop_jsonw_string(w, "symlink_target", size >= 0 ? target : NULL);
}

void files_entry_write(struct coop_jsonw *w, const char *name, const char *path,
		       const struct stat *found, int directory, const char *link,
		       struct files_names *names)
{
	char permissions[11], when[COOP_CLOCK_TEXT];
	const char *last = strrchr(path, '/');

	write_permissions(found->st_mode, permissions);
	write_time(&found->st_mtim, when);
	coop_jsonw_begin(w, name);
	coop_jsonw_string(w, "name", last && last[1] ? last + 1 : path);
	coop_jsonw_string(w, "path", path);
	coop_jsonw_string(w, "type", type_word(found->st_mode));
	coop_jsonw_int(w, "size", found->st_size);
	coop_jsonw_int(w, "bytes", found->st_size);
	coop_jsonw_uint(w, "mode", found->st_mode & 07777);
	coop_jsonw_string(w, "permissions", permissions);
	coop_jsonw_string(w, "owner", user_name(names, found->st_uid));
	coop_jsonw_string(w, "group", group_name(names, found->st_gid));
	coop_jsonw_string(w, "modified_time", when);
	write_target(w, found->st_mode, directory, link);
	coop_jsonw_uint(w, "uid", found->st_uid);
	coop_jsonw_uint(w, "gid", found->st_gid);
	coop_jsonw_begin(w, "metadata");
	coop_jsonw_end(w);
	coop_jsonw_end(w);
}

bool files_entry_is_placeholder(int directory, const char *name, const struct stat *found)
{
	struct statx more;
	struct statvfs where;

	if (!S_ISDIR(found->st_mode) && !(S_ISREG(found->st_mode) && found->st_size == 0))
		return false;
	if (statx(directory, name, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH, STATX_TYPE, &more) < 0 ||
	    !(more.stx_attributes & STATX_ATTR_MOUNT_ROOT))
		return false;
	COOP_AUTO_FD int fd = *name ? openat(directory, name, O_PATH | O_NOFOLLOW | O_CLOEXEC)
				    : fcntl(directory, F_DUPFD_CLOEXEC, 0);
	if (fd < 0 || fstatvfs(fd, &where) < 0 || !(where.f_flag & ST_RDONLY))
		return false;
	return !S_ISDIR(found->st_mode) || coop_paths_is_empty(directory, *name ? name : ".");
}

int files_entry_of(struct coop_jsonw *w, const char *name, const char *path,
		   struct files_names *names)
{
	struct stat found;
	COOP_AUTO_FD int fd = files_path_open(path, O_PATH | O_NOFOLLOW, 0);

	if (fd < 0)
		return fd;
	if (fstat(fd, &found) < 0)
		return -errno;
	if (files_entry_is_placeholder(fd, "", &found))
		return -ENOENT;
	files_entry_write(w, name, path, &found, fd, "", names);
	return 0;
}
