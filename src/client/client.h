/* What the files of libcoop share: one connection, its open requests, and its errors. Not for
 * doors. */
#ifndef COOP_CLIENT_H
#define COOP_CLIENT_H

#include <jansson.h>

#include "base/buf.h"
#include "client/child.h"
#include "coop.h"

#define COOP_PUBLIC __attribute__((visibility("default")))

/* How long a keeper may take to listen, to say hello, or (private) to end what it owns. */
#define COOP_CLIENT_PATIENCE_MS 15000
/* Most bytes that wait to be sent; a caller who submits more than the keeper takes is told
 * -EAGAIN. */
#define COOP_CLIENT_OUT_MAX (64u << 20)

/* An open request. Ids are chosen such that `id & (slots - 1)` is the slot, so that there are no
 * collisions. */
struct coop_reply_slot {
	uint64_t id; /* 0: free */
	struct coop_handler handler;
};

struct coop {
	int fd;
	struct coop_child child; /* a private keeper; its pid is 0 if there is none */
	int owner;               /* the process that opened it: only that one ends the child */
	bool greeted;
	bool dispatching; /* handlers run: no blocking call may start */
	bool deaf; /* the keeper takes nothing any more; what it said before is still to be read */
	bool ended;
	struct coop_error end; /* why it ended */
	int keeper_pid;
	char keeper_version[32];
	json_t *inherit; /* names and patterns of the hello; NULL: none */
	struct coop_buf in, out;
	struct coop_reply_slot *slots; /* `slot_count` is a power of two */
	size_t slot_count, open_count;
	uint64_t next_id;
};

/* Fills *error (which may be NULL) and returns `status`, so that failing is one statement. */
int coop_client_fail(struct coop_error *error, int status, const char *code, const char *format,
		     ...) __attribute__((format(printf, 4, 5)));
/* The same, for a fault of one argument: details say {"field": field}. `field` needs no
 * escaping. */
int coop_client_refuse(struct coop_error *error, int status, const char *code, const char *field,
		       const char *message);
/* Takes over an error object of the keeper, given as its JSON text. */
void coop_client_error_parse(const char *json, size_t size, struct coop_error *ret);

/* A connection around `fd`, which it owns from now on; NULL without memory (the fd stays the
 * caller's). */
struct coop *coop_client_new(int fd);
/* Waits for the hello. 0; -EPIPE if the connection closed first; -ETIMEDOUT; -EPROTO. */
int coop_client_greet(struct coop *coop, struct coop_error *error);

/* The token that these options mean, NULL for none. -EINVAL if it cannot be one. */
int coop_client_token(const struct coop_options *options, const char **ret,
		      struct coop_error *error);
/* Makes the connection act as the token's agent. 0; -EACCES; what coop_call() gives. */
int coop_client_login(struct coop *coop, const char *token, struct coop_error *error);

/* A copy of this program's environment without the token, which is no business of a keeper: the
 * array is the caller's, its strings are not. `more` (may be NULL) is put in place of the entry
 * of the same name. NULL without memory. */
char **coop_client_environment(char *more);

/* Starts a keeper on `path` unless another client does so first. Returns when it listens. */
int coop_client_start(const char *path, const struct coop_options *options,
		      struct coop_error *error);

/* Sends what the socket takes now. A broken pipe only makes the connection deaf. */
void coop_client_flush(struct coop *coop);

/* The slot of an open request, or NULL. Valid until the next submit. */
struct coop_reply_slot *coop_client_find(const struct coop *coop, uint64_t request);
/* Removes an open request and returns its handler. */
struct coop_handler coop_client_take(struct coop *coop, struct coop_reply_slot *slot);

#endif
