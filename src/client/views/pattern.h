/* Finds a text or a regular expression in bytes that come in pieces, in bounded memory and linear
 * time. By PCRE2 with limits: a match spans at most COOP_PATTERN_SPAN bytes, and no byte costs more
 * than a fixed amount of work. */
#ifndef COOP_VIEWS_PATTERN_H
#define COOP_VIEWS_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COOP_PATTERN_SPAN 65536u
#define COOP_PATTERN_GROUPS 100     /* captures, the match itself included */
#define COOP_PATTERN_TEXT_MAX 4096u /* bytes of a pattern */

struct coop_pattern; /* compiled; may be used by many searches */

/* Compiles. The syntax: POSIX extended, \d \w \s \b, lazy quantifiers, (?i) (?m) (?s) (?:),
 * non-capturing and named groups; back references, look-around, recursion, callouts, verbs, \C and
 * \K are refused, and so is every other form of (?. A line ends with LF, CR or both, so that .
 * matches neither and (?m)$ holds before CR LF. -EINVAL with the reason in `reason` ("… at position
 * 7") for what cannot be had; -ENOMEM. */
int coop_pattern_new(const char *text, size_t size, bool regex, struct coop_pattern **ret,
		     char reason[256]);
void coop_pattern_free(struct coop_pattern *pattern); /* NULL is fine */

struct coop_pattern_match {
	bool found;
	/* Offsets of groups relative to the first byte ever fed; [0] is the match. An absent one
	 * has start = end = COOP_NO_GROUP. */
	struct {
		uint64_t start, end;
	} groups[COOP_PATTERN_GROUPS];
	unsigned count; /* of groups, 1 or more */
};
#define COOP_NO_GROUP UINT64_MAX

/* One search over a stream of bytes. Keeps what a match could still begin in: at most 2 *
 * COOP_PATTERN_SPAN bytes. */
struct coop_search;
struct coop_search *coop_search_new(const struct coop_pattern *pattern); /* NULL without memory */
void coop_search_free(struct coop_search *search);                       /* NULL is fine */
/* Looks at more bytes, which need not be UTF-8: what is none counts as one character for each byte,
 * which . matches and no letter. The match does not depend on how the bytes were cut into feeds:
 * while more bytes could make a match longer or shorter, it is not told. 0 with *ret filled (found:
 * the first match; nothing may be fed afterwards). -ERANGE: the pattern met its limits, `reason`
 * says so; -ENOMEM. With `last` nothing follows, so that $ and \b see the end. */
int coop_search_feed(struct coop_search *search, const void *bytes, size_t size, bool last,
		     struct coop_pattern_match *ret, char reason[256]);
/* The match that there would be if nothing followed what was fed so far; the search goes on as if
 * it had not been asked. For a prompt behind which a program waits. As of feed(). */
int coop_search_peek(struct coop_search *search, struct coop_pattern_match *ret, char reason[256]);
/* The bytes of a group of the match that was found, while the search lasts. NULL for an absent
 * one. */
const char *coop_search_group(const struct coop_search *search,
			      const struct coop_pattern_match *match, unsigned group,
			      size_t *ret_size);

/* The first match in whole bytes that are at hand, from `from` on (bytes before it are looked at by
 * ^ and \b only). Offsets are those of the bytes. As above. */
int coop_pattern_find(const struct coop_pattern *pattern, const void *bytes, size_t size,
		      size_t from, struct coop_pattern_match *ret, char reason[256]);

#endif
