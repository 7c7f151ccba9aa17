/* Which regular expressions are refused, by reading them as PCRE2 does: as far as classes,
 * quotations and groups go. */
#include <errno.h>
#include <string.h>

#include "client/views/compiled.h"

struct scan {
	const char *text;
	size_t size, at;
	const char *what; /* not allowed */
};

static char peek(const struct scan *scan, size_t ahead)
{
	return scan->at + ahead < scan->size ? scan->text[scan->at + ahead] : 0;
}

static bool follows(const struct scan *scan, const char *word)
{
	size_t size = strlen(word);

	return scan->size - scan->at >= size && !memcmp(scan->text + scan->at, word, size);
}

/* Behind \Q: up to \E or the end. */
static void skip_quotation(struct scan *scan)
{
	while (scan->at < scan->size && !follows(scan, "\\E"))
		scan->at++;
	scan->at += scan->at < scan->size ? 2 : 0;
}

/* At a backslash. */
static void scan_escape(struct scan *scan, bool in_class)
{
	char next = peek(scan, 1);

	if (next == 'Q') {
		scan->at += 2;
		skip_quotation(scan);
		return;
	}
	if (next == 'C')
		scan->what = "\\C (one byte)";
	else if (!in_class && ((next >= '1' && next <= '9') || next == 'g' || next == 'k'))
		scan->what = "a back reference";
	else if (!in_class && next == 'K')
		scan->what = "\\K";
	else if (!in_class && next == 'G')
		scan->what = "\\G";
	if (scan->what)
		return;
	/* \c takes the next character with it. */
	scan->at += next == 'c' && peek(scan, 2) ? 3 : 2;
}

/* At "[:", "[." or "[=" in a class: where its own end stands, or 0 if it is an ordinary bracket. */
static size_t named_class_end(const struct scan *scan)
{
	char mark = peek(scan, 1);

	if (mark != ':' && mark != '.' && mark != '=')
		return 0;
	for (size_t at = scan->at + 2; at + 1 < scan->size; at++) {
		if (scan->text[at] == '\\' || scan->text[at] == '[')
			return 0;
		if (scan->text[at] == ']')
			return 0;
		if (scan->text[at] == mark && scan->text[at + 1] == ']')
			return at + 2;
	}
	return 0;
}

/* At the bracket that opens a class. */
static void scan_class(struct scan *scan)
{
	bool is_negated = false;

	scan->at++;
	/* A bracket right behind these is an ordinary one; empty quotations do not count. */
	for (;;) {
		if (follows(scan, "\\E"))
			scan->at += 2;
		else if (follows(scan, "\\Q\\E"))
			scan->at += 4;
		else if (!is_negated && peek(scan, 0) == '^')
			scan->at += is_negated = true;
		else
			break;
	}
	if (peek(scan, 0) == ']')
		scan->at++;
	while (scan->at < scan->size && !scan->what) {
		char c = peek(scan, 0);
		size_t end = c == '[' ? named_class_end(scan) : 0;
		if (c == ']') {
			scan->at++;
			return;
		}
		if (c == '\\')
			scan_escape(scan, true);
		else
			scan->at = end ? end : scan->at + 1;
	}
}

/* At "(?": flags, with a colon or a parenthesis behind them. */
static bool is_flags(const struct scan *scan)
{
	size_t ahead = 2;

	while (peek(scan, ahead) && strchr("ims-", peek(scan, ahead)))
		ahead++;
	return peek(scan, ahead) == ':' || peek(scan, ahead) == ')';
}

static const char *group_fault(const struct scan *scan)
{
	static const struct {
		const char *begin, *what;
	} known[] = {
		{"(?=", "look-ahead"},        {"(?!", "look-ahead"}, {"(?<=", "look-behind"},
		{"(?<!", "look-behind"},      {"(?*", "look-ahead"}, {"(?<*", "look-behind"},
		{"(?R", "recursion"},         {"(?&", "recursion"},  {"(?P>", "recursion"},
		{"(?P=", "a back reference"}, {"(?C", "a callout"},  {"(?(", "a condition"},
		{"(?>", "an atomic group"},   {"(?#", "a comment"},  {"(?|", "a branch reset"},
	};

	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		if (follows(scan, known[i].begin))
			return known[i].what;
	}
	if (follows(scan, "(?<") || follows(scan, "(?P<") || is_flags(scan))
		return NULL;
	return "this form of (?";
}

static void scan_group(struct scan *scan)
{
	if (peek(scan, 1) == '*')
		scan->what = "a verb (*…";
	else if (peek(scan, 1) == '?')
		scan->what = group_fault(scan);
	scan->at += scan->what ? 0 : 1;
}

int coop_syntax_check(const char *text, size_t size, const char **ret_what, size_t *ret_at)
{
	struct scan scan = {.text = text, .size = size};

	while (scan.at < size && !scan.what) {
		if (text[scan.at] == '\\')
			scan_escape(&scan, false);
		else if (text[scan.at] == '[')
			scan_class(&scan);
		else if (text[scan.at] == '(')
			scan_group(&scan);
		else
			scan.at++;
	}
	if (!scan.what)
		return 0;
	*ret_what = scan.what;
	*ret_at = scan.at;
	return -EINVAL;
}
