/* A user's link to its file helper: the program coop-files, which the keeper runs in that user's
 * sandbox (doors/files/frame.h tells what is said).
 *
 * It is started with the first request, is given up after a minute without use, and goes with the
 * gateway. When it dies, what was asked of it fails, and the next request starts another. */
#ifndef COOP_HTTP_FILES_LINK_H
#define COOP_HTTP_FILES_LINK_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "coop.h"
#include "doors/files/frame.h"
#include "doors/http/users/user.h"

/* Bytes that may wait for the helper's stdin: beyond the first, coop_files_full() says so; beyond
 * the second, new requests are refused. */
#define COOP_FILES_QUEUE_HIGH (1u << 20)
#define COOP_FILES_QUEUE_MAX (8u << 20)

struct coop_files_talk;

/* An answer, valid until the handler returns. */
struct coop_files_answer {
	const json_t *json;
	const char *text; /* the same as text */
	size_t text_size;
	const void *data;
	size_t size;
};

struct coop_files_handler {
	void (*answer)(void *context, const struct coop_files_answer *answer);
	/* It has failed, and nothing more comes. The code is the name of an errno (the helper's
	 * word), a code of the keeper's, "unavailable" or "timeout". */
	void (*failed)(void *context, const struct coop_error *error);
	void *context;
};

/* Opens a talk. `request` is taken over. The handler is called later, never from here. 0, -EBUSY
 * (there are as many as there may be), or -ENOMEM. */
int coop_files_open(struct coop_user *user, json_t *request,
		    const struct coop_files_handler *handler, struct coop_files_talk **ret_talk);

/* A further request. `request` is taken over. 0 or -ENOMEM; of a talk that has failed nothing is
 * sent. */
int coop_files_send(struct coop_files_talk *talk, json_t *request, const void *data, size_t size);

/* Whether so much waits for the helper that nothing large should be added. */
bool coop_files_full(const struct coop_files_talk *talk);

/* Ends the talk, if it has not ended, and frees it. Whoever opened it does so in every case. NULL
 * is fine. */
void coop_files_close(struct coop_files_talk *talk);

#endif
