#include "doors/http/control/sandboxes_view.h"

#include <stdlib.h>
#include <string.h>

#include "doors/http/net/place.h"

json_t *coop_sandbox_view(const json_t *agent)
{
	json_t *end = json_object_get(agent, "expires_at"),
	       *metadata = json_object_get(agent, "metadata");

	/* SDKs read the end under the first two names. */
	return json_pack("{s:O, s:s, s:O, s:O, s:O, s:O, s:O}", "id",
			 json_object_get(agent, "name"), "state", "ready", "metadata", metadata,
			 "started_at", json_object_get(agent, "created_at"), "end_at", end,
			 "deadline_at", end, "expires_at", end);
}

void coop_sandbox_answer_value(struct coop_http_exchange *exchange, unsigned status, json_t *value)
{
	char *text = value ? json_dumps(value, JSON_COMPACT) : NULL;

	if (text)
		coop_http_answer_json(exchange, status, text, strlen(text));
	else
		coop_http_refuse(exchange, 500, "internal", "no memory is left for this");
	free(text);
	json_decref(value);
}

void coop_sandbox_answer(struct coop_http_exchange *exchange, unsigned status, const json_t *agent,
			 const char *token, json_t *warnings)
{
	json_t *value = json_pack("{s:o}", "sandbox", coop_sandbox_view(agent));
	char url[COOP_PLACE_URL_MAX];
	int r = value ? 0 : -1;

	if (r == 0 && token) {
		/* Processes and files of the sandbox are reached here as well. */
		coop_place_url(exchange, url);
		r = json_object_set_new(
			value, "session",
			json_pack("{s:s, s:s}", "token", token, "data_plane_url", url));
	}
	if (r == 0 && warnings)
		r = json_object_set(value, "warnings", warnings);
	if (r < 0) {
		json_decref(value);
		value = NULL;
	}
	coop_sandbox_answer_value(exchange, status, value);
}
