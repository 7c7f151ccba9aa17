/* A line of the audit, as bytes: taken apart and put together. No files here. */
#ifndef COOP_RECORDS_AUDIT_LINE_H
#define COOP_RECORDS_AUDIT_LINE_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "records/secret.h"

struct coop_audit_line {
	uint64_t seq; /* from 1 */
	char prev[COOP_HASH_TEXT];
	char hash[COOP_HASH_TEXT];
	size_t hashed; /* so many bytes at the line's front are what `hash` is over */
};

/* What stands before the very first line. */
extern const char coop_audit_line_origin[COOP_HASH_TEXT];

/* `bytes` is the line without its newline. Looks at the frame of a line, not at the members inside
 * it: those are what the hash is for. 0, or -EBADMSG. */
int coop_audit_line_parse(const char *bytes, size_t size, struct coop_audit_line *ret);

/* Whether the line's hash is that of its bytes: 1, 0, or -ENOMEM. */
int coop_audit_line_true(const char *bytes, const struct coop_audit_line *line);

/* Writes a line with its newline to the end of `out`, and its hash. 0; -EINVAL: `members` has a
 * newline; -ENOMEM. */
int coop_audit_line_write(struct coop_buf *out, uint64_t seq, int64_t at_ms, const char *members,
			  const char *prev, char ret_hash[COOP_HASH_TEXT]);

#endif
