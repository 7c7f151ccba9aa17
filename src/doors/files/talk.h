/* Talks: what goes on under one id (frame.h), and the loop that gives each of them its turn.
 *
 * One thread does everything, so no turn may take long: a function that has much to do does a slice
 * of it and says that it wants another turn. */
#ifndef COOP_FILES_TALK_H
#define COOP_FILES_TALK_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/json/jsonw.h"
#include "doors/files/entry.h"
#include "doors/files/frame.h"
#include "doors/files/path.h"

/* Names looked at in one turn. */
#define FILES_TURN 256u

struct files_request {
	struct files_request *next;
	const struct files_op *op;
	json_t *json;
	size_t size, used; /* bytes that came with it; how much of them has been dealt with */
	uint8_t data[];
};

enum files_turn {
	FILES_DONE,  /* the request is dealt with, the talk goes on */
	FILES_AGAIN, /* another turn is wanted */
	FILES_OVER,  /* the talk has ended */
};

/* What a talk is about once it is open: which requests belong to it. */
enum files_kind { FILES_NEW, FILES_CONTENT, FILES_UPLOAD, FILES_WATCH, FILES_WORK };

struct files_talk {
	struct files_talk *next;
	struct files_server *server;
	uint32_t id;
	enum files_kind kind;
	struct files_request *first, *last; /* in their order; the first one is being dealt with */
	void *state;
	void (*drop)(struct files_talk *talk); /* frees the state */
	/* Work besides requests; called in turn while it is set and no request waits. */
	enum files_turn (*background)(struct files_talk *talk);
};

/* One row for each operation. */
struct files_op {
	const char *name;
	enum files_kind kind; /* of the talks that it belongs to; FILES_NEW: it opens one */
	enum files_turn (*turn)(struct files_talk *talk, struct files_request *request);
};

struct files_watches;

struct files_server {
	char start[FILES_PATH_MAX]; /* where relative paths begin */
	struct files_talk *talks;
	size_t talk_count;
	size_t waiting; /* bytes of requests that wait */
	struct coop_buf in, out;
	struct files_names names;
	struct files_watches *watches; /* NULL until something is watched */
	int signals;                   /* a signalfd, or -1 */
	unsigned uploads;              /* begun so far */
	bool failed;                   /* no memory for an answer: all ends */
};

/* The operations, ended by a row without a name. */
extern const struct files_op files_ops[];

/* Serves stdin and stdout until the end of stdin. 0, or -errno with *ret_why. */
int files_serve(struct files_server *server, const char **ret_why);
void files_server_clear(struct files_server *server);

/* Sends a frame. */
void files_send(struct files_talk *talk, const char *json, size_t json_size, const void *data,
		size_t size);
/* Sends what was written (and clears it), or fails if there was no memory for that. */
void files_send_json(struct files_talk *talk, struct coop_jsonw *w, const void *data, size_t size);
/* Sends {}. */
void files_send_done(struct files_talk *talk);
/* Says why it failed; `subject` (a path, or NULL) is shown. FILES_OVER. */
enum files_turn files_fail(struct files_talk *talk, int status, const char *subject);
/* Looks at a path and answers with {"file":E}. FILES_OVER. */
enum files_turn files_send_entry(struct files_talk *talk, const char *path);

/* The clean path that a request names. 0, or it has failed: FILES_OVER is to be returned. */
int files_take_path(struct files_talk *talk, const struct files_request *request,
		    const char *member, char ret_path[FILES_PATH_MAX]);

/* Turns of the operations, each in the file of its name. */
enum files_turn files_stat(struct files_talk *talk, struct files_request *request);
enum files_turn files_mkdir(struct files_talk *talk, struct files_request *request);
enum files_turn files_move(struct files_talk *talk, struct files_request *request);
enum files_turn files_remove(struct files_talk *talk, struct files_request *request);
enum files_turn files_list(struct files_talk *talk, struct files_request *request);
enum files_turn files_open_read(struct files_talk *talk, struct files_request *request);
enum files_turn files_read(struct files_talk *talk, struct files_request *request);
enum files_turn files_open_write(struct files_talk *talk, struct files_request *request);
enum files_turn files_write(struct files_talk *talk, struct files_request *request);
enum files_turn files_commit(struct files_talk *talk, struct files_request *request);
enum files_turn files_watch(struct files_talk *talk, struct files_request *request);

#endif
