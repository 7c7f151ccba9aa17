#include <errno.h>

#include "base/cleanup.h"
#include "records/audit.h"
#include "records/audit_files.h"
#include "records/audit_line.h"

struct walk {
	uint64_t from;
	int (*line)(void *user, uint64_t seq, const char *bytes, size_t size);
	void *user;
};

/* Lines that are not whole, or not true, say nothing. */
static int read_file(int fd, const struct walk *walk)
{
	struct coop_audit_reader reader;
	struct coop_audit_piece piece;
	struct coop_audit_line line;
	int r = coop_audit_reader_open(&reader, fd, false);

	if (r < 0)
		return r;
	while (r == 0 && (r = coop_audit_reader_next(&reader, &piece)) > 0) {
		r = 0;
		if (piece.torn || piece.huge ||
		    coop_audit_line_parse(piece.bytes, piece.size, &line) < 0 ||
		    line.seq < walk->from)
			continue;
		r = coop_audit_line_true(piece.bytes, &line);
		if (r > 0)
			r = walk->line(walk->user, line.seq, piece.bytes, piece.size);
	}
	coop_audit_reader_close(&reader);
	return r;
}

int coop_audit_each(const char *dir, uint64_t from,
		    int (*line)(void *user, uint64_t seq, const char *bytes, size_t size),
		    void *user)
{
	const struct walk walk = {from, line, user};
	struct coop_audit_set set;
	char name[COOP_AUDIT_NAME];
	int r = coop_audit_set_open(dir, &set);

	if (r < 0)
		return r;
	for (size_t i = 0; i <= set.segments.count && r == 0; i++) {
		/* One that ends before the next begins, which is not later than what is wanted. */
		if (i + 1 < set.segments.count && set.segments.list[i + 1].seq <= from)
			continue;
		COOP_AUTO_FD int fd = coop_audit_set_file(&set, i, name);
		if (fd == -ENOENT)
			continue;
		r = fd < 0 ? fd : read_file(fd, &walk);
	}
	coop_audit_set_close(&set);
	return r;
}
