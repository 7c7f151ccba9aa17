#include "doors/http/users/detail.h"

#include <jansson.h>
#include <string.h>

bool coop_detail_is(const struct coop_error *error, const char *member, const char *text)
{
	json_t *details = *error->details ? json_loads(error->details, 0, NULL) : NULL;
	const char *given = json_string_value(json_object_get(details, member));
	bool same = given && !strcmp(given, text);

	json_decref(details);
	return same;
}
