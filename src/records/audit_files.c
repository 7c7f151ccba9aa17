#include "records/audit_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "records/audit.h"

#define STEP (64u << 10)
/* A whole line with its newline, and one step of reading. */
#define ROOM (COOP_AUDIT_LINE_MAX + 1 + STEP)

void coop_audit_segment_name(const struct coop_audit_segment *segment, char ret[COOP_AUDIT_NAME])
{
	int n = snprintf(ret, COOP_AUDIT_NAME, "audit-%020llu", (unsigned long long)segment->seq);

	if (segment->again)
		n += snprintf(ret + n, COOP_AUDIT_NAME - (size_t)n, ".%u", segment->again);
	(void)snprintf(ret + n, COOP_AUDIT_NAME - (size_t)n, ".log");
}

int coop_audit_segment_parse(const char *name, struct coop_audit_segment *ret)
{
	char again[COOP_AUDIT_NAME];
	unsigned long long seq;
	struct coop_audit_segment segment = {0};

	if (strlen(name) >= sizeof again || sscanf(name, "audit-%20llu", &seq) != 1)
		return -EBADMSG;
	segment.seq = seq;
	(void)sscanf(name, "audit-%*20[0-9].%6u", &segment.again);
	/* Only what we would have written ourselves. */
	coop_audit_segment_name(&segment, again);
	if (strcmp(again, name) != 0)
		return -EBADMSG;
	*ret = segment;
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct coop_audit_segment *x = a, *y = b;

	if (x->seq != y->seq)
		return x->seq < y->seq ? -1 : 1;
	return x->again < y->again ? -1 : x->again > y->again;
}

static int collect(DIR *entries, struct coop_audit_segments *segments)
{
	const struct dirent *entry;
	size_t room = 0;

	for (errno = 0; (entry = readdir(entries)); errno = 0) {
		struct coop_audit_segment segment;
		if (coop_audit_segment_parse(entry->d_name, &segment) < 0)
			continue;
		if (segments->count == room) {
			room = room ? 2 * room : 16;
			void *grown = coop_mem_realloc(segments->list, room * sizeof segment);
			if (!grown)
				return -ENOMEM;
			segments->list = grown;
		}
		segments->list[segments->count++] = segment;
	}
	return -errno;
}

int coop_audit_segments_read(int dir_fd, struct coop_audit_segments *ret)
{
	struct coop_audit_segments segments = {0};
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *entries = fd < 0 ? NULL : fdopendir(fd);

	if (!entries) {
		int saved = errno;
		if (fd >= 0)
			(void)close(fd);
		return -saved;
	}
	int r = collect(entries, &segments);
	(void)closedir(entries);
	if (r < 0) {
		free(segments.list);
		return r;
	}
	if (segments.count)
		qsort(segments.list, segments.count, sizeof *segments.list, compare);
	*ret = segments;
	return 0;
}

int coop_audit_dir(const char *dir)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int open_read(int dir_fd, const char *name, struct stat *st)
{
	COOP_AUTO_FD int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0 || fstat(fd, st) < 0)
		return -errno;
	return S_ISREG(st->st_mode) ? COOP_TAKE_FD(fd) : -EINVAL;
}

/* Cuts the list where the current file stands in it, under the name that it was given meanwhile. */
static void cut(struct coop_audit_set *set, const struct stat *current)
{
	for (size_t i = set->segments.count; i > 0; i--) {
		char name[COOP_AUDIT_NAME];
		struct stat st;
		coop_audit_segment_name(&set->segments.list[i - 1], name);
		if (fstatat(set->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    st.st_dev != current->st_dev || st.st_ino != current->st_ino)
			continue;
		set->segments.count = i - 1;
		return;
	}
}

int coop_audit_set_open(const char *dir, struct coop_audit_set *ret)
{
	struct coop_audit_set set = {.dir_fd = coop_audit_dir(dir), .current = -1};
	struct stat st;
	int r = set.dir_fd;

	if (r >= 0) {
		set.current = open_read(set.dir_fd, COOP_AUDIT_CURRENT, &st);
		r = set.current == -ENOENT ? 0 : set.current;
	}
	if (r >= 0)
		r = coop_audit_segments_read(set.dir_fd, &set.segments);
	if (r < 0) {
		coop_audit_set_close(&set);
		return r;
	}
	if (set.current >= 0)
		cut(&set, &st);
	*ret = set;
	return 0;
}

void coop_audit_set_close(struct coop_audit_set *set)
{
	if (set->current >= 0)
		(void)close(set->current);
	if (set->dir_fd >= 0)
		(void)close(set->dir_fd);
	free(set->segments.list);
}

int coop_audit_set_file(const struct coop_audit_set *set, size_t i, char ret_name[COOP_AUDIT_NAME])
{
	struct stat st;

	if (i < set->segments.count) {
		coop_audit_segment_name(&set->segments.list[i], ret_name);
		return open_read(set->dir_fd, ret_name, &st);
	}
	(void)snprintf(ret_name, COOP_AUDIT_NAME, "%s", COOP_AUDIT_CURRENT);
	if (set->current < 0)
		return -ENOENT;
	int fd = fcntl(set->current, F_DUPFD_CLOEXEC, 0);
	return fd < 0 ? -errno : fd;
}

int coop_audit_reader_open(struct coop_audit_reader *reader, int fd, bool backward)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	*reader = (struct coop_audit_reader){.fd = fd, .end = (uint64_t)st.st_size};
	if (backward)
		reader->at = reader->end;
	reader->bytes = coop_mem_alloc(ROOM);
	return reader->bytes ? 0 : -ENOMEM;
}

void coop_audit_reader_close(struct coop_audit_reader *reader)
{
	free(reader->bytes);
	reader->bytes = NULL;
}

/* All `size` bytes, or fewer at the end of a file that has shrunk. A count or -errno. */
static ssize_t read_at(int fd, char *place, size_t size, uint64_t at)
{
	size_t got = 0;

	while (got < size) {
		ssize_t n = pread(fd, place + got, size - got, (off_t)(at + got));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		got += (size_t)n;
	}
	return (ssize_t)got;
}

/* Reads one step more behind what is held. 1, 0 at the end, or -errno. */
static int more(struct coop_audit_reader *reader)
{
	size_t size = reader->end - reader->at < STEP ? (size_t)(reader->end - reader->at) : STEP;

	if (!size)
		return 0;
	if (reader->head) {
		memmove(reader->bytes, reader->bytes + reader->head, reader->used);
		reader->head = 0;
	}
	ssize_t n = read_at(reader->fd, reader->bytes + reader->used, size, reader->at);
	if (n < 0)
		return (int)n;
	if ((size_t)n < size)
		reader->end = reader->at + (uint64_t)n;
	reader->at += (uint64_t)n;
	reader->used += (size_t)n;
	return n > 0;
}

int coop_audit_reader_next(struct coop_audit_reader *reader, struct coop_audit_piece *ret)
{
	struct coop_audit_piece piece = {0};
	size_t looked = 0;

	for (;;) {
		const char *front = reader->bytes + reader->head;
		const char *end = reader->used > looked
					  ? memchr(front + looked, '\n', reader->used - looked)
					  : NULL;
		if (end) {
			piece.bytes = front;
			piece.size = (size_t)(end - front);
			piece.huge |= piece.size > COOP_AUDIT_LINE_MAX;
			reader->head += piece.size + 1;
			reader->used -= piece.size + 1;
			break;
		}
		looked = reader->used;
		if (looked > COOP_AUDIT_LINE_MAX) {
			piece.huge = true;
			looked = reader->used = reader->head = 0;
		}
		int r = more(reader);
		if (r < 0)
			return r;
		if (r > 0)
			continue;
		if (!reader->used && !piece.huge)
			return 0;
		piece.torn = true;
		piece.bytes = reader->bytes + reader->head;
		piece.size = reader->used;
		reader->used = 0;
		break;
	}
	*ret = piece;
	return 1;
}

/* Reads one step more in front of what is held. 1, 0 at the file's beginning, or -errno. */
static int less(struct coop_audit_reader *reader)
{
	size_t size = reader->at < STEP ? (size_t)reader->at : STEP;

	if (!size)
		return 0;
	memmove(reader->bytes + size, reader->bytes, reader->used);
	ssize_t n = read_at(reader->fd, reader->bytes, size, reader->at - size);
	if (n < 0)
		return (int)n;
	if ((size_t)n < size)
		return -EIO; /* it has shrunk under us */
	reader->at -= size;
	reader->used += size;
	return 1;
}

int coop_audit_reader_back(struct coop_audit_reader *reader, struct coop_audit_piece *ret)
{
	struct coop_audit_piece piece = {0};

	if (!reader->used) {
		int r = less(reader);
		if (r <= 0)
			return r;
	}
	/* Only the file's last line can lack its newline: what is held ends where the line behind
	 * it begins. */
	bool whole = reader->bytes[reader->used - 1] == '\n';
	size_t size = reader->used - whole;
	for (;;) {
		const char *before = memrchr(reader->bytes, '\n', size);
		if (before || !reader->at) {
			piece.bytes = before ? before + 1 : reader->bytes;
			piece.size = (size_t)(reader->bytes + size - piece.bytes);
			reader->used = (size_t)(piece.bytes - reader->bytes);
			break;
		}
		if (size > COOP_AUDIT_LINE_MAX) {
			piece.huge = true;
			reader->used = 0;
		}
		int r = less(reader);
		if (r < 0)
			return r;
		size = reader->used - (whole && !piece.huge);
	}
	piece.huge |= piece.size > COOP_AUDIT_LINE_MAX;
	piece.torn = !whole;
	*ret = piece;
	return 1;
}
