#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "records/audit.h"
#include "records/audit_files.h"
#include "records/audit_line.h"

void coop_audit_anchor_format(const struct coop_audit_anchor *anchor,
			      char ret[COOP_AUDIT_ANCHOR_TEXT])
{
	(void)snprintf(ret, COOP_AUDIT_ANCHOR_TEXT, "%llu %s %llu %s",
		       (unsigned long long)anchor->first, anchor->first_prev,
		       (unsigned long long)anchor->last, anchor->last_hash);
}

int coop_audit_anchor_parse(const char *text, struct coop_audit_anchor *ret)
{
	struct coop_audit_anchor anchor = {0};
	unsigned long long first, last;
	char again[COOP_AUDIT_ANCHOR_TEXT];

	if (sscanf(text, "%20llu %64[0-9a-f] %20llu %64[0-9a-f]", &first, anchor.first_prev, &last,
		   anchor.last_hash) != 4)
		return -EBADMSG;
	anchor.first = first;
	anchor.last = last;
	/* sscanf is generous with spaces, signs and overflow; we are not. */
	coop_audit_anchor_format(&anchor, again);
	if (strcmp(again, text) != 0 || strlen(anchor.first_prev) != COOP_HASH_TEXT - 1 ||
	    strlen(anchor.last_hash) != COOP_HASH_TEXT - 1)
		return -EBADMSG;
	*ret = anchor;
	return 0;
}

/* One run over all files. */
struct walk {
	const struct coop_audit_anchor *anchor;
	bool live;
	struct coop_audit_report *report;
	char file[COOP_AUDIT_NAME];
	uint64_t line; /* in that file */
	/* The line before: seq 0 where none was readable yet. */
	uint64_t seq;
	char hash[COOP_HASH_TEXT];
};

/* Only the first fault is kept; the walk goes on to count. */
__attribute__((format(printf, 3, 4))) static void fault(struct walk *walk, uint64_t line,
							const char *format, ...)
{
	struct coop_audit_report *report = walk->report;
	va_list arguments;

	if (!report->good)
		return;
	report->good = false;
	report->line = line;
	memcpy(report->file, walk->file, sizeof report->file);
	va_start(arguments, format);
	(void)vsnprintf(report->fault, sizeof report->fault, format, arguments);
	va_end(arguments);
}

/* The first line of all: nothing stands before it, only the anchor knows whether something
 * should. */
static void check_first(struct walk *walk, const struct coop_audit_line *line)
{
	const struct coop_audit_anchor *anchor = walk->anchor;

	walk->report->first = line->seq;
	if (line->seq == 1 && strcmp(line->prev, coop_audit_line_origin) != 0)
		fault(walk, walk->line, "seq 1 follows another line, though it is the first");
	if (!anchor || !anchor->first)
		return;
	if (line->seq > anchor->first)
		fault(walk, walk->line, "lines are missing before seq %llu: the first was %llu",
		      (unsigned long long)line->seq, (unsigned long long)anchor->first);
	else if (line->seq < anchor->first)
		fault(walk, walk->line, "there are lines before seq %llu, which was the first",
		      (unsigned long long)anchor->first);
	else if (strcmp(line->prev, anchor->first_prev) != 0)
		fault(walk, walk->line, "seq %llu is not the line that was written",
		      (unsigned long long)line->seq);
}

static void check_chain(struct walk *walk, const struct coop_audit_line *line)
{
	unsigned long long seq = line->seq;

	if (!walk->seq)
		check_first(walk, line);
	else if (line->seq <= walk->seq)
		fault(walk, walk->line, "seq %llu stands behind seq %llu", seq,
		      (unsigned long long)walk->seq);
	else if (line->seq - walk->seq > 1)
		fault(walk, walk->line, "lines are missing before seq %llu", seq);
	else if (strcmp(line->prev, walk->hash) != 0)
		fault(walk, walk->line, "seq %llu does not follow from the line before it", seq);
	if (walk->anchor && line->seq == walk->anchor->last &&
	    strcmp(line->hash, walk->anchor->last_hash) != 0)
		fault(walk, walk->line, "seq %llu is not the line that was written", seq);
	walk->seq = line->seq;
	memcpy(walk->hash, line->hash, sizeof line->hash);
	walk->report->last = line->seq;
}

/* 0 or -ENOMEM. */
static int check_line(struct walk *walk, const struct coop_audit_piece *piece)
{
	struct coop_audit_line line;
	unsigned long long n = walk->line;

	if (piece->torn) {
		fault(walk, n, "line %llu is torn: it has no end", n);
		return 0;
	}
	if (piece->huge || coop_audit_line_parse(piece->bytes, piece->size, &line) < 0) {
		fault(walk, n, "line %llu is not a line of the audit", n);
		return 0;
	}
	int r = coop_audit_line_true(piece->bytes, &line);
	if (r < 0)
		return r;
	if (!r)
		fault(walk, n, "line %llu was changed", n);
	check_chain(walk, &line);
	return 0;
}

/* Whether it may be a line that is being written just now: the reader saw half of it. */
static bool unfinished(const struct walk *walk, const struct coop_audit_piece *piece, bool current)
{
	return piece->torn && current && walk->live && walk->anchor &&
	       walk->seq >= walk->anchor->last;
}

static int check_file(struct walk *walk, int fd, const struct coop_audit_segment *segment)
{
	struct coop_audit_reader reader;
	struct coop_audit_piece piece;
	int r = coop_audit_reader_open(&reader, fd, false);

	if (r < 0)
		return r;
	walk->report->files++;
	walk->line = 0;
	while ((r = coop_audit_reader_next(&reader, &piece)) > 0) {
		if (unfinished(walk, &piece, !segment)) {
			r = 0;
			break;
		}
		walk->line++;
		walk->report->lines++;
		r = check_line(walk, &piece);
		if (r < 0)
			break;
		if (walk->line == 1 && segment && walk->seq != segment->seq)
			fault(walk, 0, "the file's name does not fit its first line");
	}
	coop_audit_reader_close(&reader);
	return r;
}

/* The end, when all was read. */
static void check_last(struct walk *walk)
{
	const struct coop_audit_anchor *anchor = walk->anchor;

	if (!anchor)
		return;
	if (!walk->seq && anchor->last)
		fault(walk, 0, "all lines are missing: the last was %llu",
		      (unsigned long long)anchor->last);
	else if (walk->seq < anchor->last)
		fault(walk, 0, "lines are missing after seq %llu: the last was %llu",
		      (unsigned long long)walk->seq, (unsigned long long)anchor->last);
	else if (walk->seq > anchor->last && !walk->live)
		fault(walk, 0, "there are lines after seq %llu, which was the last",
		      (unsigned long long)anchor->last);
}

int coop_audit_verify(const char *dir, const struct coop_audit_anchor *anchor, bool live,
		      struct coop_audit_report *ret)
{
	struct coop_audit_report report = {.good = true};
	struct walk walk = {.anchor = anchor, .live = live, .report = &report};
	struct coop_audit_set set;
	int r = coop_audit_set_open(dir, &set);

	if (r < 0)
		return r;
	for (size_t i = 0; i <= set.segments.count && r == 0; i++) {
		COOP_AUTO_FD int fd = coop_audit_set_file(&set, i, walk.file);
		/* Gone meanwhile, or not there: what it had is missing in the chain. */
		if (fd == -ENOENT)
			continue;
		r = fd < 0 ? fd
			   : check_file(&walk, fd,
					i < set.segments.count ? &set.segments.list[i] : NULL);
	}
	coop_audit_set_close(&set);
	if (r < 0)
		return r;
	check_last(&walk);
	*ret = report;
	return 0;
}
