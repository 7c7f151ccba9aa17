#include "records/audit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/mem.h"
#include "records/audit_ends.h"
#include "records/audit_files.h"
#include "records/audit_line.h"

#define NEXT "audit.new"  /* becomes audit.log when that is full */
#define GATHER_MAX 65536u /* bytes of lines that are written at once, and one line more */

struct coop_audit {
	char *dir;
	int dir_fd, fd;
	struct coop_audit_anchor anchor;
	uint64_t begins; /* seq of the current file's first line; 0: it is empty */
	uint64_t size;   /* of the current file */
	uint64_t max_bytes;
	unsigned keep;
	bool crowded;  /* there may be more full files than `keep` */
	off_t torn_at; /* half a line stands there that could not be taken away again; -1: none */
	/* The file whose end is damaged, until the line that says so is written; "": none. */
	char damaged[COOP_AUDIT_NAME];
	uint64_t damaged_lines;
	struct coop_buf line;
};

static int failed(const char *dir, const char *what, int status, struct coop_err *err)
{
	if (status == -ENOMEM)
		return coop_err_no_memory(err);
	const char *why = strerror(-status);
	if (status == -ELOOP)
		why = "one of its files is a link";
	if (status == -EINVAL)
		why = "something that is not a file has the name of one of its files";
	(void)coop_err_set(err, COOP_UNAVAILABLE, "the audit %s/" COOP_AUDIT_CURRENT " %s: %s", dir,
			   what, why);
	coop_err_detail(err, "errno", coop_err_errno_name(-status));
	return status;
}

/* Closes a file under a segment's name. 0 with the name, or -errno. */
static int name_segment(int dir_fd, uint64_t seq, char ret_name[COOP_AUDIT_NAME])
{
	struct coop_audit_segment segment = {.seq = seq};
	struct stat st;

	/* Nothing that stands there is ever replaced. Only one keeper writes here, so nothing comes
	 * in between. */
	for (coop_audit_segment_name(&segment, ret_name);
	     fstatat(dir_fd, ret_name, &st, AT_SYMLINK_NOFOLLOW) == 0;
	     coop_audit_segment_name(&segment, ret_name))
		segment.again++;
	if (errno != ENOENT)
		return -errno;
	return renameat(dir_fd, COOP_AUDIT_CURRENT, dir_fd, ret_name) < 0 ? -errno : 0;
}

/* An fd, or -errno. */
static int open_append(int dir_fd, const char *name, int flags, uint64_t *ret_size)
{
	struct stat st;
	COOP_AUTO_FD int fd = openat(
		dir_fd, name,
		O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | flags, 0600);

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if ((st.st_mode & 0777) != 0600 && fchmod(fd, 0600) < 0)
		return -errno;
	*ret_size = (uint64_t)st.st_size;
	return COOP_TAKE_FD(fd);
}

/* The next file is made before the old one loses its name, and whatever fails leaves the old one in
 * use. */
static int rotate(struct coop_audit *audit)
{
	char name[COOP_AUDIT_NAME];
	uint64_t size;

	(void)unlinkat(audit->dir_fd, NEXT, 0); /* of a keeper that died here */
	int fd = open_append(audit->dir_fd, NEXT, O_EXCL, &size);
	if (fd < 0)
		return fd;
	int r = name_segment(audit->dir_fd, audit->begins, name);
	if (r == 0 && renameat(audit->dir_fd, NEXT, audit->dir_fd, COOP_AUDIT_CURRENT) < 0) {
		r = -errno;
		(void)renameat(audit->dir_fd, name, audit->dir_fd, COOP_AUDIT_CURRENT);
	}
	if (r < 0) {
		(void)unlinkat(audit->dir_fd, NEXT, 0);
		(void)close(fd);
		return r;
	}
	(void)close(audit->fd);
	audit->fd = fd;
	audit->size = audit->begins = 0;
	audit->crowded = true;
	return 0;
}

/* Removes full files beyond `keep`, and learns where the chain begins now. A failure is tried again
 * with the next line. */
static void prune(struct coop_audit *audit)
{
	struct coop_audit_segments *segments;
	struct coop_audit_line first;
	struct coop_audit_set set;
	char name[COOP_AUDIT_NAME];

	if (coop_audit_set_open(audit->dir, &set) < 0)
		return;
	segments = &set.segments;
	size_t over = segments->count > audit->keep ? segments->count - audit->keep : 0;
	size_t gone = 0;
	for (; gone < over; gone++) {
		coop_audit_segment_name(&segments->list[gone], name);
		if (unlinkat(audit->dir_fd, name, 0) < 0 && errno != ENOENT)
			break;
	}
	segments->count -= gone;
	if (gone)
		memmove(segments->list, segments->list + gone,
			segments->count * sizeof *segments->list);
	if (!gone) {
		audit->crowded = over != 0;
	} else if (coop_audit_ends_first(&set, &first) == 0 && first.seq) {
		audit->anchor.first = first.seq;
		memcpy(audit->anchor.first_prev, first.prev, sizeof first.prev);
		audit->crowded = gone < over;
	}
	coop_audit_set_close(&set);
}

/* One write, whole or not at all. 0 or -errno. */
static int put(struct coop_audit *audit, const void *bytes, size_t size)
{
	ssize_t n;

	if (audit->torn_at >= 0 && ftruncate(audit->fd, audit->torn_at) < 0)
		return -errno;
	audit->torn_at = -1;
	do
		n = write(audit->fd, bytes, size);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	if ((size_t)n == size)
		return 0;
	/* The file's real end, should somebody else have changed its size. */
	off_t end = lseek(audit->fd, 0, SEEK_CUR);
	off_t begin = end < n ? (off_t)audit->size : end - n;
	if (ftruncate(audit->fd, begin) < 0)
		audit->torn_at = begin;
	return -ENOSPC;
}

/* Lines that follow the last one, with their newlines. */
struct lines {
	const void *bytes;
	size_t size;
	uint64_t first, last;
	const char *hash; /* of the last */
};

/* 0 or -errno: then nothing of them is in the file. */
static int put_lines(struct coop_audit *audit, const struct lines *lines)
{
	struct coop_audit_anchor *anchor = &audit->anchor;

	/* A file that cannot be closed grows on: the bound is not worth a line. */
	if (audit->begins && audit->torn_at < 0 && audit->size + lines->size > audit->max_bytes)
		(void)rotate(audit);
	int r = put(audit, lines->bytes, lines->size);
	if (r < 0)
		return r;
	if (!anchor->first) {
		anchor->first = lines->first;
		memcpy(anchor->first_prev, anchor->last_hash, COOP_HASH_TEXT);
	}
	if (!audit->begins)
		audit->begins = lines->first;
	anchor->last = lines->last;
	memcpy(anchor->last_hash, lines->hash, COOP_HASH_TEXT);
	audit->size += lines->size;
	/* Only now: the last line is always in some file. */
	if (audit->crowded)
		prune(audit);
	return 0;
}

static int add(struct coop_audit *audit, int64_t at_ms, const char *members)
{
	const struct coop_audit_anchor *anchor = &audit->anchor;
	char hash[COOP_HASH_TEXT];
	uint64_t seq = anchor->last + 1;
	int r = coop_audit_line_write(&audit->line, seq, at_ms, members, anchor->last_hash, hash);
	size_t size = coop_buf_size(&audit->line);
	const struct lines lines = {coop_buf_front(&audit->line), size, seq, seq, hash};

	if (r == 0 && size - 1 > COOP_AUDIT_LINE_MAX)
		r = -EMSGSIZE;
	if (r == 0)
		r = put_lines(audit, &lines);
	coop_buf_consume(&audit->line, size);
	return r;
}

static int add_damage(struct coop_audit *audit)
{
	char members[160];

	if (!*audit->damaged)
		return 0;
	(void)snprintf(members, sizeof members,
		       "\"kind\":\"damage\",\"file\":\"%s\",\"lines\":%llu", audit->damaged,
		       (unsigned long long)audit->damaged_lines);
	int r = add(audit, coop_clock_wall_ms(), members);
	if (r == 0)
		audit->damaged[0] = 0;
	return r;
}

int coop_audit_append(struct coop_audit *audit, int64_t at_ms, const char *members,
		      uint64_t *ret_seq)
{
	int r = add_damage(audit);

	if (r == 0)
		r = add(audit, at_ms, members);
	if (r == 0)
		*ret_seq = audit->anchor.last;
	return r;
}

/* Whether the entry is the line that comes after one with that number and hash. */
static bool follows(const struct coop_backlog_entry *entry, uint64_t last, const char *hash,
		    struct coop_audit_line *ret)
{
	const char *bytes = (const char *)entry->bytes;

	return entry->size && bytes[entry->size - 1] == '\n' &&
	       coop_audit_line_parse(bytes, entry->size - 1, ret) == 0 && ret->seq == last + 1 &&
	       !strcmp(ret->prev, hash);
}

/* Whether a line goes into the same file as those before it that were gathered. */
static bool fits(const struct coop_audit *audit, size_t size)
{
	size_t gathered = coop_buf_size(&audit->line);
	/* The first one begins another file if this one has no room for it. */
	bool same = audit->size + gathered <= audit->max_bytes;

	return !gathered || (same ? audit->size : 0) + gathered + size <= audit->max_bytes;
}

/* Gathers lines from `*at` on in audit->line: many small writes cost more than one. `check` is for
 * lines of another keeper. 0 with what was gathered, none at the end; -errno. */
static int gather(struct coop_audit *audit, const struct coop_backlog *backlog, bool check,
		  uint64_t *at, uint64_t end, struct lines *ret, struct coop_audit_line *last)
{
	struct coop_backlog_entry entry;
	uint64_t next = *at;
	int r = 0;

	*ret = (struct lines){.first = audit->anchor.last + 1, .last = audit->anchor.last};
	ret->hash = audit->anchor.last_hash;
	while (r == 0 && coop_buf_size(&audit->line) < GATHER_MAX &&
	       (r = coop_backlog_next(backlog, COOP_LANE_AUDIT, &next, end, &entry)) > 0) {
		struct coop_audit_line line;
		r = 0;
		if (entry.number > audit->anchor.last) {
			if (!fits(audit, entry.size))
				break;
			if (!follows(&entry, ret->last, ret->hash, &line))
				r = -EBADMSG;
			else if (check &&
				 (r = coop_audit_line_true((const char *)entry.bytes, &line)) >= 0)
				r = r ? 0 : -EBADMSG;
			if (r == 0)
				r = coop_buf_append(&audit->line, entry.bytes, entry.size);
			/* Those before it are good, and written. */
			if (r < 0)
				break;
			*last = line;
			ret->last = line.seq;
			ret->hash = last->hash;
		}
		*at = entry.end;
	}
	ret->bytes = coop_buf_front(&audit->line);
	ret->size = coop_buf_size(&audit->line);
	return ret->size ? 0 : r;
}

static int carry(struct coop_audit *audit, const struct coop_backlog *backlog, bool check,
		 uint64_t end, uint64_t *ret_done)
{
	struct coop_audit_line last;
	struct lines lines;
	uint64_t at = 0;
	int r = add_damage(audit);

	while (r == 0) {
		uint64_t before = at;
		r = gather(audit, backlog, check, &at, end, &lines, &last);
		int put_result = lines.size ? put_lines(audit, &lines) : 0;
		coop_buf_consume(&audit->line, lines.size);
		if (put_result < 0)
			return put_result;
		if (at == before)
			break;
		*ret_done = at;
	}
	return r;
}

int coop_audit_carry(struct coop_audit *audit, const struct coop_backlog *backlog, uint64_t end,
		     uint64_t *ret_done)
{
	return carry(audit, backlog, false, end, ret_done);
}

int coop_audit_recover(struct coop_audit *audit, struct coop_backlog *backlog)
{
	uint64_t end = coop_backlog_end(backlog, COOP_LANE_AUDIT), done = 0;
	int r = carry(audit, backlog, true, end, &done);

	if (r == -EBADMSG) {
		struct coop_backlog_entry entry;
		(void)snprintf(audit->damaged, sizeof audit->damaged, "backlog");
		for (audit->damaged_lines = 0;
		     coop_backlog_next(backlog, COOP_LANE_AUDIT, &done, end, &entry) > 0;)
			audit->damaged_lines++;
		r = add_damage(audit);
	}
	if (r == 0)
		coop_backlog_advance(backlog, COOP_LANE_AUDIT, end);
	return r;
}

void coop_audit_limit(struct coop_audit *audit, uint64_t max_bytes, unsigned keep)
{
	if (audit->max_bytes == max_bytes && audit->keep == keep)
		return;
	audit->max_bytes = max_bytes;
	audit->keep = keep;
	audit->crowded = true;
}

void coop_audit_anchor(const struct coop_audit *audit, struct coop_audit_anchor *ret)
{
	*ret = audit->anchor;
}

/* Takes over the chain from the files that are there. A damaged current file gets a segment's name.
 * 0 or -errno. */
static int take_over(struct coop_audit *audit)
{
	struct coop_audit_set set;
	struct coop_audit_ends ends = {0};
	struct coop_audit_anchor *anchor = &audit->anchor;
	int r = coop_audit_set_open(audit->dir, &set);

	if (r < 0)
		return r;
	r = coop_audit_ends_find(&set, &ends);
	if (r == 0 && ends.last.seq) {
		anchor->first = ends.first.seq;
		memcpy(anchor->first_prev, ends.first.prev, sizeof ends.first.prev);
		anchor->last = ends.last.seq;
		memcpy(anchor->last_hash, ends.last.hash, sizeof ends.last.hash);
	}
	audit->begins = ends.begins;
	audit->damaged_lines = ends.bad;
	if (r == 0 && ends.bad && ends.damaged < set.segments.count)
		coop_audit_segment_name(&set.segments.list[ends.damaged], audit->damaged);
	else if (r == 0 && ends.bad)
		r = name_segment(audit->dir_fd, ends.begins ? ends.begins : anchor->last + 1,
				 audit->damaged);
	if (r == 0 && ends.bad)
		audit->begins = 0;
	coop_audit_set_close(&set);
	return r;
}

int coop_audit_open(const char *dir, uint64_t max_bytes, unsigned keep, struct coop_audit **ret,
		    struct coop_err *err)
{
	struct coop_audit *audit = coop_mem_zalloc(sizeof *audit);

	if (!audit)
		return coop_err_no_memory(err);
	audit->fd = audit->dir_fd = -1;
	audit->torn_at = -1;
	audit->max_bytes = max_bytes;
	audit->keep = keep;
	audit->crowded = true;
	memcpy(audit->anchor.first_prev, coop_audit_line_origin, COOP_HASH_TEXT);
	memcpy(audit->anchor.last_hash, coop_audit_line_origin, COOP_HASH_TEXT);
	audit->dir = coop_mem_strdup(dir);
	audit->dir_fd = audit->dir ? coop_audit_dir(dir) : -ENOMEM;
	int r = audit->dir_fd < 0 ? audit->dir_fd : take_over(audit);
	if (r < 0) {
		r = failed(dir, "cannot be read", r, err);
	} else {
		audit->fd = open_append(audit->dir_fd, COOP_AUDIT_CURRENT, 0, &audit->size);
		r = audit->fd < 0 ? failed(dir, "cannot be written", audit->fd, err) : 0;
	}
	if (r < 0) {
		coop_audit_close(audit);
		return r;
	}
	/* Where that fails, for lack of space perhaps, it comes before the next line. */
	(void)add_damage(audit);
	*ret = audit;
	return 0;
}

void coop_audit_close(struct coop_audit *audit)
{
	if (!audit)
		return;
	if (audit->fd >= 0)
		(void)close(audit->fd);
	if (audit->dir_fd >= 0)
		(void)close(audit->dir_fd);
	coop_buf_clear(&audit->line);
	free(audit->dir);
	free(audit);
}
