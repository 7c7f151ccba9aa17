/* The protections by name: what is asked for, what holds, by which means. The same names are used
 * in requests, reports, errors and `coop doctor`. */
#ifndef COOP_SANDBOX_PROTECTION_H
#define COOP_SANDBOX_PROTECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json/jsonw.h"
#include "interface/protection.h"

#define COOP_PROTECT_BIT(p) (1u << (p))
/* What the confined profiles require unless told otherwise. */
#define COOP_PROTECT_DEFAULT                                                                   \
	(COOP_PROTECT_BIT(COOP_PROTECT_FILES) | COOP_PROTECT_BIT(COOP_PROTECT_NETWORK) |       \
	 COOP_PROTECT_BIT(COOP_PROTECT_IDENTITY) | COOP_PROTECT_BIT(COOP_PROTECT_PRIVILEGES) | \
	 COOP_PROTECT_BIT(COOP_PROTECT_SECCOMP) | COOP_PROTECT_BIT(COOP_PROTECT_KILL))

/* All seven that are no limits. */
#define COOP_PROTECT_ALL (COOP_PROTECT_BIT(COOP_PROTECT_MEMORY) - 1u)
/* What there is without namespaces, mounts and a filter, that is with the profile `full`: these two
 * in part, and the limits. */
#define COOP_PROTECT_PLAIN                                               \
	(~COOP_PROTECT_ALL | COOP_PROTECT_BIT(COOP_PROTECT_PRIVILEGES) | \
	 COOP_PROTECT_BIT(COOP_PROTECT_KILL))

enum coop_strength { COOP_NONE, COOP_PARTIAL, COOP_ENFORCED };

struct coop_held {
	enum coop_strength strength;
	char mechanism[64]; /* "mounts, landlock"; empty: none */
	char reason[128];   /* why it is not more; empty: nothing to say */
};

/* What holds for one process. */
struct coop_achieved {
	uint32_t asked; /* bits: protections and limits that the policy is about */
	struct coop_held held[COOP_PROTECT_COUNT];
};

const char *coop_protection_name(enum coop_protection protection);
/* COOP_PROTECT_COUNT for a name that is none. */
enum coop_protection coop_protection_parse(const char *name);
const char *coop_strength_name(enum coop_strength strength);

__attribute__((format(printf, 5, 6))) void
coop_held_set(struct coop_achieved *achieved, enum coop_protection protection,
	      enum coop_strength strength, const char *mechanism, const char *reason, ...);

/* Whether all that was asked is enforced; false where nothing was. */
bool coop_achieved_enforced(const struct coop_achieved *achieved);

/* {"files": {"state": "enforced", "mechanism": "mounts, landlock", "reason": null}, …}: what was
 * asked, and all seven protections. */
void coop_achieved_write(const struct coop_achieved *achieved, struct coop_jsonw *w,
			 const char *name);

/* A set of bits as a list of names. */
void coop_protections_write(uint32_t set, struct coop_jsonw *w, const char *name);

#endif
