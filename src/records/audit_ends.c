#include "records/audit_ends.h"

#include <errno.h>

#include "base/cleanup.h"

/* 1 if the piece is a line that verifies, 0 if not, -errno. */
static int good_line(const struct coop_audit_piece *piece, struct coop_audit_line *ret)
{
	if (piece->torn || piece->huge || coop_audit_line_parse(piece->bytes, piece->size, ret) < 0)
		return 0;
	return coop_audit_line_true(piece->bytes, ret);
}

/* The good line of file i that is nearest to its beginning, or to its end; `ret_bad` counts what
 * was passed on the way. 1, 0: there is none, or -errno. */
static int seek(const struct coop_audit_set *set, size_t i, bool backward,
		struct coop_audit_line *ret, uint64_t *ret_bad)
{
	char name[COOP_AUDIT_NAME];
	struct coop_audit_piece piece;
	struct coop_audit_reader reader;
	COOP_AUTO_FD int fd = coop_audit_set_file(set, i, name);

	*ret_bad = 0;
	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	int r = coop_audit_reader_open(&reader, fd, backward);
	if (r < 0)
		return r;
	while ((r = backward ? coop_audit_reader_back(&reader, &piece)
			     : coop_audit_reader_next(&reader, &piece)) > 0) {
		r = good_line(&piece, ret);
		if (r)
			break;
		++*ret_bad;
	}
	coop_audit_reader_close(&reader);
	return r;
}

int coop_audit_ends_first(const struct coop_audit_set *set, struct coop_audit_line *ret)
{
	uint64_t bad;
	int r = 0;

	*ret = (struct coop_audit_line){0};
	for (size_t i = 0; i <= set->segments.count && r == 0; i++)
		r = seek(set, i, false, ret, &bad);
	return r < 0 ? r : 0;
}

static int find_last(const struct coop_audit_set *set, struct coop_audit_ends *ends)
{
	int r = 0;

	for (size_t i = set->segments.count + 1; i-- > 0 && r == 0;) {
		uint64_t bad;
		r = seek(set, i, true, &ends->last, &bad);
		if (bad && !ends->bad)
			ends->damaged = i;
		ends->bad += bad;
	}
	return r < 0 ? r : 0;
}

int coop_audit_ends_find(const struct coop_audit_set *set, struct coop_audit_ends *ret)
{
	struct coop_audit_ends ends = {0};
	struct coop_audit_line line = {0};
	uint64_t bad;
	int r = find_last(set, &ends);

	if (r == 0)
		r = coop_audit_ends_first(set, &ends.first);
	if (r == 0)
		r = seek(set, set->segments.count, false, &line, &bad);
	if (r < 0)
		return r;
	if (r > 0)
		ends.begins = line.seq;
	*ret = ends;
	return 0;
}
