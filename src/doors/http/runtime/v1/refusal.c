#include "doors/http/runtime/v1/refusal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "doors/http/users/detail.h"

/* As long as an error's message, and a word more. */
#define TEXT_MAX 520

/* As long as an error's message, and a word more. */
#define TEXT_MAX 520

struct coop_http_refusal coop_refusal_of(const struct coop_error *error)
{
	static const struct {
		const char *keeper;
		struct coop_http_refusal refusal;
	} table[] = {
		{"invalid_input", {400, "invalid_argument"}},
		{"no_such_process", {404, "process_not_found"}},
		{"not_owner", {404, "process_not_found"}},
		{"not_running", {409, "conflict"}},
		{"closed", {409, "conflict"}},
		{"exists", {409, "process_exists"}},
		{"quota", {429, "quota_exceeded"}},
		{"registry_full", {429, "quota_exceeded"}},
		{"too_large", {413, "too_large"}},
		{"permission_denied", {403, "forbidden"}},
		{"capability_denied", {403, "forbidden"}},
		{"boundary_escape", {403, "forbidden"}},
		{"persist_unsupported", {403, "forbidden"}},
		{"unavailable", {503, "sandbox_overloaded"}},
		{"unreachable", {503, "sandbox_overloaded"}},
	};
	static const char *const gone[] = {"token_revoked", "token_expired", "agent_removed"};

	/* Not that it may not do this: it is nobody any more. */
	for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) {
		if (coop_detail_is(error, "reason", gone[i]))
			return (struct coop_http_refusal){401, "unauthorized"};
	}
	for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
		if (strcmp(table[i].keeper, error->code) == 0)
			return table[i].refusal;
	}
	return (struct coop_http_refusal){500, "internal"};
}

/* Overwrites a word by another of the same length, wherever it stands. */
static void replace(char *text, const char *word, const char *by)
{
	for (char *at = text; (at = strcasestr(at, word)); at += strlen(word))
		memcpy(at, by, strlen(word));
}

void coop_refusal_text(char *message)
{
	/* Clients take an error with these words for a lost connection, and connect again. */
	replace(message, "closed", "shut  ");
	replace(message, "websocket", "websock  ");
}

void coop_refuse_as(struct coop_http_exchange *exchange, struct coop_http_refusal refusal,
		    const char *message)
{
	char text[TEXT_MAX];

	(void)snprintf(text, sizeof text, "%s", *message ? message : "no reason was given");
	coop_refusal_text(text);
	coop_http_refuse(exchange, refusal.status, refusal.code, "%s", text);
}

void coop_refuse_with(struct coop_http_exchange *exchange, const struct coop_error *error)
{
	coop_refuse_as(exchange, coop_refusal_of(error), error->message);
}

#define WHAT_MAX 300

void coop_refuse_unprovided(struct coop_http_exchange *exchange, const char *format, ...)
{
	char what[WHAT_MAX];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(what, sizeof what, format, args);
	va_end(args);
	coop_refusal_text(what);
	coop_http_refuse(exchange, 501, "not_implemented", "%s is not provided by coop", what);
}

void coop_refuse_route(struct coop_http_exchange *exchange)
{
	coop_refuse_unprovided(exchange, "%s %s", exchange->method, exchange->path);
}
