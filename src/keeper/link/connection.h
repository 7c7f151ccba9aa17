/* One client: frames in, frames out. Output waits here, bounded: a client that does not read is not
 * read from either, and a follower only produces what there is room for. */
#ifndef COOP_KEEPER_CONNECTION_H
#define COOP_KEEPER_CONNECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#include "base/buf.h"
#include "base/json/jsonw.h"
#include "base/later.h"
#include "base/list.h"
#include "keeper/owner/account.h"

#define COOP_CONN_REQUESTS_MAX 256u
/* No more is read from a client that leaves so much unread. The second of each pair holds while an
 * account of the connection's agent is full (coop_account_full). */
#define COOP_CONN_UNREAD_MAX (4u << 20)
#define COOP_CONN_UNREAD_TIGHT (128u << 10)
/* Events that are told once are lost, and counted, where so much waits. */
#define COOP_CONN_EVENTS_MAX (512u << 10)
#define COOP_CONN_EVENTS_TIGHT (32u << 10)
/* Output of processes is added while less than this waits: until then it stays in the rings. A
 * socket takes not much more than this at once. */
#define COOP_CONN_ROOM (128u << 10)
#define COOP_CONN_ROOM_TIGHT (16u << 10)
/* An answer that can go on in another ends, with `more`, at about this size. */
#define COOP_CONN_ANSWER_MAX (6u << 20)
#define COOP_CONN_ANSWER_TIGHT (256u << 10)

struct coop_agent;
struct coop_ceiling;
struct coop_keeper;
struct coop_request;

struct coop_conn {
	struct coop_keeper *keeper;
	struct coop_link in_keeper;
	struct coop_agent *agent;     /* that it acts as, a reference; NULL: nobody */
	int64_t token;                /* that it has logged in with; 0: none */
	int64_t expires_at;           /* the token, by the wall clock; 0: never */
	bool is_operator;             /* the user's own, who has shown no token */
	bool narrowed;                /* it has logged in as an agent, by its name */
	bool used;                    /* it has done more than look */
	struct coop_ceiling *ceiling; /* that its door was configured with; NULL: none */
	uv_timer_t *expiry;           /* of the token, or NULL */
	/* that it counts for, a reference; NULL: the owner, or nobody */
	struct coop_agent *account;
	struct coop_link in_nobody; /* while it acts as nobody; see admission.h */
	uint64_t nobody_since;      /* by the loop's clock */
	int fd;
	uv_poll_t poll;
	int interest; /* what the poll waits for now */
	struct coop_buf in, out;
	size_t coming;             /* bytes for it that the disk was asked for */
	struct coop_unread unread; /* what of that its agent answers for */
	/* ends that stand in `out`, in their order: see coop_eviction_tells() */
	struct coop_buf telling;
	uint64_t sent; /* bytes that the socket has taken, in all */
	struct coop_link requests;
	unsigned request_count;
	struct coop_link follows;        /* struct coop_follow, served in turn */
	struct coop_link subscribers;    /* struct coop_subscriber */
	struct coop_link holders;        /* struct coop_holder */
	uint64_t sent_at;                /* with holders: when the client took something last */
	struct coop_link ready;          /* requests whose large answers wait for room */
	struct coop_link leases;         /* ephemeral processes that end with this connection */
	struct coop_link started;        /* processes whose ends it has not been told of */
	struct coop_request *collecting; /* its bytes are still coming */
	uint64_t discard_id, discard;    /* bytes of a refused request, still coming */
	struct coop_later dirty;         /* has something to send before the loop sleeps */
	bool taking;                     /* frames are being taken: not again from within */
	bool held;                       /* frames are here that there was no room to answer */
	bool full;                       /* the socket takes no more; an event tells when it does */
	bool closing;                    /* nothing more is read; closes when everything is sent */
	bool gone;
};

enum coop_conn_as {
	COOP_CONN_OPERATOR, /* main of the user whose keeper it is */
	COOP_CONN_NOBODY,   /* until it logs in */
};

/* Takes over an accepted socket of the user's own and greets. 0 or -errno; the fd is closed
 * then. */
int coop_conn_open(struct coop_keeper *keeper, int fd, enum coop_conn_as as);

/* From now on it acts as that agent, with the token of that number, until that expires (0: never);
 * with NULL as nobody. 0 or -ENOMEM: then as nobody, too. */
int coop_conn_become(struct coop_conn *conn, struct coop_agent *agent, int64_t token,
		     int64_t expires_at);

/* From now on it acts as that agent, which is its own or one below it. What holds for its token
 * holds on. */
void coop_conn_narrow(struct coop_conn *conn, struct coop_agent *agent);

/* Whoever it acted as is no more: says so, with a word for programs, and ends it. */
void coop_conn_retire(struct coop_conn *conn, const char *why, const char *reason);

/* Whether something that need not be sent may be added to its output. */
bool coop_conn_has_room(const struct coop_conn *conn);

/* The same for what is told now or never. */
bool coop_conn_has_room_now(const struct coop_conn *conn);

/* How large an answer may become that can go on in another: less while an account of its agent is
 * full. */
size_t coop_conn_answer_max(const struct coop_conn *conn);

/* The bytes of a request are collected, or (NULL) there are none to come any more: until then they
 * count as what is unread does. */
void coop_conn_collect(struct coop_conn *conn, struct coop_request *request);

/* The disk is asked for so many bytes more, or (negative) less, that will be sent here: they count
 * as unread. */
void coop_conn_expect(struct coop_conn *conn, ssize_t bytes);

/* Whether more requests may be taken: a client that does not read its answers, or has enough open,
 * waits. */
bool coop_conn_wants_input(const struct coop_conn *conn);

/* Something was added to conn->out, or a follower has something: it is sent before the loop
 * sleeps. */
void coop_conn_touch(struct coop_conn *conn);

/* Calls the request's on_room, now or when the client has read more: for answers that may be
 * large. */
void coop_conn_when_room(struct coop_conn *conn, struct coop_request *request);

/* The same for a request that has waited long enough: it leaves the list that it is in, and its
 * time does not run out. */
void coop_conn_answer_soon(struct coop_request *request);

/* The same for an answer that has begun: when there is room it goes on, before any other. Never
 * from within. */
void coop_conn_go_on(struct coop_conn *conn, struct coop_request *request);

/* A large buffer for its output, if it has none and one is there: for rows that have much. */
void coop_conn_take_buffer(struct coop_conn *conn);

/* Sends what can be sent. */
void coop_conn_flush(struct coop_conn *conn);

/* A JSON frame is written straight into the output; its header is filled in at the end. Begin opens
 * the object and returns where the frame starts; end closes it, and returns whether the frame is
 * whole: if not, nothing of it remains. */
size_t coop_conn_frame_begin(struct coop_conn *conn, struct coop_jsonw *ret_writer);
bool coop_conn_frame_end(struct coop_conn *conn, struct coop_jsonw *writer, size_t start);

/* Ends it now: open requests are dropped, ephemeral processes end. */
void coop_conn_close(struct coop_conn *conn);

/* Says why as far as the socket takes it at once, and ends it now. */
void coop_conn_cut(struct coop_conn *conn, const char *code, const char *why, const char *reason);

/* Says why, then ends it once that is sent. */
void coop_conn_fatal(struct coop_conn *conn, const char *code, const char *why);

#endif
