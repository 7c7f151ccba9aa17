#include "sandbox/policy/limits.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/json/jsonw.h"
#include "base/text/units.h"
#include "interface/fields.h"
#include "interface/schema.h"
#include "sandbox/policy/protection.h"

/* Where the values of coop_limits_fields go. Cores are kept in thousandths. */
static const size_t offsets[COOP_LIMIT_COUNT] = {
	offsetof(struct coop_sandbox_limits, memory_bytes),
	offsetof(struct coop_sandbox_limits, cpu_quota_millis),
	offsetof(struct coop_sandbox_limits, max_pids),
	offsetof(struct coop_sandbox_limits, max_cpu_secs),
	offsetof(struct coop_sandbox_limits, max_open_files),
	offsetof(struct coop_sandbox_limits, max_file_bytes),
	offsetof(struct coop_sandbox_limits, tmp_bytes),
};

static const char *name_of(size_t i)
{
	return coop_limits_fields[i].name;
}

static int64_t *at(struct coop_sandbox_limits *limits, size_t i)
{
	return (int64_t *)(void *)((char *)limits + offsets[i]);
}

int64_t coop_limit_get(const struct coop_sandbox_limits *limits, size_t i)
{
	return *(const int64_t *)(const void *)((const char *)limits + offsets[i]);
}

void coop_limit_put(struct coop_sandbox_limits *limits, size_t i, int64_t value)
{
	*at(limits, i) = value;
}

/* COOP_LIMIT_COUNT: there is none of that name. */
static size_t find(const char *name)
{
	size_t i = 0;

	while (i < COOP_LIMIT_COUNT && strcmp(name_of(i), name) != 0)
		i++;
	return i;
}

void coop_limit_text(size_t i, int64_t value, char *ret_text, size_t size)
{
	int64_t whole = value / 1000, rest = value % 1000;
	int digits = 3;

	if (coop_limits_fields[i].unit != COOP_UNIT_CORES || !rest) {
		(void)snprintf(
			ret_text, size, "%lld",
			(long long)(coop_limits_fields[i].unit == COOP_UNIT_CORES ? whole : value));
		return;
	}
	for (; rest % 10 == 0; rest /= 10)
		digits--;
	(void)snprintf(ret_text, size, "%lld.%0*lld", (long long)whole, digits, (long long)rest);
}

static int out_of_range(size_t i, const char *field, struct coop_err *err)
{
	char least[32], most[32];

	coop_limit_text(i, coop_limits_fields[i].min, least, sizeof least);
	coop_limit_text(i, coop_limits_fields[i].max, most, sizeof most);
	int r = coop_err_field(
		err, COOP_INVALID_INPUT, field, "%s must be %s between %s and %s", field,
		coop_limits_fields[i].unit == COOP_UNIT_CORES ? "a number" : "an integer", least,
		most);
	coop_schema_bounds(&coop_limits_fields[i], err);
	return r;
}

static int64_t thousandths(double cores)
{
	/* Compared first: what is out of range may not fit the integer. */
	return cores >= 0.0005 && cores <= 4097 ? (int64_t)(cores * 1000 + 0.5) : 0;
}

static int take(struct coop_sandbox_limits *limits, const char *name, const json_t *value,
		uint32_t *asked, struct coop_err *err)
{
	char field[96];
	size_t i = find(name);
	int64_t number = 0;

	(void)snprintf(field, sizeof field, "limits.%.64s", name);
	if (i == COOP_LIMIT_COUNT)
		return coop_err_field(err, COOP_INVALID_INPUT, field, "%s is not known", field);
	if (json_is_null(value))
		return 0;
	if (coop_limits_fields[i].unit == COOP_UNIT_CORES && json_is_number(value))
		number = thousandths(json_number_value(value));
	else if (json_is_integer(value))
		number = json_integer_value(value);
	if (number < coop_limits_fields[i].min || number > coop_limits_fields[i].max)
		return out_of_range(i, field, err);
	*at(limits, i) = number;
	*asked |= COOP_PROTECT_BIT(coop_limit_protection(i));
	return 0;
}

int coop_limits_read(const json_t *json, struct coop_sandbox_limits *limits, uint32_t *ret_asked,
		     struct coop_err *err)
{
	const char *name;
	json_t *value;

	if (!json_is_object(json))
		return coop_err_field(err, COOP_INVALID_INPUT, "limits",
				      "limits must be an object");
	/* jansson's iteration takes no const; nothing is changed. */
	json_object_foreach((json_t *)(uintptr_t)json, name, value)
	{
		int r = take(limits, name, value, ret_asked, err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* -1: it is no such thing. */
static int64_t parse(const char *text, enum coop_unit unit)
{
	uint64_t value;
	int r;

	if (unit == COOP_UNIT_CORES)
		r = strspn(text, "0123456789") > 4 ? -EINVAL : coop_units_thousandths(text, &value);
	else
		r = coop_units_parse(text, 1,
				     unit == COOP_UNIT_BYTES ? coop_units_bytes : coop_units_none,
				     COOP_UNITS_WHOLE, &value);
	return r < 0 ? -1 : (int64_t)value;
}

bool coop_limits_known(const char *name)
{
	return find(name) < COOP_LIMIT_COUNT;
}

int coop_limits_set(struct coop_sandbox_limits *limits, const char *name, const char *key,
		    const char *value, struct coop_err *err)
{
	size_t i = find(name);
	int64_t number = parse(value, coop_limits_fields[i].unit);

	if (number < coop_limits_fields[i].min || number > coop_limits_fields[i].max)
		return out_of_range(i, key, err);
	if (*at(limits, i))
		return coop_err_field(err, COOP_INVALID_INPUT, key, "%s: said twice", key);
	*at(limits, i) = number;
	return 0;
}

uint32_t coop_limits_bits(const struct coop_sandbox_limits *limits)
{
	uint32_t bits = 0;

	for (size_t i = 0; i < COOP_LIMIT_COUNT; i++)
		bits |= coop_limit_get(limits, i) ? COOP_PROTECT_BIT(coop_limit_protection(i)) : 0;
	return bits;
}

void coop_sandbox_limits_keep(struct coop_sandbox_limits *limits, uint32_t bits)
{
	for (size_t i = 0; i < COOP_LIMIT_COUNT; i++) {
		if (!(bits & COOP_PROTECT_BIT(coop_limit_protection(i))))
			*at(limits, i) = 0;
	}
}

static void write_one(const struct coop_sandbox_limits *limits, size_t i, struct coop_jsonw *w)
{
	char text[32];

	coop_limit_text(i, coop_limit_get(limits, i), text, sizeof text);
	coop_jsonw_raw(w, name_of(i), text);
}

void coop_sandbox_limits_write_members(const struct coop_sandbox_limits *limits,
				       struct coop_jsonw *w)
{
	for (size_t i = 0; i < COOP_LIMIT_COUNT; i++) {
		if (coop_limit_get(limits, i))
			write_one(limits, i, w);
		else
			coop_jsonw_null(w, name_of(i));
	}
}

void coop_sandbox_limits_write(const struct coop_sandbox_limits *limits, struct coop_jsonw *w,
			       const char *name)
{
	if (!coop_limits_bits(limits)) {
		coop_jsonw_null(w, name);
		return;
	}
	coop_jsonw_begin(w, name);
	for (size_t i = 0; i < COOP_LIMIT_COUNT; i++) {
		if (coop_limit_get(limits, i))
			write_one(limits, i, w);
	}
	coop_jsonw_end(w);
}
