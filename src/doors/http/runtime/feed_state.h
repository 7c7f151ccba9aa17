/* What feed.c (the follow, the feeds of a user) and feed_reader.c (a place in it) share. */
#ifndef COOP_HTTP_FEED_STATE_H
#define COOP_HTTP_FEED_STATE_H

#include <uv.h>

#include "base/buf.h"
#include "base/later.h"
#include "base/list.h"
#include "base/map.h"
#include "doors/http/runtime/feed.h"
#include "doors/http/runtime/feed_window.h"
#include "doors/http/users/user.h"

/* Encoded bytes that are kept for readers that are a little behind. */
#define COOP_FEED_WINDOW (1u << 20)

/* Those of one user. Lives as long as the user does. */
struct coop_feeds {
	struct coop_user_extra extra; /* first */
	struct coop_http_net *net;
	struct coop_map by_id; /* by a hash of the id; feeds of the same hash form a list */
};

struct coop_feed {
	struct coop_feeds *feeds;
	struct coop_user *user; /* held */
	unsigned refs;
	struct coop_feed *same_hash;
	const struct coop_feed_dialect *dialect;
	char *id, *name;
	char *common; /* of all events */
	struct coop_feed_window window;
	bool following; /* the window stands for what the keeper is asked for */
	struct coop_call *follow;
	struct coop_link readers;
	unsigned busy;          /* readers are being walked: those that go are freed afterwards */
	struct coop_later due;  /* its readers are to be looked after */
	struct coop_link turns; /* the first has it */
	struct coop_buf exit;   /* its text; empty: not yet */
	uv_timer_t retry;
	uint64_t retry_ms, waited_ms;
};

/* The right of a reader that its process waits for; see feed_hold.c. */
struct coop_feed_hold {
	uint64_t number;                  /* the keeper's; 0: it has none */
	uint64_t cursor, passed;          /* what the keeper knows of */
	uint64_t step_bytes, step_events; /* it is told after so many */
	uint64_t idle_ms, told_ms;
	struct coop_call *call; /* one at a time */
};

struct coop_feed_reader {
	struct coop_feed *feed; /* held */
	struct coop_feed_sink *sink;
	struct coop_link link; /* of the feed */
	uint64_t cursor;       /* the next event to be sent */
	uint64_t bytes;        /* of all events before it */
	/* the frame of `cursor` is there, in the block that begins with event `block` */
	uint64_t block, offset;
	uint64_t passed; /* bytes that it has been sent, about */
	uint64_t lost;   /* bytes that it has not, as far as their number is known */
	bool lost_more;  /* and others */
	struct coop_feed_hold hold;
	struct coop_call *read;
	struct coop_buf chunks; /* what the read has brought so far */
	bool behind;            /* it reads by itself */
	bool starved;           /* something came for which there was no memory */
	bool over;              /* it gets nothing more */
	bool gone;              /* its sink is no more */
};

/* Begins to follow where `next` is, with so many bytes before it. */
void coop_feed_follow(struct coop_feed *feed, uint64_t next, uint64_t bytes);
/* Drops what no reader needs any more. */
void coop_feed_tidy(struct coop_feed *feed);
/* Its readers are looked after at the end of this turn of the loop. */
void coop_feed_touch(struct coop_feed *feed);
/* Tries again later what could not be asked of the keeper, up to a bound: then readers are sent
 * away. */
void coop_feed_retry(struct coop_feed *feed);
/* A new reader has come: what was given up is tried again. */
void coop_feed_resume(struct coop_feed *feed);
/* Sends all readers away. */
void coop_feed_dismiss(struct coop_feed *feed, enum coop_feed_close why, const char *reason);

/* Sends a reader what there is and its sink takes. */
void coop_feed_reader_pump(struct coop_feed_reader *reader);
/* It has been sent more: the keeper is told, if it is time. */
void coop_feed_hold_moved(struct coop_feed_reader *reader);
/* The process need not wait for it any more. */
void coop_feed_hold_end(struct coop_feed_reader *reader);
static inline struct coop_feed_reader *coop_feed_reader_of(struct coop_link *link)
{
	return COOP_LIST_ITEM(link, struct coop_feed_reader, link);
}

/* Unlinks and frees. */
void coop_feed_reader_free(struct coop_feed_reader *reader);

#endif
