#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "client/client.h"

int coop_client_fail(struct coop_error *error, int status, const char *code, const char *format,
		     ...)
{
	va_list args;

	if (!error)
		return status;
	*error = (struct coop_error){.details = "{}"};
	(void)snprintf(error->code, sizeof error->code, "%s", code);
	va_start(args, format);
	(void)vsnprintf(error->message, sizeof error->message, format, args);
	va_end(args);
	return status;
}

int coop_client_refuse(struct coop_error *error, int status, const char *code, const char *field,
		       const char *message)
{
	(void)coop_client_fail(error, status, code, "%s: %s", field, message);
	if (error)
		(void)snprintf(error->details, sizeof error->details, "{\"field\":\"%s\"}", field);
	return status;
}

static void copy_details(const json_t *details, struct coop_error *ret)
{
	size_t size = json_dumpb(details, ret->details, sizeof ret->details - 1, JSON_COMPACT);

	/* Half an object is of no use to anybody. */
	if (!json_is_object(details) || size == 0 || size >= sizeof ret->details)
		(void)snprintf(ret->details, sizeof ret->details, "{}");
	else
		ret->details[size] = 0;
}

void coop_client_error_parse(const char *json, size_t size, struct coop_error *ret)
{
	json_t *root = json_loadb(json, size, JSON_ALLOW_NUL, NULL);
	const char *code = json_string_value(json_object_get(root, "code"));
	const char *message = json_string_value(json_object_get(root, "message"));

	*ret = (struct coop_error){.details = "{}"};
	(void)snprintf(ret->code, sizeof ret->code, "%s", code ? code : "internal");
	(void)snprintf(ret->message, sizeof ret->message, "%s",
		       message ? message : "the keeper gave no reason");
	copy_details(json_object_get(root, "details"), ret);
	json_decref(root);
}
