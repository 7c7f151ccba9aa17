/* The inside of struct coop_policy, for those who judge by it. */
#ifndef COOP_POLICY_RULES_H
#define COOP_POLICY_RULES_H

#include "policy/policy.h"

#define COOP_RULES_MAX 256u       /* entries of a list */
#define COOP_RULES_TEXT_MAX 1024u /* bytes of an entry */
#define COOP_RULES_SOURCE_MAX 96u /* bytes kept of where it stands, with the NUL */

struct coop_rule {
	char *text;
	char source[COOP_RULES_SOURCE_MAX];
};

struct coop_rules {
	struct coop_rule *items;
	size_t count, capacity;
	bool present; /* of the allow list: an empty one is not the same as none */
	char source[COOP_RULES_SOURCE_MAX];
};

/* A choice that may be left open: then source is empty. */
struct coop_choice {
	enum coop_action action;
	char source[COOP_RULES_SOURCE_MAX];
};

struct coop_policy {
	struct coop_rules denied, allowed, patterns;
	struct coop_choice risk[COOP_RISK_COUNT];
	struct coop_choice mode; /* ALLOW is enforce */
};

static inline bool coop_choice_made(const struct coop_choice *choice)
{
	return choice->source[0] != '\0';
}

#endif
