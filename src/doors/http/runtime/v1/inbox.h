/* What a client sends to a process over its WebSocket: input, its end, sizes, signals. Carried out
 * one after the other in the order they came, also when the WebSocket has gone meanwhile: clients
 * close right behind their last message. */
#ifndef COOP_HTTP_V1_INBOX_H
#define COOP_HTTP_V1_INBOX_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "doors/http/runtime/feed.h"

struct coop_inbox;
struct coop_user;
struct coop_ws;

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

/* NULL without memory. */
struct coop_inbox *coop_inbox_new(struct coop_user *user, struct coop_ws *ws);
/* The process is there. Before that messages wait. */
void coop_inbox_open(struct coop_inbox *inbox, struct coop_feed *feed);

/* Input, in base64. */
void coop_inbox_stdin(struct coop_inbox *inbox, const char *text, size_t length);
/* One message. Types that are not known are ignored, as clients ignore ours. */
void coop_inbox_message(struct coop_inbox *inbox, const char *type, const json_t *message);
/* One that was too large to be taken: what came behind it is lost as well. Said so, in its turn. */
void coop_inbox_lost(struct coop_inbox *inbox);
/* One that cannot be understood: said so, in its turn. */
void coop_inbox_refuse(struct coop_inbox *inbox);

/* The WebSocket has gone. With a process it frees itself when it is done, and must not be touched
 * any more; without one it waits for that. */
void coop_inbox_leave(struct coop_inbox *inbox);
/* There will be no process. NULL is fine. */
void coop_inbox_drop(struct coop_inbox *inbox);

#endif
