/* What a client sends to its process: input, signals, sizes. It is carried out one by one, in the
 * order in which it came, at the speed of the process; what cannot be delivered is noted among the
 * output, once. A client that goes leaves behind what it has sent: that is still carried out. */
#ifndef COOP_HTTP_INBOX_H
#define COOP_HTTP_INBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "doors/http/runtime/feed.h"

struct coop_inbox;
struct coop_user;

/* The client is not listened to while more bytes, or more messages, wait. It is much, as there
 * are clients that send all they have without waiting for an acknowledgement, and give up when a
 * send makes no progress for a second: a program that begins to read after two must not make
 * them fail. Where all clients of an agent have more waiting (COOP_USER_INPUT_MAX), each may
 * have COOP_INBOX_BYTES_LEAST. */
#define COOP_INBOX_BYTES_MAX (64u << 20)
#define COOP_INBOX_BYTES_LEAST (1u << 20)
#define COOP_INBOX_COUNT_MAX 16384u
/* It is listened to again when so much less waits: little, so that a slow program lets its
 * client go on all the time. */
#define COOP_INBOX_BYTES_STEP (256u << 10)
#define COOP_INBOX_COUNT_STEP 512u
/* What a client left behind is carried out until the process has taken nothing for that long;
 * then a note says so. */
#define COOP_INBOX_LEFT_MS 10000u

enum coop_inbox_kind {
	COOP_INBOX_BYTES,
	COOP_INBOX_GARBLED, /* bytes that could not be decoded */
	COOP_INBOX_CLOSE,
	COOP_INBOX_RESIZE,
	COOP_INBOX_SIGNAL,
	COOP_INBOX_UNREAD, /* a message that could not be understood */
	COOP_INBOX_LOST,   /* one that was too large; what came behind it is lost as well */
};

/* What is told of bytes, and of the end of them. */
struct coop_inbox_outcome {
	enum coop_inbox_kind kind; /* BYTES, GARBLED or CLOSE */
	const char *name;          /* what clients call the process */
	bool refused;              /* the process takes none */
	bool partly;               /* not all was written */
	size_t written;
};

/* The client, as long as it is there. */
struct coop_inbox_client {
	void (*told)(void *context, const struct coop_inbox_outcome *outcome);
	void (*listen)(void *context, bool on);
	/* Something cannot be carried out, and must not be passed over. */
	void (*starved)(void *context);
};

/* NULL without memory. */
struct coop_inbox *coop_inbox_new(struct coop_user *user, const struct coop_inbox_client *client,
				  void *context);
/* The process is there. Before that what comes waits. */
void coop_inbox_open(struct coop_inbox *inbox, struct coop_feed *feed);

/* Adds something without bytes: CLOSE, UNREAD, LOST. */
void coop_inbox_add(struct coop_inbox *inbox, enum coop_inbox_kind kind);
void coop_inbox_resize(struct coop_inbox *inbox, unsigned cols, unsigned rows);
void coop_inbox_signal(struct coop_inbox *inbox, int number);
/* Adds bytes in base64; NULL: there was no text where it should be. */
void coop_inbox_base64(struct coop_inbox *inbox, const char *text, size_t length);

/* The client has gone. With a process it frees itself when it is done, and must not be touched any
 * more; without one it waits for that. */
void coop_inbox_leave(struct coop_inbox *inbox);
/* There will be no process. NULL is fine. */
void coop_inbox_drop(struct coop_inbox *inbox);

#endif
