/* Waits until what a shell says matches one of several patterns, from the session's expect place
 * on.
 *
 * What is matched is the text without escape sequences, as it is at present: a pattern that ends
 * with $ matches a prompt. In each look the first case in the given order that matches wins. A
 * match moves the place to its end (and what has been shown with it), a miss moves nothing. */
#ifndef COOP_TOOLS_EXPECT_H
#define COOP_TOOLS_EXPECT_H

#include "client/views/pattern.h"
#include "doors/tools/core/call.h"

#define COOP_EXPECT_CASES 32

enum coop_expect_tag {
	COOP_EXPECT_OK,
	COOP_EXPECT_FAIL,
	COOP_EXPECT_CONTINUE,   /* goes on behind the match */
	COOP_EXPECT_NEXT,       /* moves nothing */
	COOP_EXPECT_NEEDS_USER, /* a human must go on */
};
extern const char *const coop_expect_tags[];

struct coop_expect_case {
	struct coop_pattern *pattern;
	enum coop_expect_tag tag;
	const char *respond; /* sent when it matches, captures filled in; NULL: nothing */
	const char *label;   /* or NULL */
};

struct coop_expect_case_list {
	struct coop_expect_case *cases;
	size_t count;
	bool hold; /* the shell waits for the search rather than lose output: its owner searches */
};

/* Fields of a case, and the check and compilation of a list of them. `where` names it in errors:
 * "cases", "steps[2].cases". Strings stay those of `list`. */
extern const struct coop_field coop_expect_case_fields[];
int coop_expect_compile(struct coop_tool_call *call, const char *where, const json_t *list,
			struct coop_expect_case_list *ret);
/* A single pattern, tagged ok. */
int coop_expect_compile_one(struct coop_tool_call *call, const char *where, const json_t *pattern,
			    struct coop_expect_case_list *ret);
void coop_expect_clear(struct coop_expect_case_list *list);

/* How it came out. Zeroed at first; the members are the caller's, to be ended with
 * coop_expect_result_clear(). */
struct coop_expect_result {
	int index;          /* of the case; -1: none */
	const char *reason; /* of none: "timeout", "eof", "exited" */
	bool cut_short;     /* the door's bound came before the caller's */
	bool went_on;       /* something was consumed by `continue` */
	json_t *output;     /* all since the place, up to the match */
	json_t *omitted;    /* {"from", "to"} of what does not fit, or NULL */
	json_t *captures;   /* the match and its groups, absent ones null; whole, however long */
};
void coop_expect_result_clear(struct coop_expect_result *result);

/* Carries it out: sends responses, moves the places, goes on after `continue` under the same
 * deadline. The output has at most `budget` bytes. 0, or the error is filled. */
int coop_expect(struct coop_tool_call *call, const char *id,
		const struct coop_expect_case_list *list, int64_t timeout_ms, size_t budget,
		struct coop_expect_result *ret);

/* Adds output, omitted and captures to an object that tells the result. Captures that do not fit
 * into `budget` bytes are cut, and captures_cut says so. 0 or -ENOMEM. */
int coop_expect_tell(const struct coop_expect_result *result, size_t budget, json_t *into);
/* Adds matched_case, tag and label, null where nothing matched. */
int coop_expect_tell_case(const struct coop_expect_case_list *list,
			  const struct coop_expect_result *result, json_t *into);
/* What to do after a result that is no plain match, or NULL. */
const char *coop_expect_hint(const struct coop_expect_case_list *list,
			     const struct coop_expect_result *result);

/* Adds to the result what only that tool tells, and may say that the answer is no. 0 or -ENOMEM. */
typedef int coop_expect_teller(struct coop_tool_call *call,
			       const struct coop_expect_case_list *list,
			       const struct coop_expect_result *result);
/* A tool that is one expect: finds the shell that the arguments name, waits, fills the result.
 * Clears the list. */
int coop_expect_run(struct coop_tool_call *call, struct coop_expect_case_list *list,
		    coop_expect_teller *tell);

/* Adds a response to `into` with the captures filled in: $0 to $99 and ${n} with the longest number
 * first, $$ is a dollar, what is absent is empty. 0, -ENOMEM, or -EMSGSIZE if it grows beyond what
 * can be written at once. */
int coop_expect_fill(const char *respond, const json_t *captures, struct coop_buf *into);

#endif
