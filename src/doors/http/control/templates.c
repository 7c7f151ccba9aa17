#include "doors/http/control/templates.h"

#include <jansson.h>
#include <string.h>

#include "doors/http/control/sandboxes_query.h"
#include "doors/http/control/sandboxes_view.h"
#include "doors/http/runtime/v1/refusal.h"

/* What every sandbox is made of. */
#define BASE "base"

static json_t *base_template(void)
{
	return json_pack("{s:s, s:s, s:s, s:s}", "id", BASE, "slug", BASE, "name", BASE,
			 "description", "the machine as coop's sandbox profile shows it");
}

/* A list that has no parameters, or of `kinds`. NULL is want of memory; the value is taken over. */
static void answer_list(struct coop_http_exchange *exchange, unsigned kinds, json_t *value)
{
	struct coop_sandbox_query query;

	if (!coop_sandbox_query_read(exchange, kinds, &query)) {
		json_decref(value);
		return;
	}
	coop_sandbox_query_clear(&query);
	coop_sandbox_answer_value(exchange, 200, value);
}

static void list_volumes(struct coop_http_exchange *exchange)
{
	answer_list(exchange, 0, json_pack("{s:[]}", "volumes"));
}

static void list_snapshots(struct coop_http_exchange *exchange)
{
	answer_list(exchange, COOP_QUERY_PAGE | COOP_QUERY_SANDBOX,
		    json_pack("{s:[], s:n}", "snapshots", "next_token"));
}

static void list_templates(struct coop_http_exchange *exchange)
{
	answer_list(exchange, 0, json_pack("{s:[o]}", "templates", base_template()));
}

/* The same by another of the SDKs' names. */
static void list_sandbox_templates(struct coop_http_exchange *exchange)
{
	answer_list(exchange, 0, json_pack("{s:[o]}", "sandbox_templates", base_template()));
}

static void show_alias(struct coop_http_exchange *exchange)
{
	if (!strcmp(exchange->params[0], BASE))
		coop_sandbox_answer_value(exchange, 200,
					  json_pack("{s:o}", "template", base_template()));
	else
		coop_refuse_unprovided(exchange, "the template \"%.100s\"", exchange->params[0]);
}

static void list_tags(struct coop_http_exchange *exchange)
{
	if (!strcmp(exchange->params[0], BASE))
		answer_list(exchange, 0, json_array());
	else
		coop_refuse_unprovided(exchange, "the template \"%.100s\"", exchange->params[0]);
}

#define CONTROL COOP_ROUTE_CONTROL
#define BELOW (COOP_ROUTE_CONTROL | COOP_ROUTE_BELOW)

const struct coop_http_route coop_routes_templates[] = {
	{"GET", "/v1/volumes", CONTROL, COOP_BODY_NONE, 0, list_volumes},
	{"GET", "/v1/sandbox_snapshots", CONTROL, COOP_BODY_NONE, 0, list_snapshots},
	{"GET", "/v1/templates", CONTROL, COOP_BODY_NONE, 0, list_templates},
	{"GET", "/v1/templates/aliases/{alias}", CONTROL, COOP_BODY_NONE, 0, show_alias},
	{"GET", "/v1/templates/{id}/tags", CONTROL, COOP_BODY_NONE, 0, list_tags},
	{"GET", "/v1/sandbox_templates", CONTROL, COOP_BODY_NONE, 0, list_sandbox_templates},
	{"*", "/v1/volumes", CONTROL, COOP_BODY_NONE, 0, coop_refuse_route},
	{"*", "/v1/volumes/", BELOW, COOP_BODY_NONE, 0, coop_refuse_route},
	{"*", "/v1/sandbox_snapshots", CONTROL, COOP_BODY_NONE, 0, coop_refuse_route},
	{"*", "/v1/sandbox_snapshots/", BELOW, COOP_BODY_NONE, 0, coop_refuse_route},
	{"*", "/v1/templates", CONTROL, COOP_BODY_NONE, 0, coop_refuse_route},
	{"*", "/v1/templates/", BELOW, COOP_BODY_NONE, 0, coop_refuse_route},
	{"*", "/v1/sandbox_templates", CONTROL, COOP_BODY_NONE, 0, coop_refuse_route},
	{"*", "/v1/sandbox_templates/", BELOW, COOP_BODY_NONE, 0, coop_refuse_route},
	{0},
};
