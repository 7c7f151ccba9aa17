#include "base/text/units.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

const struct coop_unit_name coop_units_none[] = {{NULL, 0}};
const struct coop_unit_name coop_units_bytes[] = {
	{"K", 1u << 10}, {"M", 1u << 20}, {"G", 1u << 30}, {"T", 1ull << 40}, {NULL, 0},
};
const struct coop_unit_name coop_units_ms[] = {
	{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {"d", 86400000}, {NULL, 0},
};

static size_t digits(const char *text)
{
	return strspn(text, "0123456789");
}

/* Not strtoull, which takes spaces and signs, too. */
static int add_digits(const char *text, size_t size, uint64_t *ret)
{
	for (size_t i = 0; i < size; i++)
		if (__builtin_mul_overflow(*ret, 10u, ret) ||
		    __builtin_add_overflow(*ret, (uint64_t)(text[i] - '0'), ret))
			return -ERANGE;
	return size ? 0 : -EINVAL;
}

/* The fraction's share of `factor`, rounded down. No more than nine digits count: the product stays
 * within 64 bits for every unit there is (2^40 * 10^6 would not with more of them, so large units
 * use six). */
static uint64_t fraction_of(const char *text, size_t size, uint64_t factor)
{
	const size_t most = factor > UINT32_MAX ? 6 : 9;
	uint64_t numerator = 0, denominator = 1;

	for (size_t i = 0; i < most && i < size; i++) {
		numerator = numerator * 10 + (uint64_t)(text[i] - '0');
		denominator *= 10;
	}
	return numerator * factor / denominator;
}

static uint64_t factor_of(const char *name, uint64_t plain, const struct coop_unit_name *units)
{
	if (!*name)
		return plain;
	while (units->name && strcasecmp(units->name, name) != 0)
		units++;
	return units->factor;
}

int coop_units_parse(const char *text, uint64_t plain, const struct coop_unit_name *units,
		     enum coop_units_form form, uint64_t *ret)
{
	size_t whole = digits(text), rest = 0;
	uint64_t value = 0;
	int r = add_digits(text, whole, &value);
	const char *fraction = text + whole + 1, *name = text + whole;

	if (r == 0 && form == COOP_UNITS_FRACTION && *name == '.') {
		rest = digits(fraction);
		name = fraction + rest;
		r = rest ? 0 : -EINVAL;
	}
	if (r < 0)
		return r;
	uint64_t factor = factor_of(name, plain, units);
	if (!factor)
		return -EINVAL;
	/* What takes the numbers keeps them as signed ones. */
	if (__builtin_mul_overflow(value, factor, &value) ||
	    (rest && __builtin_add_overflow(value, fraction_of(fraction, rest, factor), &value)) ||
	    value > INT64_MAX)
		return -ERANGE;
	*ret = value;
	return 0;
}

int coop_units_thousandths(const char *text, uint64_t *ret)
{
	const size_t whole = strcspn(text, ".");

	if (text[whole] && strlen(text + whole + 1) > 3)
		return -EINVAL;
	return coop_units_parse(text, 1000, coop_units_none, COOP_UNITS_FRACTION, ret);
}
