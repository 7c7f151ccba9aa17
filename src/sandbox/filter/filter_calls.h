/* What the standard filter refuses, as data. */
#ifndef COOP_SANDBOX_FILTER_CALLS_H
#define COOP_SANDBOX_FILTER_CALLS_H

#include <stddef.h>
#include <stdint.h>

/* The first number of a system call that nobody has looked at: from here on there are none. */
#define COOP_FILTER_UNKNOWN 470

/* Refused with EPERM whatever their arguments are. Ends with NULL. */
extern const char *const coop_filter_refused[];

/* Refused where both hold: the bits of `mask` in one argument are `value`, and any of `bits` is set
 * in another. A mask or bits of 0 say nothing. Only the low half of an argument is looked at: of an
 * int the kernel ignores the rest, and callers may leave anything there. */
struct coop_filter_rule {
	const char *name;
	int error;
	struct {
		uint32_t arg, mask, value;
	} is;
	struct {
		uint32_t arg, bits;
	} any;
};

/* Both end with a rule without a name. The second belongs to the filters without network alone. */
extern const struct coop_filter_rule coop_filter_rules[];
extern const struct coop_filter_rule coop_filter_network_rules[];

#define COOP_FILTER_VALUES_MAX 7
#define COOP_FILTER_WHEN_MAX 2

/* Refused unless the argument is one of these values; with `when`, only where another argument is
 * one of those. Ends with one without a name. */
struct coop_filter_choice {
	const char *name;
	int error;
	uint32_t arg, value_count;
	uint32_t values[COOP_FILTER_VALUES_MAX];
	struct {
		uint32_t arg, count; /* 0: always */
		uint32_t values[COOP_FILTER_WHEN_MAX];
	} when;
};
extern const struct coop_filter_choice coop_filter_choices[];
/* For who sees the host's processes. */
extern const struct coop_filter_choice coop_filter_others_choices[];

/* The number of a system call; -ENOSYS: this architecture has none of that name; -EINVAL: nor has
 * any other. */
int coop_filter_number(const char *name);

#endif
