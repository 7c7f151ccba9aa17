/* The body of a plan: put together by the keeper, checked by the launcher (plan.h says what stands
 * in it). */
#ifndef COOP_SANDBOX_BODY_H
#define COOP_SANDBOX_BODY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "sandbox/plan/plan.h"

#define COOP_BODY_RULES_MAX 8192u
#define COOP_BODY_LIMITS_MAX 64u
#define COOP_BODY_STRINGS_MAX (1u << 20) /* of argv and envp together */

struct coop_layout;

enum coop_body_part {
	COOP_BODY_ALL,
	/* what a slot does in advance: nothing of it is the command's. The same bytes: the same
	 * kind of slot */
	COOP_BODY_BASE,
	COOP_BODY_REST, /* the other part of ALL, for a slot that has done BASE */
};

struct coop_body {
	enum coop_body_part part;
	const struct coop_layout *layout; /* NULL: the host's view as it is */
	const struct coop_plan_limit *limits;
	size_t limit_count;
	const char *const *argv, *const *envp; /* NULL-terminated; NULL: none */
	const char *cwd; /* in the new view: sets COOP_PLAN_CWD_PATH; NULL: an fd says it */
};

/* Appends the body to *ret_body, and fills in the plan: counts, cwd, body_size. 0; -ENOMEM;
 * -E2BIG. */
int coop_body_build(const struct coop_body *parts, struct coop_plan *plan,
		    struct coop_buf *ret_body);

/* Where the pieces are; all pointers point into the body. */
struct coop_body_view {
	const struct coop_plan_op *ops;
	const struct coop_plan_rule *rules;
	const struct coop_plan_limit *limits;
	const char *text;
	size_t text_size;
};

/* Whether the body is what the plan says: counts, sizes, every offset in range, every string ended,
 * every path normal. The body must be aligned as a struct coop_plan_op is. No heap, no system call;
 * *ret_view is filled if so. */
bool coop_body_valid(const struct coop_plan *plan, const void *body, size_t size,
		     struct coop_body_view *ret_view);

/* One received message: whether it is a plan of the right size, and which fd is which, as its flags
 * say; they come without gaps. *ret_fds has room for all of enum coop_plan_fd and the extra ones;
 * -1 where there is none. 0 or -EPROTO. */
int coop_body_receive(const struct coop_plan *plan, size_t size, const int *received, size_t count,
		      int *ret_fds);

#endif
