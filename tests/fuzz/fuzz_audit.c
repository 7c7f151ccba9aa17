/* The audit's readers of outside bytes: a line, a segment's name, an anchor; and a file's lines,
 * which are the same from either end. */
#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "records/audit.h"
#include "records/audit_files.h"
#include "records/audit_line.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

static void check_line(const char *bytes, size_t size)
{
	struct coop_audit_line line;
	int r = coop_audit_line_parse(bytes, size, &line);

	assert(r == 0 || r == -EBADMSG);
	if (r < 0)
		return;
	assert(line.seq && line.hashed < size);
	assert(strlen(line.prev) == COOP_HASH_TEXT - 1 && strlen(line.hash) == COOP_HASH_TEXT - 1);
	assert(!memcmp(bytes + size - 2 - strlen(line.hash), line.hash, strlen(line.hash)));
	assert(!memcmp(bytes + line.hashed - 1 - strlen(line.prev), line.prev, strlen(line.prev)));
	assert(coop_audit_line_true(bytes, &line) >= 0);
}

/* What is understood is written the same again. */
static void check_texts(const char *text)
{
	struct coop_audit_segment segment;
	struct coop_audit_anchor anchor;
	char again[COOP_AUDIT_ANCHOR_TEXT];

	if (coop_audit_segment_parse(text, &segment) == 0) {
		coop_audit_segment_name(&segment, again);
		assert(!strcmp(again, text));
	}
	if (coop_audit_anchor_parse(text, &anchor) == 0) {
		coop_audit_anchor_format(&anchor, again);
		assert(!strcmp(again, text));
	}
}

/* Forward the pieces are what stands there; backward they are the same. */
static void check_file(const uint8_t *input, size_t size)
{
	struct coop_audit_reader forward, backward;
	struct coop_audit_piece piece;
	size_t at = 0;
	int fd = memfd_create("audit", MFD_CLOEXEC);

	assert(fd >= 0 && write(fd, input, size) == (ssize_t)size);
	assert(coop_audit_reader_open(&forward, fd, false) == 0);
	assert(coop_audit_reader_open(&backward, fd, true) == 0);
	while (coop_audit_reader_next(&forward, &piece) > 0) {
		assert(!piece.huge && piece.size + !piece.torn <= size - at);
		assert(!memcmp(piece.bytes, input + at, piece.size));
		assert(!memchr(piece.bytes, '\n', piece.size));
		check_line(piece.bytes, piece.size);
		at += piece.size;
		assert(piece.torn ? at == size : input[at] == '\n');
		at += !piece.torn;
	}
	assert(at == size);
	while (coop_audit_reader_back(&backward, &piece) > 0) {
		assert(!piece.huge && piece.size + !piece.torn <= at);
		assert(piece.torn == (at == size && input[at - 1] != '\n'));
		at -= piece.size + !piece.torn;
		assert(!memcmp(piece.bytes, input + at, piece.size));
		assert(!memchr(piece.bytes, '\n', piece.size));
	}
	assert(at == 0);
	coop_audit_reader_close(&forward);
	coop_audit_reader_close(&backward);
	(void)close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	char *text = malloc(size + 1);

	assert(text);
	if (size)
		memcpy(text, input, size);
	text[size] = 0;
	/* A copy without the NUL behind it, so that reading on is seen. */
	char *bytes = malloc(size ? size : 1);
	assert(bytes);
	memcpy(bytes, text, size);
	check_line(bytes, size);
	check_texts(text);
	check_file(input, size);
	free(bytes);
	free(text);
	return 0;
}
