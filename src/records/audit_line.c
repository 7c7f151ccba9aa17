#include "records/audit_line.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"

#define HEX (COOP_HASH_TEXT - 1)

static const char seq_begins[] = "{\"seq\":";
static const char at_begins[] = ",\"at\":\"";
static const char prev_begins[] = ",\"prev\":\"";
static const char hash_begins[] = ",\"hash\":\"";

/* From the comma before "hash" to the brace. */
#define HASH_SIZE (sizeof hash_begins - 1 + HEX + 2)
/* From the comma before "prev" to the quote. */
#define PREV_SIZE (sizeof prev_begins - 1 + HEX + 1)

const char coop_audit_line_origin[COOP_HASH_TEXT] =
	"0000000000000000000000000000000000000000000000000000000000000000";

/* Takes `text` off the front. */
static bool take(const char **at, const char *end, const char *text)
{
	size_t size = strlen(text);

	if ((size_t)(end - *at) < size || memcmp(*at, text, size) != 0)
		return false;
	*at += size;
	return true;
}

/* A number as it is written here: without a sign or leading zeros, not 0. */
static bool take_number(const char **at, const char *end, uint64_t *ret)
{
	const char *p = *at;
	uint64_t value = 0;

	for (; p < end && *p >= '0' && *p <= '9'; p++) {
		uint64_t digit = (uint64_t)(*p - '0');
		if (value > (UINT64_MAX - digit) / 10)
			return false;
		value = value * 10 + digit;
		if (!value)
			return false;
	}
	if (p == *at)
		return false;
	*at = p;
	*ret = value;
	return true;
}

static bool take_hash(const char **at, const char *end, char ret[COOP_HASH_TEXT])
{
	if (end - *at < (ptrdiff_t)HEX)
		return false;
	for (size_t i = 0; i < HEX; i++) {
		char c = (*at)[i];
		if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'f'))
			return false;
		ret[i] = c;
	}
	ret[HEX] = 0;
	*at += HEX;
	return true;
}

int coop_audit_line_parse(const char *bytes, size_t size, struct coop_audit_line *ret)
{
	const char *at = bytes, *end = bytes + size;
	struct coop_audit_line line = {0};

	if (!take(&at, end, seq_begins) || !take_number(&at, end, &line.seq) ||
	    !take(&at, end, at_begins))
		return -EBADMSG;
	if ((size_t)(end - at) < PREV_SIZE + HASH_SIZE)
		return -EBADMSG;
	at = end - HASH_SIZE - PREV_SIZE;
	if (!take(&at, end, prev_begins) || !take_hash(&at, end, line.prev) ||
	    !take(&at, end, "\"") || !take(&at, end, hash_begins) ||
	    !take_hash(&at, end, line.hash) || !take(&at, end, "\"}"))
		return -EBADMSG;
	line.hashed = size - HASH_SIZE;
	*ret = line;
	return 0;
}

static int hash_text(const void *bytes, size_t size, char ret[COOP_HASH_TEXT])
{
	uint8_t hash[COOP_HASH_SIZE];
	int r = coop_hash(bytes, size, hash);

	if (r == 0)
		coop_hash_format(hash, ret);
	return r;
}

int coop_audit_line_true(const char *bytes, const struct coop_audit_line *line)
{
	char hash[COOP_HASH_TEXT];
	int r = hash_text(bytes, line->hashed, hash);

	return r < 0 ? r : strcmp(hash, line->hash) == 0;
}

int coop_audit_line_write(struct coop_buf *out, uint64_t seq, int64_t at_ms, const char *members,
			  const char *prev, char ret_hash[COOP_HASH_TEXT])
{
	char moment[COOP_CLOCK_TEXT], front[80];
	size_t size = strlen(members);
	const size_t most = sizeof front + 1 + size + PREV_SIZE + HASH_SIZE + 2;

	if (memchr(members, '\n', size))
		return -EINVAL;
	/* All of it at once: nothing below fails for memory in the middle of a line. */
	char *begin = (char *)coop_buf_reserve(out, most), *at = begin;
	if (!begin)
		return -ENOMEM;
	coop_clock_format(at_ms, moment);
	at += sprintf(at, "%s%llu%s%s\"", seq_begins, (unsigned long long)seq, at_begins, moment);
	if (size)
		*at++ = ',';
	at = mempcpy(at, members, size);
	at += sprintf(at, "%s%s\"", prev_begins, prev);
	int r = hash_text(begin, (size_t)(at - begin), ret_hash);
	if (r < 0)
		return r;
	at += sprintf(at, "%s%s\"}\n", hash_begins, ret_hash);
	coop_buf_commit(out, (size_t)(at - begin));
	return 0;
}
