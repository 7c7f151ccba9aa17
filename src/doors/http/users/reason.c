#include "doors/http/users/reason.h"

#include <jansson.h>
#include <string.h>

bool coop_reason_is(const struct coop_error *error, const char *reason)
{
	json_t *details = *error->details ? json_loads(error->details, 0, NULL) : NULL;
	const char *given = json_string_value(json_object_get(details, "reason"));
	bool same = given && !strcmp(given, reason);

	json_decref(details);
	return same;
}
