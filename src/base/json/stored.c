#include "base/json/stored.h"

json_t *coop_stored_object(const char *text)
{
	json_t *json =
		text ? json_loads(text, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL) : NULL;

	if (json_is_object(json))
		return json;
	json_decref(json);
	return NULL;
}
