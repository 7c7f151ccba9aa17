/* The limits of a policy as rows: one for each protection from COOP_PROTECT_MEMORY on, in their
 * order. */
#ifndef COOP_SANDBOX_LIMITS_H
#define COOP_SANDBOX_LIMITS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "interface/err.h"
#include "sandbox/policy/policy.h"

#define COOP_LIMIT_COUNT ((size_t)COOP_PROTECT_COUNT - COOP_PROTECT_MEMORY)

static inline enum coop_protection coop_limit_protection(size_t i)
{
	return (enum coop_protection)(COOP_PROTECT_MEMORY + i);
}

int64_t coop_limit_get(const struct coop_sandbox_limits *limits, size_t i);
void coop_limit_put(struct coop_sandbox_limits *limits, size_t i, int64_t value);

/* A value as JSON has it: "1.5" for 1500 thousandths. */
void coop_limit_text(size_t i, int64_t value, char *ret_text, size_t size);

/* Lays the members of the object over `limits` and sets their bits. 0, or the error filled, naming
 * "limits.max_pids". */
int coop_limits_read(const json_t *json, struct coop_sandbox_limits *limits, uint32_t *ret_asked,
		     struct coop_err *err);

/* One as the configuration gives it, `name` being known: 64M, 1.5. Not twice. Errors name the key
 * that it was given by. */
bool coop_limits_known(const char *name);
int coop_limits_set(struct coop_sandbox_limits *limits, const char *name, const char *key,
		    const char *value, struct coop_err *err);

/* The protections that are limited. */
uint32_t coop_limits_bits(const struct coop_sandbox_limits *limits);

#endif
