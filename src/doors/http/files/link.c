#include "doors/http/files/link.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "base/buf.h"
#include "base/later.h"
#include "base/list.h"
#include "base/map.h"
#include "base/mem.h"
#include "doors/http/net/net.h"
#include "doors/http/users/user.h"

/* Every so often the link is looked at: one without talks for so many times is given up, one that
 * owes an answer and has been silent is asked for a sign of life, and given up if that does not
 * come. */
#define TICK_MS 20000u
#define IDLE_TICKS 3u
#define TALKS_MAX (COOP_FILES_TALKS_MAX - 16u)
/* The talk of signs of life. */
#define PULSE_ID 1u
#define WRITE_TIMEOUT_MS 60000

struct coop_files_talk {
	struct files_link *link; /* NULL: it has failed */
	struct coop_link all;    /* of the link */
	uint32_t id;
	struct coop_files_handler handler;
	unsigned unanswered;
	bool last; /* with the answer to what was sent the talk ends */
	bool ended;
};

struct files_link {
	struct coop_user_extra extra; /* first */
	struct coop_user *user;       /* it goes with it */
	uv_timer_t timer;
	struct coop_later broken;                 /* gives up */
	struct coop_call *spawn, *follow, *write; /* on their way */
	char id[COOP_ID_SIZE];                    /* of the process; "": there is none */
	struct coop_buf in, out;
	struct coop_map by_id;
	struct coop_link talks; /* newest first */
	size_t talk_count;
	uint32_t last_id;
	unsigned idle_ticks;
	bool heard;  /* something since the last tick */
	bool pulsed; /* a sign of life has been asked for */
};

static void flush(struct files_link *link);

static struct coop_files_talk *talk_of(struct coop_link *link)
{
	return COOP_LIST_ITEM(link, struct coop_files_talk, all);
}

static void unlink_talk(struct coop_files_talk *talk)
{
	struct files_link *link = talk->link;

	coop_list_remove(&talk->all);
	(void)coop_map_remove(&link->by_id, talk->id);
	link->talk_count--;
	talk->link = NULL;
}

static void fail_talks(struct files_link *link, const struct coop_error *error)
{
	/* Who is refused may ask for the next thing at once: that is for the next helper. */
	uint32_t last = link->last_id;
	struct coop_link *at = link->talks.next;

	while (at != &link->talks) {
		struct coop_files_talk *talk = talk_of(at);
		if (talk->id > last) {
			at = at->next;
			continue;
		}
		unlink_talk(talk);
		talk->handler.failed(talk->handler.context, error);
		at = link->talks.next; /* others may have gone, too */
	}
}

/* Forgets the process, which ends if it has not. */
static void abandon(struct files_link *link)
{
	const struct coop_handler nobody = {0};

	coop_user_drop(link->spawn);
	coop_user_drop(link->follow);
	coop_user_drop(link->write);
	link->spawn = link->follow = link->write = NULL;
	if (link->id[0])
		(void)coop_user_call(link->user, "release", json_pack("{s:s}", "id", link->id),
				     NULL, 0, &nobody);
	link->id[0] = '\0';
	coop_buf_clear(&link->in);
	coop_buf_clear(&link->out);
	link->idle_ticks = 0;
	link->pulsed = false;
	(void)uv_timer_stop(&link->timer);
	coop_later_cancel(&link->broken);
}

static struct coop_error make_error(const char *code, const char *message)
{
	struct coop_error error = {0};

	(void)strncat(error.code, code, sizeof error.code - 1);
	(void)strncat(error.message, message, sizeof error.message - 1);
	return error;
}

static void give_up(struct files_link *link, const char *code, const char *message)
{
	const struct coop_error error = make_error(code, message);

	abandon(link);
	fail_talks(link, &error);
}

static void release(struct coop_user_extra *extra)
{
	struct files_link *link = (struct files_link *)extra;

	coop_user_drop(link->spawn);
	coop_user_drop(link->follow);
	coop_user_drop(link->write);
	while (!coop_list_empty(&link->talks))
		unlink_talk(talk_of(link->talks.next));
	coop_map_clear(&link->by_id);
	coop_buf_clear(&link->in);
	coop_buf_clear(&link->out);
	coop_later_cancel(&link->broken);
	uv_close((uv_handle_t *)&link->timer, coop_http_free_owner);
}

static void on_broken(struct coop_later *item)
{
	give_up(COOP_LATER_OWNER(item, struct files_link, broken), "unavailable", "out of memory");
}

static const struct coop_user_kind kind = {.release = release};

static struct files_link *link_of(struct coop_user *user)
{
	struct files_link *link = (struct files_link *)coop_user_extra(user, &kind);

	if (link)
		return link;
	link = coop_mem_zalloc(sizeof *link);
	if (!link)
		return NULL;
	coop_list_init(&link->talks);
	link->user = user;
	link->last_id = PULSE_ID;
	link->broken.run = on_broken;
	(void)uv_timer_init(coop_user_net(user)->loop, &link->timer);
	link->timer.data = link;
	coop_user_hang(user, &kind, &link->extra);
	return link;
}

/* Puts a frame into the queue. */
static int queue(struct files_link *link, uint32_t id, const json_t *request, const void *data,
		 size_t size)
{
	char *text = json_dumps(request, JSON_COMPACT);
	const size_t length = text ? strlen(text) : 0;
	uint8_t *place =
		text ? coop_buf_reserve(&link->out, COOP_FILES_FRAME_HEADER + length + size) : NULL;

	if (place) {
		coop_files_frame_put(place, id, length, size);
		memcpy(place + COOP_FILES_FRAME_HEADER, text, length);
		if (size)
			memcpy(place + COOP_FILES_FRAME_HEADER + length, data, size);
		coop_buf_commit(&link->out, COOP_FILES_FRAME_HEADER + length + size);
	}
	free(text);
	return place ? 0 : -ENOMEM;
}

/* Gives up when the turn ends: whoever is told of it may be the one who has just asked for
 * something. */
static void break_down(struct files_link *link)
{
	coop_later(&coop_user_net(link->user)->laters, &link->broken);
}

static void on_tick(uv_timer_t *timer)
{
	struct files_link *link = timer->data;
	bool owes = false;

	if (coop_list_empty(&link->talks)) {
		if (++link->idle_ticks >= IDLE_TICKS)
			abandon(link);
		return;
	}
	link->idle_ticks = 0;
	COOP_LIST_EACH(&link->talks, at)
	owes = owes || talk_of(at)->unanswered;
	if (owes && !link->heard && link->pulsed) {
		give_up(link, "timeout", "the file helper does not answer");
		return;
	}
	link->pulsed = owes && !link->heard;
	link->heard = false;
	if (!link->pulsed)
		return;
	json_t *request = json_pack("{s:s,s:s}", "op", "stat", "path", "/");
	(void)queue(link, PULSE_ID, request, NULL, 0);
	json_decref(request);
	flush(link);
}

static void tell(struct files_link *link, const struct coop_files_frame *frame, const json_t *json)
{
	struct coop_files_talk *talk = coop_map_get(&link->by_id, frame->id);
	const json_t *error = json_object_get(json, "error");
	const json_t *message = json_object_get(json, "message");

	if (!talk)
		return;
	if (talk->unanswered)
		talk->unanswered--;
	if (error) {
		const char *code = json_string_value(error);
		const struct coop_error told =
			make_error(code && *code == 'E' ? code : "internal",
				   json_is_string(message) ? json_string_value(message)
							   : "no reason was given");
		unlink_talk(talk);
		talk->handler.failed(talk->handler.context, &told);
		return;
	}
	talk->ended = (talk->last && !talk->unanswered) ||
		      json_is_true(json_object_get(json, "whole")) ||
		      json_is_true(json_object_get(json, "over"));
	const struct coop_files_answer answer = {.json = json,
						 .text = frame->json,
						 .text_size = frame->json_size,
						 .data = frame->data,
						 .size = frame->size};
	talk->handler.answer(talk->handler.context, &answer);
}

/* What comes from a sandbox is not to be trusted: frames that are none end the link. */
static void on_data(void *user, uint64_t request, const struct coop_chunk *chunk)
{
	struct files_link *link = user;
	struct coop_files_frame frame;
	size_t used;
	int found = coop_buf_append(&link->in, chunk->data, chunk->size);

	link->heard = true;
	while (found >= 0 && link->follow &&
	       (found = coop_files_frame_parse(coop_buf_front(&link->in), coop_buf_size(&link->in),
					       &frame, &used)) > 0) {
		json_t *json = json_loadb(frame.json, frame.json_size, 0, NULL);
		if (json_is_object(json))
			tell(link, &frame, json);
		else
			found = -EPROTO;
		json_decref(json);
		if (link->follow)
			coop_buf_consume(&link->in, used);
	}
	if (found < 0)
		give_up(link, "unavailable", "the file helper speaks nonsense");
}

/* Bytes were lost: nothing that follows can be understood. */
static void on_event(void *user, uint64_t request, const char *json)
{
	json_t *event = json_loads(json, 0, NULL);
	const char *name = json_string_value(json_object_get(event, "event"));
	const bool gap = name && strcmp(name, "gap") == 0;

	json_decref(event);
	if (gap)
		give_up(user, "unavailable", "the file helper's answers were lost");
}

static void on_end(void *user, uint64_t request, int status, const char *json,
		   const struct coop_error *error)
{
	struct files_link *link = user;

	link->follow = NULL;
	give_up(link, "unavailable", "the file helper has ended");
}

static void on_written(void *user, uint64_t request, int status, const char *json,
		       const struct coop_error *error)
{
	struct files_link *link = user;
	json_t *result = status < 0 ? NULL : json_loads(json, 0, NULL);
	bool success = json_is_true(json_object_get(result, "success"));

	json_decref(result);
	link->write = NULL;
	if (success)
		flush(link);
	else
		give_up(link, "unavailable", "the file helper takes nothing");
}

/* One write at a time keeps their order. */
static void flush(struct files_link *link)
{
	const struct coop_handler handler = {.done = on_written, .user = link};
	size_t size = coop_buf_size(&link->out);

	if (!link->id[0] || !link->follow || link->write || !size)
		return;
	if (size > COOP_WRITE_STDIN_MAX)
		size = COOP_WRITE_STDIN_MAX;
	link->write = coop_user_call(
		link->user, "write_stdin",
		json_pack("{s:s,s:i}", "id", link->id, "timeout_ms", WRITE_TIMEOUT_MS),
		coop_buf_front(&link->out), size, &handler);
	if (link->write)
		coop_buf_consume(&link->out, size);
	else
		break_down(link);
}

static void follow(struct files_link *link)
{
	const struct coop_handler handler = {
		.data = on_data, .event = on_event, .done = on_end, .user = link};

	link->follow = coop_user_call(
		link->user, "follow",
		json_pack("{s:s,s:[s],s:b}", "id", link->id, "streams", "stdout", "drain", 1), NULL,
		0, &handler);
	if (link->follow)
		flush(link);
	else
		break_down(link);
}

static void on_spawned(void *user, uint64_t request, int status, const char *json,
		       const struct coop_error *error)
{
	struct files_link *link = user;
	json_t *result = status < 0 ? NULL : json_loads(json, 0, NULL);
	const char *id =
		json_string_value(json_object_get(json_object_get(result, "process"), "id"));

	link->spawn = NULL;
	if (id && strlen(id) < sizeof link->id) {
		memcpy(link->id, id, strlen(id) + 1);
		json_decref(result);
		follow(link);
		return;
	}
	json_decref(result);
	if (error) {
		abandon(link);
		fail_talks(link, error);
	} else {
		give_up(link, "unavailable", "out of memory");
	}
}

static int start(struct files_link *link)
{
	const struct coop_door_ceiling ceiling = coop_user_ceiling(link->user);
	const struct coop_handler handler = {.done = on_spawned, .user = link};
	json_t *sandbox = json_object();
	char alias[64];

	/* Each has a name of its own: one agent may have several tokens, and gateways. */
	(void)snprintf(alias, sizeof alias, "#files-%" PRIx64 "-%" PRIxPTR, uv_hrtime(),
		       (uintptr_t)link);
	if (ceiling.profile)
		(void)json_object_set_new(sandbox, "profile", json_string(ceiling.profile));
	if (ceiling.workspace)
		(void)json_object_set_new(sandbox, "workspace", json_string(ceiling.workspace));
	json_t *args = json_pack("{s:s,s:s,s:s,s:s,s:s,s:o}", "helper", "files", "stdin", "pipe",
				 "overflow", "backpressure", "lease", "ephemeral", "alias", alias,
				 "sandbox", sandbox);
	link->spawn = args ? coop_user_call(link->user, "spawn", args, NULL, 0, &handler) : NULL;
	if (!link->spawn)
		return -ENOMEM;
	link->heard = true;
	(void)uv_timer_start(&link->timer, on_tick, TICK_MS, TICK_MS);
	return 0;
}

int coop_files_send(struct coop_files_talk *talk, json_t *request, const void *data, size_t size)
{
	struct files_link *link = talk->link;
	const char *op = json_string_value(json_object_get(request, "op"));
	int r = 0;

	if (link && !request)
		r = -ENOMEM;
	else if (link)
		r = queue(link, talk->id, request, data, size);
	if (link && r == 0) {
		talk->unanswered++;
		talk->last = strcmp(op, "commit") == 0 || strcmp(op, "stat") == 0 ||
			     strcmp(op, "mkdir") == 0 || strcmp(op, "move") == 0 ||
			     strcmp(op, "remove") == 0;
		flush(link);
	}
	json_decref(request);
	return r;
}

static struct coop_files_talk *add_talk(struct files_link *link,
					const struct coop_files_handler *handler)
{
	struct coop_files_talk *talk = coop_mem_zalloc(sizeof *talk);

	if (!talk)
		return NULL;
	do
		link->last_id++;
	while (link->last_id <= PULSE_ID || coop_map_get(&link->by_id, link->last_id));
	if (coop_map_put(&link->by_id, link->last_id, talk) < 0) {
		free(talk);
		return NULL;
	}
	talk->id = link->last_id;
	talk->handler = *handler;
	talk->link = link;
	coop_list_push(&link->talks, &talk->all);
	link->talk_count++;
	link->idle_ticks = 0;
	return talk;
}

int coop_files_open(struct coop_user *user, json_t *request,
		    const struct coop_files_handler *handler, struct coop_files_talk **ret_talk)
{
	struct files_link *link = link_of(user);
	struct coop_files_talk *talk = NULL;
	bool full = link && (link->talk_count >= TALKS_MAX ||
			     coop_buf_size(&link->out) > COOP_FILES_QUEUE_MAX);

	if (link && !full && request && (link->spawn || link->id[0] || start(link) == 0))
		talk = add_talk(link, handler);
	if (talk && coop_files_send(talk, json_incref(request), NULL, 0) < 0) {
		coop_files_close(talk);
		talk = NULL;
	}
	json_decref(request);
	if (!talk)
		return full ? -EBUSY : -ENOMEM;
	*ret_talk = talk;
	return 0;
}

bool coop_files_full(const struct coop_files_talk *talk)
{
	return talk->link && coop_buf_size(&talk->link->out) > COOP_FILES_QUEUE_HIGH;
}

void coop_files_close(struct coop_files_talk *talk)
{
	if (!talk)
		return;
	struct files_link *link = talk->link;
	if (link && !talk->ended) {
		json_t *request = json_pack("{s:s}", "op", "close");
		/* Without memory for that it stays open over there, until the helper goes. */
		(void)queue(link, talk->id, request, NULL, 0);
		json_decref(request);
	}
	if (link) {
		unlink_talk(talk);
		flush(link);
	}
	free(talk);
}
