/* Threads that look up paths which the loop must not: those that the kernel does not have at hand,
 * and those on file systems that can be silent (silence.h). A request that names some waits for
 * one of them, and is then carried out by the loop as any other: the file system has answered a
 * moment ago. One that dies in that moment still stops the loop; nothing can be done about that
 * but having all of a start done by somebody else.
 *
 * There are few of them, and one that is stuck in the kernel stays so: where all are, requests that
 * need one are refused at once. Nobody waits for a thread to end, the keeper's own end neither. */
#ifndef COOP_KEEPER_SCOUTS_H
#define COOP_KEEPER_SCOUTS_H

#include <stdbool.h>
#include <stddef.h>

#include "interface/err.h"

#define COOP_SCOUTS_MAX 4u
#define COOP_SCOUTS_DEADLINE_MS 5000u /* for a file system to answer in */
#define COOP_SCOUTS_QUEUE_MAX 1024u   /* requests that wait for a free thread */
#define COOP_SCOUTS_PATHS_MAX 256u    /* that one request has looked up, sockets included */
#define COOP_SCOUTS_SOCKETS_MAX 128u

struct coop_errand;
struct coop_keeper;
struct coop_request;
struct coop_scouts;

struct coop_silence;

/* Which of the keeper's paths can be looked up without waiting. */
struct coop_silence *coop_silence_of(const struct coop_keeper *keeper);

/* NULL without memory. No thread runs before it is needed. */
struct coop_scouts *coop_scouts_new(struct coop_keeper *keeper);
/* At the keeper's end. False: a thread is still at work, and the process must end without waiting
 * for it. */
bool coop_scouts_end(struct coop_scouts *scouts);

/* What is to be looked up for one request; NULL without memory. */
struct coop_errand *coop_errand_new(void);
/* Copies the name of a socket of the host: whether it is there is found out, too, and the request
 * does not depend on it. What was found is learnt of a `cold` one (host_sockets.h), others are lent
 * for this request alone: later they may not answer. These come first. 0 or -ENOMEM; beyond the
 * bound -E2BIG. */
int coop_errand_add_socket(struct coop_errand *errand, const char *name, bool cold);
/* Likewise a path that the request needs. `field` is what it calls it; `silent`: its file system
 * can be. */
int coop_errand_add(struct coop_errand *errand, const char *field, const char *path, bool silent);
void coop_errand_free(struct coop_errand *errand); /* NULL is fine */

/* Sends a thread, and takes the errand over. The request is carried out from its beginning when
 * all has been looked up, or refused (`unavailable`, naming the field) if that takes too long; it
 * may be dropped before. Sockets that do not answer are left out. Where no thread is to be had,
 * that happens at once; paths of this host's own file systems are then left to the loop. */
void coop_scouts_send(struct coop_scouts *scouts, struct coop_errand *errand,
		      struct coop_request *request);

/* The same for the keeper itself, with no deadline: `then` is called in the loop when all has been
 * looked up. One such errand is carried out at a time. False: it cannot be sent, and stays the
 * caller's. */
bool coop_scouts_send_alone(struct coop_scouts *scouts, struct coop_errand *errand,
			    void (*then)(struct coop_keeper *keeper, void *user), void *user);
/* Whether such an errand is not back yet. */
bool coop_scouts_away(struct coop_scouts *scouts);

/* Whether a thread is stuck at a socket: then there is no use in asking for any. */
bool coop_scouts_miss_sockets(struct coop_scouts *scouts);

#endif
