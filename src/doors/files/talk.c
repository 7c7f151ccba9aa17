#include "doors/files/talk.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "interface/err.h"

void files_send(struct files_talk *talk, const char *json, size_t json_size, const void *data,
		size_t size)
{
	struct coop_buf *out = &talk->server->out;
	uint8_t *place = coop_buf_reserve(out, COOP_FILES_FRAME_HEADER + json_size + size);

	if (!place) {
		talk->server->failed = true;
		return;
	}
	coop_files_frame_put(place, talk->id, json_size, size);
	memcpy(place + COOP_FILES_FRAME_HEADER, json, json_size);
	if (size)
		memcpy(place + COOP_FILES_FRAME_HEADER + json_size, data, size);
	coop_buf_commit(out, COOP_FILES_FRAME_HEADER + json_size + size);
}

void files_send_json(struct files_talk *talk, struct coop_jsonw *w, const void *data, size_t size)
{
	if (w->failed)
		talk->server->failed = true;
	else
		files_send(talk, (const char *)coop_buf_front(w->out), coop_buf_size(w->out), data,
			   size);
	coop_buf_clear(w->out);
}

void files_send_done(struct files_talk *talk)
{
	files_send(talk, "{}", 2, NULL, 0);
}

enum files_turn files_fail(struct files_talk *talk, int status, const char *subject)
{
	char message[FILES_PATH_MAX + 128];
	struct coop_buf text = {0};
	struct coop_jsonw w = {.out = &text};

	(void)snprintf(message, sizeof message, "%s%s%s", subject ? subject : "",
		       subject ? ": " : "", strerror(-status));
	coop_jsonw_begin(&w, NULL);
	coop_jsonw_string(&w, "error", coop_err_errno_name(-status));
	coop_jsonw_string(&w, "message", message);
	coop_jsonw_end(&w);
	files_send_json(talk, &w, NULL, 0);
	return FILES_OVER;
}

enum files_turn files_send_entry(struct files_talk *talk, const char *path)
{
	struct coop_buf text = {0};
	struct coop_jsonw w = {.out = &text};

	coop_jsonw_begin(&w, NULL);
	int r = files_entry_of(&w, "file", path, &talk->server->names);
	coop_jsonw_end(&w);
	if (r < 0) {
		coop_buf_clear(&text);
		/* A part before the last that is no directory: there is nothing by that name. */
		return files_fail(talk, r == -ENOTDIR ? -ENOENT : r, path);
	}
	files_send_json(talk, &w, NULL, 0);
	return FILES_OVER;
}

int files_take_path(struct files_talk *talk, const struct files_request *request,
		    const char *member, char ret_path[FILES_PATH_MAX])
{
	const char *given = json_string_value(json_object_get(request->json, member));

	if (!given) {
		(void)files_fail(talk, -EINVAL, member);
		return -EINVAL;
	}
	int r = files_path_clean(talk->server->start, given, ret_path);
	if (r < 0)
		(void)files_fail(talk, r == -ENOTDIR ? -ENOENT : r, given);
	return r;
}

const struct files_op files_ops[] = {
	{"stat", FILES_NEW, files_stat},
	{"mkdir", FILES_NEW, files_mkdir},
	{"move", FILES_NEW, files_move},
	{"remove", FILES_NEW, files_remove},
	{"list", FILES_NEW, files_list},
	{"open_read", FILES_NEW, files_open_read},
	{"open_write", FILES_NEW, files_open_write},
	{"watch", FILES_NEW, files_watch},
	{"read", FILES_CONTENT, files_read},
	{"write", FILES_UPLOAD, files_write},
	{"commit", FILES_UPLOAD, files_commit},
	{0},
};
