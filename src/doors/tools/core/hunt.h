/* A text or a regular expression, looked for in what a process writes while it comes. */
#ifndef COOP_TOOLS_HUNT_H
#define COOP_TOOLS_HUNT_H

#include "client/views/pattern.h"
#include "client/views/plain.h"
#include "doors/tools/core/tap.h"

/* Zeroed but for the first part; ended with coop_hunt_end() in any case. */
struct coop_hunt {
	struct coop_tap tap; /* its stream, until_eof and hold are the caller's */
	uint64_t from;       /* what lies before is not looked at */
	/* Whether the text without escape codes is searched: a server that writes its address in
	 * colours has written it. */
	bool plain;
	/* A match that more bytes could make longer is taken when none came for so long. */
	int64_t settle_ms;

	uint64_t base;    /* offset of the first byte that the search was fed */
	uint64_t dropped; /* bytes that were lost */
	int status;       /* negative: it found no end; -ERANGE: `reason` says why */
	char reason[256];
	struct coop_pattern_match match;
	struct coop_pattern *pattern;
	struct coop_search *search; /* since the last gap */
	/* The text that is searched. Of it `seen` bytes were fed, and the first `gone` are
	 * forgotten. */
	struct coop_plain *text;
	uint64_t seen, gone;
	int64_t settle_at; /* when its end counts as the end if nothing comes; 0: nothing is new */
};

/* Compiles the pattern and begins to follow. -EINVAL: it is no pattern, hunt->reason says why; else
 * negative with call->error filled. */
int coop_hunt_begin(struct coop_hunt *hunt, struct coop_tool_call *call, const char *id,
		    const char *pattern, size_t size, bool regex);
void coop_hunt_end(struct coop_hunt *hunt);

/* It was found, cannot be found any more, or failed. */
bool coop_hunt_is_decided(const struct coop_hunt *hunt);

/* When what has come so far is to be taken for all there is; negative: not now. */
int64_t coop_hunt_due(const struct coop_hunt *hunt);
/* Does so if that is due; `last`: in any case, as there is no later look. */
void coop_hunt_look(struct coop_hunt *hunt, bool last);

/* What was found, with its place in the stream. */
struct coop_hunt_find {
	const char *text; /* while the hunt lasts */
	size_t size;
	uint64_t start, end; /* `end` is right behind its last byte */
};
struct coop_hunt_find coop_hunt_found(const struct coop_hunt *hunt);

#endif
