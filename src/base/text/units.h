/* Numbers with a unit behind them, as people write them: "30s", "512M", "1.5G". */
#ifndef COOP_BASE_UNITS_H
#define COOP_BASE_UNITS_H

#include <stdint.h>

struct coop_unit_name {
	const char *name;
	uint64_t factor;
};

/* Ended by a row without a name. */
extern const struct coop_unit_name coop_units_none[];
extern const struct coop_unit_name coop_units_bytes[]; /* K, M, G, T: powers of 1024 */
extern const struct coop_unit_name coop_units_ms[];    /* ms, s, m, h, d in milliseconds */

/* Whether "1.5" is a number; what is finer than the result is cut off. */
enum coop_units_form { COOP_UNITS_WHOLE, COOP_UNITS_FRACTION };

/* Digits and one of the units, in either case; nothing else, no sign and no blank. Without a unit
 * the number counts `plain`-fold; 0: it needs one. -EINVAL: no such thing; -ERANGE: more than
 * INT64_MAX. *ret is untouched on failure. */
int coop_units_parse(const char *text, uint64_t plain, const struct coop_unit_name *units,
		     enum coop_units_form form, uint64_t *ret);

/* A number in thousandths: "1.5" is 1500. What is finer than a thousandth is -EINVAL. Failures as
 * above. */
int coop_units_thousandths(const char *text, uint64_t *ret);

#endif
