#include "doors/http/control/sandboxes_view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doors/http/main/gateway.h"
#include "doors/http/net/conn.h"
#include "doors/http/users/access.h"

#define URL_MAX 600

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

/* Where processes and files of the sandbox are reached: here, by the name that the operator has
 * told, that a trusted proxy was called by, or else by our own. */
static void write_url(const struct coop_http_exchange *exchange, char ret[URL_MAX])
{
	const struct coop_gateway_options *options = &exchange->gateway->options;
	const char *host = coop_http_header(exchange, "host"), *wrong;
	struct coop_forwarded forwarded;

	if (*options->public_url) {
		(void)snprintf(ret, URL_MAX, "%s", options->public_url);
		return;
	}
	(void)coop_access_forwarded(exchange, &forwarded, &wrong);
	if (*forwarded.host)
		host = forwarded.host;
	bool tls = forwarded.scheme ? forwarded.scheme == COOP_SCHEME_HTTPS
				    : exchange->conn->tls != NULL;
	if ((forwarded.scheme || *forwarded.host) && host)
		(void)snprintf(ret, URL_MAX, "%s://%s", tls ? "https" : "http", host);
	else
		(void)snprintf(ret, URL_MAX, "%s", options->url);
}

void coop_sandbox_answer(struct coop_http_exchange *exchange, unsigned status, const json_t *agent,
			 const char *token, json_t *warnings)
{
	json_t *value = json_pack("{s:o}", "sandbox", coop_sandbox_view(agent));
	char url[URL_MAX];
	int r = value ? 0 : -1;

	if (r == 0 && token) {
		write_url(exchange, url);
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
