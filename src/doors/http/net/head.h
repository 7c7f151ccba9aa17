/* The head of a request, and the framing of its body. llhttp knows the grammar; what it lets
 * through and a careful server must not is refused here: bare line ends, folded lines, several
 * Hosts, unknown codings.
 *
 * Bytes are taken as they come; nothing is looked at twice. */
#ifndef COOP_HTTP_HEAD_H
#define COOP_HTTP_HEAD_H

#include <llhttp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define COOP_HEAD_MAX (32u << 10)
#define COOP_HEAD_TARGET_MAX (8u << 10)
#define COOP_HEAD_LINES_MAX 100u
/* What may stand around each chunk on the average, beyond what one head may have in all. */
#define COOP_HEAD_CHUNK_MAX 256u

struct coop_head_line {
	char *name, *value; /* into the bytes; the name in lower case */
};

/* Why a head is refused. */
struct coop_head_fault {
	unsigned status;
	const char *code, *message;
};

struct coop_head {
	struct coop_buf bytes;
	size_t scanned, line_start; /* of the audit */
	unsigned blank_lines;       /* before it */
	bool complete;              /* the head */
	bool finished;              /* the whole message */
	bool trailer;               /* the last chunk has come, not yet the end */
	char trailer_last;          /* byte of it that was looked at */
	size_t trailer_column, trailer_size;
	uint64_t framing,
		chunks; /* bytes of the body that are not the body itself; what they announced */
	llhttp_t parser;
	char *target;
	size_t target_size;
	struct coop_head_line lines[COOP_HEAD_LINES_MAX];
	size_t name_sizes[COOP_HEAD_LINES_MAX], value_sizes[COOP_HEAD_LINES_MAX];
	unsigned line_count;
	struct coop_head_fault fault;
	/* Of the body: where its bytes go while coop_head_body() runs. */
	void (*sink)(void *context, const char *data, size_t size);
	void *sink_context;
};

/* NULL without memory. */
struct coop_head *coop_head_new(void);
void coop_head_free(struct coop_head *head); /* NULL is fine */

/* Takes bytes until the head is complete: 1, with *ret_used of them taken. 0: all taken, more are
 * needed. -EINVAL: head->fault says why; -ENOMEM. */
int coop_head_feed(struct coop_head *head, const char *data, size_t size, size_t *ret_used);

/* Takes bytes of the body and gives them, without their framing, to the sink. 1: the message is
 * complete, *ret_used were taken; 0: all taken; -EINVAL. Only while !head->finished. */
int coop_head_body(struct coop_head *head, const char *data, size_t size, size_t *ret_used);

/* The value of the first header of that name, or NULL. */
const char *coop_head_get(const struct coop_head *head, const char *name);
unsigned coop_head_count(const struct coop_head *head, const char *name);
/* Whether one of the comma-separated words of a header is this one, in any case of letters. */
bool coop_head_lists(const struct coop_head *head, const char *name, const char *word);

/* Whether it asks, in every respect properly, for a WebSocket. */
bool coop_head_upgrades(const struct coop_head *head);
/* Whether it wants a WebSocket of another version than 13. */
bool coop_head_other_version(const struct coop_head *head);
/* Whether it wants a WebSocket at all, properly or not. */
bool coop_head_wants_upgrade(const struct coop_head *head);

#endif
