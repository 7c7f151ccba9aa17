#include "doors/http/net/head.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"

#define BLANK_LINES_MAX 4u

static int fault(struct coop_head *head, unsigned status, const char *code, const char *message)
{
	head->fault = (struct coop_head_fault){status, code, message};
	return -EINVAL;
}

static int bad(struct coop_head *head, const char *message)
{
	return fault(head, 400, "invalid_argument", message);
}

/* The head is executed in one piece, so that each name and value is one span of it. */
static int on_url(llhttp_t *parser, const char *at, size_t size)
{
	struct coop_head *head = parser->data;

	head->target = (char *)(uintptr_t)at;
	head->target_size = size;
	return 0;
}

static int on_field(llhttp_t *parser, const char *at, size_t size)
{
	struct coop_head *head = parser->data;

	if (head->complete)
		return 0; /* a trailer */
	if (head->line_count == COOP_HEAD_LINES_MAX) {
		(void)fault(head, 431, "too_large", "the request has more than 100 header lines");
		return HPE_USER;
	}
	head->lines[head->line_count] =
		(struct coop_head_line){(char *)(uintptr_t)at, (char *)(uintptr_t)at + size};
	head->name_sizes[head->line_count] = size;
	head->value_sizes[head->line_count] = 0;
	head->line_count++;
	return 0;
}

static int on_value(llhttp_t *parser, const char *at, size_t size)
{
	struct coop_head *head = parser->data;

	/* An empty value is told of at the start of the next line, where nothing may be written. */
	if (head->complete || !head->line_count || !size)
		return 0;
	if (head->value_sizes[head->line_count - 1]) {
		(void)bad(head, "a header's value is folded");
		return HPE_USER;
	}
	head->lines[head->line_count - 1].value = (char *)(uintptr_t)at;
	head->value_sizes[head->line_count - 1] = size;
	return 0;
}

/* Ends names and values with a NUL: what stands there has been parsed. */
static void finish_lines(struct coop_head *head)
{
	for (unsigned i = 0; i < head->line_count; i++) {
		char *name = head->lines[i].name, *value = head->lines[i].value;
		size_t size = head->value_sizes[i];

		while (size && (value[size - 1] == ' ' || value[size - 1] == '\t'))
			size--;
		for (size_t k = 0; k < head->name_sizes[i]; k++)
			name[k] = (char)tolower((unsigned char)name[k]);
		value[size] = 0;
		name[head->name_sizes[i]] = 0;
	}
	head->target[head->target_size] = 0;
}

/* Leaves the path of a target that names the server, too. Who is meant must not be told in two
 * ways. */
static int strip_authority(struct coop_head *head, size_t scheme)
{
	char *authority = head->target + scheme;
	size_t size = strcspn(authority, "/?#");
	const char *host = coop_head_get(head, "host");

	if (host && (strlen(host) != size || strncasecmp(host, authority, size) != 0))
		return bad(head, "the target names another server than Host");
	head->target = authority + size;
	return 0;
}

static int check_target(struct coop_head *head)
{
	int r = 0;

	if (strncasecmp(head->target, "http://", 7) == 0)
		r = strip_authority(head, 7);
	else if (strncasecmp(head->target, "https://", 8) == 0)
		r = strip_authority(head, 8);
	if (r < 0)
		return r;
	const char *target = head->target;
	if (target[0] != '/')
		return bad(head, "the target is no path");
	for (const char *at = target; *at; at++) {
		if ((unsigned char)*at <= ' ' || (unsigned char)*at >= 0x7f)
			return bad(head, "the target has characters that must be escaped");
	}
	return 0;
}

/* Whoever stands between client and gateway may look at the first of two lines where we look at the
 * last: what says who asks, from where, or what the bytes are must stand there once. */
static int check_single(struct coop_head *head)
{
	static const char *const names[] = {
		"authorization",         "origin",
		"content-type",          "sec-websocket-key",
		"sec-websocket-version", "mcp-session-id",
		"mcp-protocol-version",
	};

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		if (coop_head_count(head, names[i]) > 1)
			return bad(head,
				   "a header that stands in a request once stands there twice");
	}
	return 0;
}

static int check_head(struct coop_head *head)
{
	const llhttp_t *parser = &head->parser;

	if (parser->http_major != 1 || parser->http_minor > 1)
		return fault(head, 505, "invalid_argument",
			     "only HTTP/1.1 and HTTP/1.0 are spoken here");
	if (parser->method == HTTP_CONNECT)
		return fault(head, 405, "method_not_allowed", "CONNECT is not offered");
	if (coop_head_count(head, "host") != 1 &&
	    (parser->http_minor == 1 || coop_head_get(head, "host")))
		return bad(head, "the request needs exactly one Host");
	/* Not by the parser's flag: an empty value does not set it. */
	if (coop_head_get(head, "transfer-encoding") && !(parser->flags & F_CHUNKED))
		return bad(head, "the only transfer coding is chunked");
	if (coop_head_count(head, "transfer-encoding") > 1 ||
	    coop_head_count(head, "content-length") > 1)
		return bad(head, "the length of the body is told twice");
	if (parser->flags & F_CHUNKED) {
		if (strcasecmp(coop_head_get(head, "transfer-encoding"), "chunked") != 0)
			return bad(head, "the only transfer coding is chunked");
		if (parser->http_minor == 0)
			return bad(head, "HTTP/1.0 knows no transfer coding");
	}
	int r = check_single(head);
	return r < 0 ? r : check_target(head);
}

static int on_headers_complete(llhttp_t *parser)
{
	struct coop_head *head = parser->data;

	finish_lines(head);
	head->complete = true;
	if (check_head(head) < 0)
		return -1;
	/* With it set the parser would take what follows for another protocol. */
	parser->upgrade = coop_head_upgrades(head);
	return 0;
}

static int on_body(llhttp_t *parser, const char *at, size_t size)
{
	struct coop_head *head = parser->data;

	head->framing -= size;
	if (head->sink)
		head->sink(head->sink_context, at, size);
	return 0;
}

/* The parser lets the trailer end with a bare LF, so that has to be looked at before it does. */
static int on_chunk_header(llhttp_t *parser)
{
	struct coop_head *head = parser->data;

	head->chunks++;
	if (parser->content_length)
		return 0;
	head->trailer = true;
	return HPE_PAUSED;
}

static int on_message_complete(llhttp_t *parser)
{
	struct coop_head *head = parser->data;

	head->finished = true;
	return HPE_PAUSED; /* one request at a time */
}

struct coop_head *coop_head_new(void)
{
	static const llhttp_settings_t settings = {
		.on_url = on_url,
		.on_header_field = on_field,
		.on_header_value = on_value,
		.on_headers_complete = on_headers_complete,
		.on_body = on_body,
		.on_chunk_header = on_chunk_header,
		.on_message_complete = on_message_complete,
	};
	struct coop_head *head = coop_mem_zalloc(sizeof *head);

	if (!head)
		return NULL;
	llhttp_init(&head->parser, HTTP_REQUEST, &settings);
	head->parser.data = head;
	return head;
}

void coop_head_free(struct coop_head *head)
{
	if (!head)
		return;
	coop_buf_clear(&head->bytes);
	free(head);
}

static int run_parser(struct coop_head *head)
{
	const char *bytes = (const char *)coop_buf_front(&head->bytes);
	llhttp_errno_t error = llhttp_execute(&head->parser, bytes, coop_buf_size(&head->bytes));

	if (head->fault.status)
		return -EINVAL;
	if ((error != HPE_OK && error != HPE_PAUSED && error != HPE_PAUSED_UPGRADE) ||
	    !head->complete)
		return bad(head, "the request is no proper HTTP");
	if (error == HPE_PAUSED)
		llhttp_resume(&head->parser);
	return 1;
}

/* One more byte of the head, which stands at `at`. 1: it was the last one. */
static int audit(struct coop_head *head, const char *bytes, size_t at)
{
	char c = bytes[at];
	bool after_cr = at > 0 && bytes[at - 1] == '\r';

	if ((c == '\n') != after_cr)
		return bad(head, "a line does not end with CR LF");
	if (c == 0)
		return bad(head, "the head has a NUL");
	if (at == head->line_start && at > 0 && (c == ' ' || c == '\t' || c == ':'))
		return bad(head, "a header line begins with a space or a colon");
	if (c != '\n')
		return 0;
	bool blank = at == head->line_start + 1;
	if (head->line_start == 0 && at + 1 > COOP_HEAD_TARGET_MAX + 64)
		return fault(head, 414, "too_large", "the target is longer than 8 KiB");
	head->line_start = at + 1;
	return blank;
}

static int limit(struct coop_head *head)
{
	if (head->line_start == 0 && head->scanned > COOP_HEAD_TARGET_MAX + 64)
		return fault(head, 414, "too_large", "the target is longer than 8 KiB");
	if (head->scanned >= COOP_HEAD_MAX)
		return fault(head, 431, "too_large", "the head is longer than 32 KiB");
	return 0;
}

/* A few empty lines before a request are the tail of a sloppy client's last body. */
static int skip_blank_line(struct coop_head *head)
{
	coop_buf_consume(&head->bytes, 2);
	head->scanned = head->line_start = 0;
	if (++head->blank_lines > BLANK_LINES_MAX)
		return bad(head, "nothing but empty lines");
	return 0;
}

int coop_head_feed(struct coop_head *head, const char *data, size_t size, size_t *ret_used)
{
	size_t room = COOP_HEAD_MAX - coop_buf_size(&head->bytes);
	size_t part = size < room ? size : room;

	if (coop_buf_append(&head->bytes, data, part) < 0)
		return -ENOMEM;
	while (head->scanned < coop_buf_size(&head->bytes)) {
		const char *bytes = (const char *)coop_buf_front(&head->bytes);
		int r = audit(head, bytes, head->scanned++);
		if (r > 0 && head->scanned == 2) {
			r = skip_blank_line(head);
		} else if (r > 0) {
			size_t behind = coop_buf_size(&head->bytes) - head->scanned;
			*ret_used = part - behind;
			head->bytes.tail -= behind;
			return run_parser(head);
		}
		if (r < 0)
			return r;
	}
	*ret_used = part;
	return limit(head);
}

/* Looks at bytes of a trailer as at those of a head; *ret_size are those up to its end, which is
 * among them or not. */
static int audit_trailer(struct coop_head *head, const char *data, size_t size, size_t *ret_size)
{
	bool end = false;

	for (*ret_size = 0; *ret_size < size && !end;) {
		char c = data[(*ret_size)++];
		bool after_cr = head->trailer_last == '\r';
		if ((c == '\n') != after_cr || c == 0)
			return bad(head, "a line of the trailer does not end with CR LF");
		if (head->trailer_column == 0 && (c == ' ' || c == '\t' || c == ':'))
			return bad(head, "a line of the trailer begins with a space or a colon");
		if (++head->trailer_size > COOP_HEAD_MAX)
			return fault(head, 431, "too_large", "the trailer is longer than 32 KiB");
		end = c == '\n' && head->trailer_column == 1;
		head->trailer_column = c == '\n' ? 0 : head->trailer_column + 1;
		head->trailer_last = c;
	}
	return 0;
}

/* Runs the parser up to the end of the body, of the last chunk's line, or of the bytes. */
static int run_body(struct coop_head *head, const char *data, size_t size, size_t *ret_used)
{
	llhttp_errno_t error = llhttp_execute(&head->parser, data, size);

	*ret_used = size;
	if (error == HPE_PAUSED) {
		*ret_used = (size_t)(llhttp_get_error_pos(&head->parser) - data);
		llhttp_resume(&head->parser);
	} else if (error != HPE_OK) {
		return bad(head, "the body's framing is broken");
	}
	return head->finished;
}

int coop_head_body(struct coop_head *head, const char *data, size_t size, size_t *ret_used)
{
	int r = 0;

	for (*ret_used = 0; r == 0 && *ret_used < size;) {
		size_t part = size - *ret_used, used;
		if (head->trailer && audit_trailer(head, data + *ret_used, part, &part) < 0)
			return -EINVAL;
		head->framing += part;
		r = run_body(head, data + *ret_used, part, &used);
		head->framing -= part - used;
		*ret_used += used;
		if (head->framing > COOP_HEAD_MAX + head->chunks * COOP_HEAD_CHUNK_MAX)
			return fault(head, 431, "too_large", "the body is mostly framing");
	}
	return r;
}

const char *coop_head_get(const struct coop_head *head, const char *name)
{
	for (unsigned i = 0; i < head->line_count; i++) {
		if (strcmp(head->lines[i].name, name) == 0)
			return head->lines[i].value;
	}
	return NULL;
}

unsigned coop_head_count(const struct coop_head *head, const char *name)
{
	unsigned count = 0;

	for (unsigned i = 0; i < head->line_count; i++)
		count += strcmp(head->lines[i].name, name) == 0;
	return count;
}

static bool list_has(const char *list, const char *word)
{
	size_t size = strlen(word);

	while (*list) {
		list += strspn(list, " \t,");
		size_t length = strcspn(list, ","), trimmed = length;
		while (trimmed && (list[trimmed - 1] == ' ' || list[trimmed - 1] == '\t'))
			trimmed--;
		if (trimmed == size && strncasecmp(list, word, size) == 0)
			return true;
		list += length;
	}
	return false;
}

bool coop_head_lists(const struct coop_head *head, const char *name, const char *word)
{
	for (unsigned i = 0; i < head->line_count; i++) {
		if (strcmp(head->lines[i].name, name) == 0 && list_has(head->lines[i].value, word))
			return true;
	}
	return false;
}

/* 16 bytes in base64. */
static bool is_key(const char *key)
{
	if (!key || strlen(key) != 24 || strcmp(key + 22, "==") != 0)
		return false;
	for (int i = 0; i < 22; i++) {
		if (!isalnum((unsigned char)key[i]) && key[i] != '+' && key[i] != '/')
			return false;
	}
	return true;
}

bool coop_head_wants_upgrade(const struct coop_head *head)
{
	return head->parser.method == HTTP_GET && head->parser.http_minor == 1 &&
	       coop_head_lists(head, "connection", "upgrade") &&
	       coop_head_lists(head, "upgrade", "websocket");
}

bool coop_head_upgrades(const struct coop_head *head)
{
	const char *version = coop_head_get(head, "sec-websocket-version");

	return coop_head_wants_upgrade(head) &&
	       !(head->parser.flags & (F_CHUNKED | F_CONTENT_LENGTH)) && version &&
	       strcmp(version, "13") == 0 && coop_head_count(head, "sec-websocket-key") == 1 &&
	       is_key(coop_head_get(head, "sec-websocket-key"));
}

bool coop_head_other_version(const struct coop_head *head)
{
	const char *version = coop_head_get(head, "sec-websocket-version");

	return coop_head_wants_upgrade(head) && (!version || strcmp(version, "13") != 0);
}
