#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "records/audit.h"
#include "records/audit_files.h"
#include "records/audit_line.h"

#define MOST (4u << 20)

/* Filled from its end to its front, since the newest line is found first. */
struct stack {
	char *bytes;
	size_t free; /* so much at the front */
	uint64_t want;
};

/* Lines go to clients inside of JSON: what is none would spoil all of it. */
static bool is_object(const struct coop_audit_piece *piece)
{
	if (piece->huge || piece->torn || !piece->size || memchr(piece->bytes, 0, piece->size))
		return false;
	/* One whose hash is right was written by a keeper, as JSON. Only others have to be
	 * parsed. */
	struct coop_audit_line line;
	if (coop_audit_line_parse(piece->bytes, piece->size, &line) == 0 &&
	    coop_audit_line_true(piece->bytes, &line) > 0)
		return true;
	json_t *value = json_loadb(piece->bytes, piece->size, 0, NULL);
	bool is = json_is_object(value);
	json_decref(value);
	return is;
}

/* 1, or 0 if it has no room. */
static int push(struct stack *stack, const struct coop_audit_piece *piece)
{
	char other[64];
	const char *bytes = piece->bytes;
	size_t size = piece->size;

	if (!is_object(piece)) {
		size = (size_t)snprintf(other, sizeof other,
					"{\"kind\":\"unreadable\",\"size\":%zu}", piece->size);
		bytes = other;
	}
	if (size + 1 > stack->free)
		return 0;
	stack->free -= size + 1;
	memcpy(stack->bytes + stack->free, bytes, size);
	stack->bytes[stack->free + size] = '\n';
	stack->want--;
	return 1;
}

/* 1, 0 when no more is wanted, or -errno. */
static int push_file(struct stack *stack, int fd, bool current)
{
	struct coop_audit_reader reader;
	struct coop_audit_piece piece;
	int r = coop_audit_reader_open(&reader, fd, true);

	if (r < 0)
		return r;
	while (stack->want && (r = coop_audit_reader_back(&reader, &piece)) > 0) {
		/* Half a line of the current file is one that is being written. */
		if (piece.torn && current)
			continue;
		if (!push(stack, &piece))
			stack->want = 0;
	}
	coop_audit_reader_close(&reader);
	return r < 0 ? r : stack->want > 0;
}

int coop_audit_tail(const char *dir, uint64_t count, struct coop_buf *out)
{
	struct stack stack = {.free = MOST, .want = count};
	COOP_AUTO_FREE char *bytes = coop_mem_alloc(MOST);
	struct coop_audit_set set;

	if (!bytes)
		return -ENOMEM;
	stack.bytes = bytes;
	int r = coop_audit_set_open(dir, &set);
	if (r < 0)
		return r;
	r = 1;
	for (size_t i = set.segments.count + 1; i-- > 0 && r > 0 && stack.want;) {
		char name[COOP_AUDIT_NAME];
		COOP_AUTO_FD int fd = coop_audit_set_file(&set, i, name);
		if (fd == -ENOENT)
			continue;
		r = fd < 0 ? fd : push_file(&stack, fd, i == set.segments.count);
	}
	coop_audit_set_close(&set);
	if (r < 0)
		return r;
	/* Between lines, not behind the last. */
	size_t size = MOST - stack.free;
	return coop_buf_append(out, bytes + stack.free, size ? size - 1 : 0);
}
