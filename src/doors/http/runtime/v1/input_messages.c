#include "doors/http/runtime/v1/input_messages.h"

#include <string.h>

#include "base/buf.h"
#include "base/json/jsonw.h"
#include "doors/http/net/ws.h"
#include "doors/http/runtime/v1/view.h"

static void starved(void *context)
{
	coop_ws_close(context, COOP_WS_INTERNAL, "out of memory");
}

static void listen_to(void *context, bool on)
{
	if (on)
		coop_ws_resume(context);
	else
		coop_ws_pause(context);
}

/* `written` is told where it is less than was sent. */
static void acknowledge(void *context, const struct coop_inbox_outcome *outcome)
{
	const bool garbled = outcome->kind == COOP_INBOX_GARBLED;
	struct coop_buf text = {0};
	struct coop_jsonw w = {.out = &text};

	coop_jsonw_begin(&w, NULL);
	coop_jsonw_string(&w, "type",
			  outcome->kind == COOP_INBOX_CLOSE ? "close_stdin_ack" : "stdin_ack");
	coop_jsonw_string(&w, "pid", outcome->name);
	if (outcome->refused || outcome->partly)
		coop_jsonw_uint(&w, "written", outcome->written);
	if (outcome->refused)
		coop_jsonw_string(&w, "error", garbled ? "invalid_argument" : "stdin_unavailable");
	coop_jsonw_end(&w);
	coop_ws_send_json(context, &text, &w);
}

const struct coop_inbox_client coop_v1_input_client = {
	.told = acknowledge,
	.listen = listen_to,
	.starved = starved,
};

/* There is no answer that a wrong size could be reported in. */
static void resize(struct coop_inbox *inbox, const json_t *message)
{
	json_int_t cols = json_integer_value(json_object_get(message, "cols"));
	json_int_t rows = json_integer_value(json_object_get(message, "rows"));

	if (cols >= 1 && cols <= 65535 && rows >= 1 && rows <= 65535)
		coop_inbox_resize(inbox, (unsigned)cols, (unsigned)rows);
}

void coop_v1_input_message(struct coop_inbox *inbox, const char *type, const json_t *message)
{
	const json_t *data = json_object_get(message, "data");
	int number = coop_process_signal(json_object_get(message, "signal"));

	if (!strcmp(type, "stdin"))
		coop_inbox_base64(inbox, json_string_value(data), json_string_length(data));
	else if (!strcmp(type, "close_stdin"))
		coop_inbox_add(inbox, COOP_INBOX_CLOSE);
	else if (!strcmp(type, "resize"))
		resize(inbox, message);
	else if (!strcmp(type, "signal") && number > 0)
		coop_inbox_signal(inbox, number);
}
