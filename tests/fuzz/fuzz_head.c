/* Heads and bodies of requests: what is taken is taken alike however it is cut into packets, a
 * plain reader of the same bytes sees the same lines, the same body and the same end, and nothing
 * is taken whose end two parties could see in two places. */
#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "doors/http/net/head.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

#define TOKEN "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

/* What became of one request. */
struct outcome {
	int result; /* 1: whole, 0: more is needed, -1: refused */
	bool head;  /* the head was taken */
	size_t used, head_size;
	struct coop_buf body;
};

static void keep(void *context, const char *data, size_t size)
{
	struct outcome *outcome = context;

	assert(coop_buf_append(&outcome->body, data, size) == 0);
}

static bool same(const struct coop_buf *a, const struct coop_buf *b)
{
	size_t size = coop_buf_size(a);

	return size == coop_buf_size(b) &&
	       (!size || memcmp(coop_buf_front(a), coop_buf_front(b), size) == 0);
}

static bool is_plain(const char *text)
{
	for (; *text; text++) {
		if (*text == '\r' || *text == '\n')
			return false;
	}
	return true;
}

static void check_taken(const struct coop_head *head)
{
	bool chunked = coop_head_count(head, "transfer-encoding") > 0;
	unsigned lengths = coop_head_count(head, "content-length");

	assert(head->complete && head->line_count <= COOP_HEAD_LINES_MAX);
	assert(head->target[0] == '/' && strlen(head->target) <= COOP_HEAD_TARGET_MAX + 64);
	for (const char *at = head->target; *at; at++)
		assert((uint8_t)*at > ' ' && (uint8_t)*at < 0x7f);
	for (unsigned i = 0; i < head->line_count; i++) {
		const char *name = head->lines[i].name, *value = head->lines[i].value;
		assert(*name && strspn(name, TOKEN) == strlen(name) && is_plain(value));
		for (; *name; name++)
			assert(!isupper((uint8_t)*name));
	}
	assert(coop_head_count(head, "host") == 1 ||
	       (head->parser.http_minor == 0 && !coop_head_get(head, "host")));
	assert(lengths + chunked <= 1);
	if (chunked)
		assert(strcasecmp(coop_head_get(head, "transfer-encoding"), "chunked") == 0);
	if (coop_head_upgrades(head))
		assert(!chunked && !lengths && head->finished);
}

/* Feeds bytes of exactly the size, so that the sanitizer sees a read past them. */
static int feed(struct coop_head *head, struct outcome *outcome, const uint8_t *bytes, size_t size)
{
	char *own = malloc(size ? size : 1);
	size_t at = 0, used = 0;
	int r = 0;

	assert(own);
	memcpy(own, bytes, size);
	if (!outcome->head) {
		r = coop_head_feed(head, own, size, &used);
		if (r >= 0)
			assert(used <= size && (r == 1 || used == size));
		if (r == 1) {
			outcome->head = true;
			outcome->head_size = outcome->used + used;
			check_taken(head);
			r = head->finished;
		}
		at = used;
	}
	if (r == 0 && outcome->head) {
		r = coop_head_body(head, own + at, size - at, &used);
		assert(r < 0 || (used <= size - at && (r == 1 || used == size - at)));
		at += used;
	}
	assert(r >= 0 || (r == -EINVAL && head->fault.status >= 400 && head->fault.code &&
			  head->fault.message));
	outcome->used += at;
	free(own);
	return r;
}

/* Each packet's size comes from the input itself; with `cut` 0 all comes at once. */
static struct outcome run(const uint8_t *input, size_t size, unsigned cut)
{
	struct outcome outcome = {0};
	struct coop_head *head = coop_head_new();
	int r = 0;

	assert(head);
	head->sink = keep;
	head->sink_context = &outcome;
	for (size_t at = 0; at < size && r == 0;) {
		size_t part = cut ? 1 + (cut + input[at]) % cut : size;
		part = part < size - at ? part : size - at;
		r = feed(head, &outcome, input + at, part);
		at += part;
	}
	outcome.result = r < 0 ? -1 : r;
	coop_head_free(head);
	return outcome;
}

/* The value of a header in the raw head, read plainly: one line each, up to its CR LF. NULL if
 * there is none. */
static char *plain_header(const char *head, const char *name)
{
	size_t length = strlen(name);

	for (const char *line = strstr(head, "\r\n"); line; line = strstr(line, "\r\n")) {
		line += 2;
		if (strncasecmp(line, name, length) != 0 || line[length] != ':')
			continue;
		const char *value = line + length + 1;
		value += strspn(value, " \t");
		return strndup(value, (size_t)(strstr(value, "\r\n") - value));
	}
	return NULL;
}

/* A plain reader of chunks: the body, and where it ends. False: it does not end, or is none. */
static bool plain_chunks(const char *at, const char *end, struct coop_buf *body,
			 const char **ret_end)
{
	for (;;) {
		size_t digits = 0;
		uint64_t size = 0;
		while (at + digits < end && isxdigit((uint8_t)at[digits]) && digits < 16) {
			char digit[2] = {at[digits], 0};
			size = size << 4 | strtoul(digit, NULL, 16);
			digits++;
		}
		const char *line = memmem(at, (size_t)(end - at), "\r\n", 2);
		if (!digits || !line || (at[digits] != ';' && at + digits != line))
			return false;
		at = line + 2;
		if (!size)
			break;
		if (size > (size_t)(end - at) || (size_t)(end - at) - size < 2 ||
		    memcmp(at + size, "\r\n", 2) != 0)
			return false;
		assert(coop_buf_append(body, at, size) == 0);
		at += size + 2;
	}
	for (;;) {
		const char *line = memmem(at, (size_t)(end - at), "\r\n", 2);
		if (!line)
			return false;
		*ret_end = line + 2;
		if (line == at)
			return true;
		at = line + 2;
	}
}

/* A request that was taken whole ends, and has the body, where a plain reader says. */
static void check_plainly(const uint8_t *input, size_t size, const struct outcome *outcome)
{
	/* Empty lines before a request are passed over. */
	const char *start = (const char *)input, *end = start + size;
	const char *body = start + outcome->head_size;
	struct coop_buf expected = {0};

	while (start[0] == '\r' && start[1] == '\n')
		start += 2;
	assert(body - start >= 4 && memcmp(body - 4, "\r\n\r\n", 4) == 0);
	char *head = strndup(start, (size_t)(body - start));
	assert(head && strlen(head) == (size_t)(body - start));
	assert(strstr(head, "\r\n\r\n") == head + (body - start) - 4);
	char *length = plain_header(head, "content-length");
	char *coding = plain_header(head, "transfer-encoding");
	const char *whole = body;

	if (coding) {
		assert(plain_chunks(body, end, &expected, &whole));
	} else if (length) {
		char *rest;
		errno = 0;
		unsigned long long n = strtoull(length, &rest, 10);
		assert(isdigit((uint8_t)length[0]) && rest[strspn(rest, " \t")] == 0 && !errno);
		assert(n <= (size_t)(end - body));
		whole = body + n;
		assert(coop_buf_append(&expected, body, n) == 0);
	}
	assert(outcome->used == (size_t)(whole - (const char *)input));
	assert(same(&expected, &outcome->body));
	coop_buf_clear(&expected);
	free(length);
	free(coding);
	free(head);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	static const unsigned cuts[] = {1, 7, 300};
	struct outcome whole = run(input, size, 0);

	for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
		struct outcome parts = run(input, size, cuts[i]);
		assert(parts.result == whole.result && parts.head == whole.head);
		if (whole.result == 1) {
			assert(parts.used == whole.used && parts.head_size == whole.head_size);
			assert(same(&parts.body, &whole.body));
		}
		coop_buf_clear(&parts.body);
	}
	if (whole.result == 1)
		check_plainly(input, size, &whole);
	coop_buf_clear(&whole.body);
	return 0;
}
