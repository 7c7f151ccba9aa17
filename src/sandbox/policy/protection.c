#include "sandbox/policy/protection.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "interface/fields.h"

static const char *const names[COOP_PROTECT_MEMORY] = {
	[COOP_PROTECT_FILES] = "files",
	[COOP_PROTECT_NETWORK] = "network",
	[COOP_PROTECT_IDENTITY] = "identity",
	[COOP_PROTECT_IPC] = "ipc",
	[COOP_PROTECT_PRIVILEGES] = "privileges",
	[COOP_PROTECT_SECCOMP] = "seccomp",
	[COOP_PROTECT_KILL] = "kill",
};

_Static_assert(COOP_PROTECT_COUNT <= 32, "a set of them is a uint32_t");

const char *coop_protection_name(enum coop_protection protection)
{
	return protection < COOP_PROTECT_MEMORY
		       ? names[protection]
		       : coop_limits_fields[protection - COOP_PROTECT_MEMORY].name;
}

enum coop_protection coop_protection_parse(const char *name)
{
	enum coop_protection i = 0;

	while (i < COOP_PROTECT_COUNT && strcmp(coop_protection_name(i), name) != 0)
		i++;
	return i;
}

const char *coop_strength_name(enum coop_strength strength)
{
	static const char *const strengths[] = {
		[COOP_NONE] = "none",
		[COOP_PARTIAL] = "partial",
		[COOP_ENFORCED] = "enforced",
	};

	return strengths[strength];
}

void coop_held_set(struct coop_achieved *achieved, enum coop_protection protection,
		   enum coop_strength strength, const char *mechanism, const char *reason, ...)
{
	struct coop_held *held = &achieved->held[protection];
	va_list arguments;

	held->strength = strength;
	(void)snprintf(held->mechanism, sizeof held->mechanism, "%s", mechanism ? mechanism : "");
	held->reason[0] = 0;
	if (!reason)
		return;
	va_start(arguments, reason);
	(void)vsnprintf(held->reason, sizeof held->reason, reason, arguments);
	va_end(arguments);
}

bool coop_achieved_enforced(const struct coop_achieved *achieved)
{
	for (unsigned i = 0; i < COOP_PROTECT_COUNT; i++) {
		if (achieved->asked & COOP_PROTECT_BIT(i) &&
		    achieved->held[i].strength != COOP_ENFORCED)
			return false;
	}
	return achieved->asked != 0;
}

void coop_achieved_write(const struct coop_achieved *achieved, struct coop_jsonw *w,
			 const char *name)
{
	coop_jsonw_begin(w, name);
	for (unsigned i = 0; i < COOP_PROTECT_COUNT; i++) {
		const struct coop_held *held = &achieved->held[i];

		if (i >= COOP_PROTECT_MEMORY && !(achieved->asked & COOP_PROTECT_BIT(i)))
			continue;
		coop_jsonw_begin(w, coop_protection_name(i));
		coop_jsonw_string(w, "state", coop_strength_name(held->strength));
		coop_jsonw_string(w, "mechanism", *held->mechanism ? held->mechanism : NULL);
		coop_jsonw_string(w, "reason", *held->reason ? held->reason : NULL);
		coop_jsonw_end(w);
	}
	coop_jsonw_end(w);
}

void coop_protections_write(uint32_t set, struct coop_jsonw *w, const char *name)
{
	coop_jsonw_array(w, name);
	for (unsigned i = 0; i < COOP_PROTECT_COUNT; i++) {
		if (set & COOP_PROTECT_BIT(i))
			coop_jsonw_string(w, NULL, coop_protection_name(i));
	}
	coop_jsonw_array_end(w);
}
