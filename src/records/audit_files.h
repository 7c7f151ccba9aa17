/* The audit's files: which there are, in which order, and reading them line by line from either
 * end. Any thread. */
#ifndef COOP_RECORDS_AUDIT_FILES_H
#define COOP_RECORDS_AUDIT_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COOP_AUDIT_NAME 64u
#define COOP_AUDIT_CURRENT "audit.log"

/* A full file. `again` counts files that begin with the same number: one that had no good line
 * leaves its number to the next. */
struct coop_audit_segment {
	uint64_t seq;
	unsigned again;
};

struct coop_audit_segments {
	struct coop_audit_segment *list; /* oldest first */
	size_t count;
};

void coop_audit_segment_name(const struct coop_audit_segment *segment, char ret[COOP_AUDIT_NAME]);

/* 0 or -EBADMSG: it is not a segment's name. */
int coop_audit_segment_parse(const char *name, struct coop_audit_segment *ret);

/* 0 or -errno; the list is to be freed. */
int coop_audit_segments_read(int dir_fd, struct coop_audit_segments *ret);

/* Opens the folder for the functions that take dir_fd. An fd or -errno. */
int coop_audit_dir(const char *dir);

/* All files as of one moment, also while the writer closes one and begins the next: the current one
 * is opened before the others are listed, and what came after it is left out. `current` is negative
 * if there is none. 0 or -errno. */
struct coop_audit_set {
	int dir_fd, current;
	struct coop_audit_segments segments;
};
int coop_audit_set_open(const char *dir, struct coop_audit_set *ret);
void coop_audit_set_close(struct coop_audit_set *set);

/* Opens the set's i-th file, oldest first; i == segments.count is the current one. An fd or
 * -errno. */
int coop_audit_set_file(const struct coop_audit_set *set, size_t i, char ret_name[COOP_AUDIT_NAME]);

/* A line of a file, without its newline; bytes are the reader's until its next step. */
struct coop_audit_piece {
	const char *bytes;
	size_t size;
	bool torn; /* the file ends without a newline */
	bool huge; /* longer than COOP_AUDIT_LINE_MAX: bytes are not given */
};

struct coop_audit_reader {
	int fd;
	uint64_t at, end; /* forward: what was read of how much. backward: what is still unread */
	char *bytes;
	size_t head, used;
};

/* The file as it is now, up to its size. `fd` stays the caller's. 0 or -errno. */
int coop_audit_reader_open(struct coop_audit_reader *reader, int fd, bool backward);
void coop_audit_reader_close(struct coop_audit_reader *reader);

/* 1 with a line, 0: no more, or -errno. One reader goes one way only. */
int coop_audit_reader_next(struct coop_audit_reader *reader, struct coop_audit_piece *ret);
int coop_audit_reader_back(struct coop_audit_reader *reader, struct coop_audit_piece *ret);

#endif
