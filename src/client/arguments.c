#include "client/arguments.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/text/utf8.h"
#include "coop.h"

void coop_arguments_begin(struct coop_arguments *arguments)
{
	arguments->text = (struct coop_buf){0};
	arguments->w = (struct coop_jsonw){.out = &arguments->text};
	coop_jsonw_begin(&arguments->w, NULL);
}

void coop_arguments_clear(struct coop_arguments *arguments)
{
	coop_buf_clear(&arguments->text);
}

static bool is_utf8(const char *text)
{
	const uint8_t *bytes = (const uint8_t *)text;
	size_t left = strlen(text);

	while (left) {
		size_t length = coop_utf8_char(bytes, left);
		if (!length)
			return false;
		bytes += length;
		left -= length;
	}
	return true;
}

int coop_arguments_string(struct coop_arguments *arguments, const char *name, const char *field,
			  const char *text, struct coop_error *error)
{
	if (!is_utf8(text))
		return coop_client_refuse(error, -EINVAL, "invalid_input", field, "not UTF-8");
	coop_jsonw_string(&arguments->w, name, text);
	return 0;
}

int coop_arguments_ask(struct coop_arguments *arguments, struct coop *coop, const char *op,
		       const void *data, size_t size, struct coop_reply **ret,
		       struct coop_error *error)
{
	coop_jsonw_end(&arguments->w);
	if (arguments->w.failed || coop_buf_append(&arguments->text, "", 1) < 0)
		return coop_client_fail(error, -ENOMEM, "internal", "out of memory");
	return coop_call(coop, op, (const char *)coop_buf_front(&arguments->text), data, size, ret,
			 error);
}

int coop_arguments_call(struct coop_arguments *arguments, struct coop *coop, const char *op,
			const void *data, size_t size, json_t **ret_result,
			struct coop_reply **ret_reply, struct coop_error *error)
{
	struct coop_reply *reply;
	int r = coop_arguments_ask(arguments, coop, op, data, size, &reply, error);

	if (r < 0)
		return r;
	json_t *result = json_loads(coop_reply_json(reply), JSON_ALLOW_NUL, NULL);
	if (!json_is_object(result)) {
		json_decref(result);
		coop_reply_free(reply);
		return coop_client_fail(error, -EPROTO, "protocol",
					"the keeper's answer to %s is no JSON object", op);
	}
	*ret_result = result;
	if (ret_reply)
		*ret_reply = reply;
	else
		coop_reply_free(reply);
	return 0;
}
