#include "doors/http/main/routes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doors/http/control/sandboxes.h"
#include "doors/http/control/templates.h"
#include "doors/http/files/v1/routes.h"
#include "doors/http/mcp/mcp_routes.h"
#include "doors/http/net/conn.h"
#include "doors/http/net/exchange.h"
#include "doors/http/net/head.h"
#include "doors/http/net/target.h"
#include "doors/http/own/events.h"
#include "doors/http/own/health.h"
#include "doors/http/own/metrics.h"
#include "doors/http/own/openapi.h"
#include "doors/http/own/ops.h"
#include "doors/http/own/tools_route.h"
#include "doors/http/runtime/v1/routes.h"

static const struct coop_http_route *const tables[] = {
	coop_routes_health,  coop_routes_files,   coop_routes_ops,       coop_routes_events,
	coop_routes_metrics, coop_routes_openapi, coop_routes_runtime,   coop_routes_sandboxes,
	coop_routes_mcp,     coop_routes_tools,   coop_routes_templates,
};

#define TABLES (sizeof tables / sizeof tables[0])

const struct coop_http_route *coop_routes_at(size_t index)
{
	for (size_t i = 0; i < TABLES; i++) {
		for (const struct coop_http_route *row = tables[i]; row->method; row++) {
			if (index-- == 0)
				return row;
		}
	}
	return NULL;
}

static void clear_params(struct coop_http_exchange *exchange)
{
	for (int i = 0; i < COOP_HTTP_PARAMS_MAX; i++) {
		free(exchange->params[i]);
		exchange->params[i] = NULL;
	}
}

/* Whether a part of the path is a word of a pattern. Escapes are the exception. */
static bool is_word(const char *part, size_t size, const char *word, size_t word_size)
{
	int status;

	if (!memchr(part, '%', size))
		return size == word_size && memcmp(part, word, size) == 0;
	char *decoded = coop_target_decode(part, size, false, &status);
	bool same =
		decoded && strlen(decoded) == word_size && memcmp(decoded, word, word_size) == 0;
	free(decoded);
	return same;
}

/* Compares part by part, each decoded by itself: an escaped slash is a character of a name. 1, 0,
 * or -errno. */
static int matches(const struct coop_http_route *row, struct coop_http_exchange *exchange)
{
	const char *pattern = row->pattern, *path = exchange->path;
	int params = 0, status = 0;

	clear_params(exchange);
	while (*pattern && *path) {
		if ((row->flags & COOP_ROUTE_BELOW) && strcmp(pattern, "/") == 0)
			return *path == '/';
		size_t word = strcspn(pattern + 1, "/"), part = strcspn(path + 1, "/");
		if (pattern[1] != '{') {
			if (!is_word(path + 1, part, pattern + 1, word))
				return 0;
		} else if (part == 0 || params == COOP_HTTP_PARAMS_MAX) {
			return 0;
		} else {
			exchange->params[params] =
				coop_target_decode(path + 1, part, false, &status);
			if (!exchange->params[params++])
				return status;
		}
		pattern += word + 1;
		path += part + 1;
	}
	return !*pattern && !*path;
}

static bool method_fits(const struct coop_http_route *row, const char *method)
{
	return strcmp(row->method, "*") == 0 || strcmp(row->method, method) == 0 ||
	       (strcmp(method, "HEAD") == 0 && strcmp(row->method, "GET") == 0 &&
		!(row->flags & COOP_ROUTE_UPGRADE));
}

/* What was found on the way to nothing. */
struct search {
	char allow[64]; /* methods that the path has */
	bool needs_upgrade;
	int status;
};

static void note_method(struct search *search, const char *method)
{
	size_t used = strlen(search->allow);

	if (!strstr(search->allow, method))
		(void)snprintf(search->allow + used, sizeof search->allow - used, "%s%s",
			       used ? ", " : "", method);
}

static const struct coop_http_route *look(struct coop_http_exchange *exchange, bool control,
					  struct search *search)
{
	const struct coop_http_route *row, *plain = NULL;

	for (size_t i = 0; (row = coop_routes_at(i)); i++) {
		if ((row->flags & COOP_ROUTE_CONTROL) && !control)
			continue;
		int r = matches(row, exchange);
		if (r < 0)
			search->status = r;
		if (r <= 0)
			continue;
		if (!method_fits(row, exchange->method))
			note_method(search, row->method);
		else if ((row->flags & COOP_ROUTE_UPGRADE) && !exchange->upgrade)
			search->needs_upgrade = true;
		else if (exchange->upgrade && !(row->flags & COOP_ROUTE_UPGRADE) && !plain)
			plain = row; /* unless the path has a row for upgrades, too */
		else if (!exchange->upgrade || (row->flags & COOP_ROUTE_UPGRADE))
			return row;
	}
	clear_params(exchange);
	if (plain && matches(plain, exchange) <= 0) {
		search->status = -ENOMEM;
		return NULL;
	}
	return plain;
}

const struct coop_http_route *coop_routes_find_open(struct coop_http_exchange *exchange,
						    bool control)
{
	struct search search = {0};
	const struct coop_http_route *row = look(exchange, control, &search);

	if (row && (row->flags & COOP_ROUTE_OPEN))
		return row;
	clear_params(exchange);
	return NULL;
}

static void refuse_upgrade(struct coop_http_exchange *exchange)
{
	if (coop_head_other_version(exchange->conn->head)) {
		coop_http_add_header(exchange, "Sec-WebSocket-Version: 13");
		coop_http_refuse(exchange, 426, "invalid_argument",
				 "only version 13 is spoken here");
	} else if (coop_head_wants_upgrade(exchange->conn->head)) {
		coop_http_refuse(exchange, 400, "invalid_argument",
				 "an upgrade needs one key of 16 bytes in base64, and no body");
	} else {
		coop_http_refuse(exchange, 400, "invalid_argument",
				 "this path is for an upgrade to a socket of messages");
	}
}

const struct coop_http_route *coop_routes_find(struct coop_http_exchange *exchange, bool control)
{
	struct search search = {0};
	const struct coop_http_route *row = look(exchange, control, &search);
	char line[96];

	/* Who asks for a socket must not take the answer to something else for it. */
	if (row && (exchange->upgrade || !coop_head_wants_upgrade(exchange->conn->head)))
		return row;
	if (search.status == -ENOMEM) {
		coop_http_refuse(exchange, 503, "sandbox_overloaded", "out of memory");
	} else if (row || search.needs_upgrade) {
		refuse_upgrade(exchange);
	} else if (search.allow[0]) {
		(void)snprintf(line, sizeof line, "Allow: %s", search.allow);
		coop_http_add_header(exchange, line);
		coop_http_refuse(exchange, 405, "method_not_allowed", "%s is not for this path",
				 exchange->method);
	} else if (search.status == -EINVAL) {
		coop_http_refuse(exchange, 400, "invalid_argument", "the path has a broken escape");
	} else {
		coop_http_refuse(exchange, 404, "not_found", "there is nothing at this path");
	}
	return NULL;
}
