#include "keeper/link/connection.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "interface/frame.h"
#include "keeper/conf/conf.h"
#include "keeper/conf/env_rules.h"
#include "keeper/core/keeper.h"
#include "keeper/core/life.h"
#include "keeper/core/meters.h"
#include "keeper/link/admission.h"
#include "keeper/link/connections.h"
#include "keeper/link/intake.h"
#include "keeper/link/request.h"
#include "keeper/link/watch.h"
#include "keeper/owner/account.h"
#include "keeper/owner/agent.h"

#define READ_SIZE 65536u
#define RETIRE_MS 2000
/* Output that grew to this within one turn counts at once: many connections may be answered in
 * one. */
#define COUNTED_AT_ONCE (256u << 10)
/* Sizes of an output buffer that is worth handing on. */
#define SPARE_MIN (64u << 10)
#define SPARE_MAX (2u << 20)

/* Calls that member of each row that has it. */
#define TELL(conn, call, ...)                                         \
	do {                                                          \
		const struct coop_conn_watch *const *row_ =           \
			coop_connections_of((conn)->keeper)->watch;   \
		for (; *row_; row_++) {                               \
			if ((*row_)->call)                            \
				(*row_)->call((conn), ##__VA_ARGS__); \
		}                                                     \
	} while (0)

static void on_poll(uv_poll_t *poll, int status, int events);
static void say_fatal(struct coop_conn *conn, const char *code, const char *why,
		      const char *reason);

static void on_closed(uv_handle_t *handle)
{
	struct coop_conn *conn = handle->data;

	coop_buf_clear(&conn->in);
	coop_buf_clear(&conn->out);
	coop_buf_clear(&conn->telling);
	coop_agent_unref(conn->agent);
	TELL(conn, on_free);
	free(conn);
}

static void on_timer_closed(uv_handle_t *handle)
{
	free(handle);
}

static void on_expired(uv_timer_t *timer)
{
	coop_conn_retire(timer->data, "the token has expired", "token_expired");
}

static void on_overdue(uv_timer_t *timer)
{
	coop_conn_close(timer->data);
}

/* A token that expires takes its connections along, those that are open too. */
static int watch_expiry(struct coop_conn *conn, int64_t expires_at)
{
	int64_t left = expires_at - coop_clock_wall_ms();

	if (!expires_at)
		return 0;
	conn->expiry = coop_mem_zalloc(sizeof *conn->expiry);
	if (!conn->expiry)
		return -ENOMEM;
	(void)uv_timer_init(coop_loop_of(conn->keeper), conn->expiry);
	conn->expiry->data = conn;
	uv_update_time(coop_loop_of(conn->keeper));
	return uv_timer_start(conn->expiry, on_expired, left > 0 ? (uint64_t)left : 0, 0);
}

/* Nobody first: a login that fails leaves a connection that may do nothing, not one that is what it
 * was. */
int coop_conn_become(struct coop_conn *conn, struct coop_agent *agent, int64_t token,
		     int64_t expires_at)
{
	coop_agent_unref(conn->agent);
	conn->agent = NULL;
	conn->is_operator = false;
	if (!agent || watch_expiry(conn, expires_at) < 0) {
		coop_admission_nobody(conn);
		return agent ? -ENOMEM : 0;
	}
	conn->agent = coop_agent_ref(agent);
	conn->token = token;
	conn->expires_at = expires_at;
	return 0;
}

void coop_conn_narrow(struct coop_conn *conn, struct coop_agent *agent)
{
	struct coop_agent *before = conn->agent;

	conn->agent = coop_agent_ref(agent);
	conn->is_operator = false;
	conn->narrowed = true;
	coop_agent_unref(before);
}

/* Clients that do not read what they are told are not waited for. */
static void close_soon(struct coop_conn *conn)
{
	if (!conn->expiry) {
		conn->expiry = coop_mem_zalloc(sizeof *conn->expiry);
		if (!conn->expiry)
			return; /* then it ends when the client has read, or goes */
		(void)uv_timer_init(coop_loop_of(conn->keeper), conn->expiry);
		conn->expiry->data = conn;
	}
	uv_update_time(coop_loop_of(conn->keeper));
	(void)uv_timer_start(conn->expiry, on_overdue, RETIRE_MS, 0);
}

void coop_conn_retire(struct coop_conn *conn, const char *why, const char *reason)
{
	if (conn->closing || conn->gone)
		return;
	/* Nothing that it asked for goes on. */
	while (!coop_list_empty(&conn->requests))
		coop_request_drop(
			COOP_LIST_ITEM(conn->requests.next, struct coop_request, in_conn));
	conn->collecting = NULL;
	TELL(conn, on_over);
	say_fatal(conn, "permission_denied", why, reason);
	close_soon(conn);
}

/* Whether its agent, or one above it, has as much in memory as it may. Then this connection gets
 * on as its client reads, by less at a time. */
static bool is_tight(const struct coop_conn *conn)
{
	return conn->agent && coop_account_full(conn->agent);
}

/* Whether fewer bytes than this wait to be sent, or are on their way from the disk. A connection
 * that has nothing is not asked whose it is: it gets on whatever its agent has in use. */
static bool has_less(const struct coop_conn *conn, size_t most, size_t tight)
{
	size_t waiting = coop_buf_size(&conn->out) + conn->coming;

	return waiting < tight || (waiting < most && !is_tight(conn));
}

static bool below_room(const struct coop_conn *conn)
{
	return has_less(conn, COOP_CONN_ROOM, COOP_CONN_ROOM_TIGHT);
}

bool coop_conn_has_room(const struct coop_conn *conn)
{
	return !conn->closing && below_room(conn);
}

/* More than for output: an event that is not written now is lost to its subscriber, while output
 * stays in its ring. */
bool coop_conn_has_room_now(const struct coop_conn *conn)
{
	return !conn->closing && has_less(conn, COOP_CONN_EVENTS_MAX, COOP_CONN_EVENTS_TIGHT);
}

size_t coop_conn_answer_max(const struct coop_conn *conn)
{
	return is_tight(conn) || coop_mem_short() ? COOP_CONN_ANSWER_TIGHT : COOP_CONN_ANSWER_MAX;
}

bool coop_conn_wants_input(const struct coop_conn *conn)
{
	size_t most = conn->agent ? COOP_CONN_UNREAD_MAX : COOP_ADMISSION_UNREAD_MAX;

	return !conn->closing && conn->request_count < COOP_CONN_REQUESTS_MAX &&
	       has_less(conn, most, COOP_CONN_UNREAD_TIGHT);
}

/* Of a request that has not come in full: a large frame, or the bytes behind one. */
static uint64_t half_sent(const struct coop_conn *conn)
{
	size_t frame = coop_buf_size(&conn->in);

	return (frame > COOP_ADMISSION_FRAME_MAX ? frame : 0) +
	       (conn->collecting ? conn->collecting->data_size : 0);
}

/* What waits counts for the agent that the connection acts as now, with all the memory that holds
 * it. */
static void count_unread(struct coop_conn *conn)
{
	bool any = coop_buf_size(&conn->out) || conn->coming;

	coop_account_unread(&conn->unread, conn->agent,
			    (any ? conn->out.capacity + conn->coming : 0) + half_sent(conn));
}

void coop_conn_collect(struct coop_conn *conn, struct coop_request *request)
{
	conn->collecting = request;
	count_unread(conn);
}

void coop_conn_expect(struct coop_conn *conn, ssize_t bytes)
{
	conn->coming += (size_t)bytes;
	count_unread(conn);
	if (bytes < 0)
		coop_conn_touch(conn); /* others may have waited for that */
}

static void update_interest(struct coop_conn *conn)
{
	int wanted = (coop_conn_wants_input(conn) ? UV_READABLE : 0) |
		     (coop_buf_size(&conn->out) ? UV_WRITABLE : 0);

	/* Even when nothing is wanted, a client that goes away must be noticed. */
	wanted |= UV_DISCONNECT;
	if (wanted == conn->interest)
		return;
	conn->interest = wanted;
	(void)uv_poll_start(&conn->poll, wanted, on_poll);
}

/* The header is left blank, as the size is known at the end; the text is written straight behind
 * it. */
size_t coop_conn_frame_begin(struct coop_conn *conn, struct coop_jsonw *ret_writer)
{
	static const uint8_t blank[COOP_FRAME_HEADER];
	size_t start = coop_buf_size(&conn->out);

	*ret_writer = (struct coop_jsonw){.out = &conn->out};
	ret_writer->failed = coop_buf_append(&conn->out, blank, sizeof blank) < 0;
	coop_jsonw_begin(ret_writer, NULL);
	return start;
}

/* One that failed is taken back whole: the client must not see half a frame. */
bool coop_conn_frame_end(struct coop_conn *conn, struct coop_jsonw *writer, size_t start)
{
	struct coop_buf *out = &conn->out;

	coop_jsonw_end(writer);
	size_t size = coop_buf_size(out) - start;
	if (writer->failed || size - COOP_FRAME_HEADER > COOP_FRAME_JSON_MAX) {
		out->tail = out->head + start;
		TELL(conn, on_frame, 0);
		return false;
	}
	TELL(conn, on_frame, conn->sent + coop_buf_size(out));
	coop_frame_put_json(coop_buf_front(out) + start, size - COOP_FRAME_HEADER);
	coop_conn_touch(conn);
	return true;
}

/* All that was written in this turn leaves in one piece. */
static void on_dirty(struct coop_later *item)
{
	coop_conn_flush(COOP_LATER_OWNER(item, struct coop_conn, dirty));
}

static int open_conn(struct coop_keeper *keeper, int fd, enum coop_conn_as as)
{
	struct coop_conn *conn = coop_mem_zalloc(sizeof *conn);
	int r = conn ? uv_poll_init(coop_loop_of(keeper), &conn->poll, fd) : -ENOMEM;

	if (r < 0) {
		free(conn);
		(void)close(fd);
		return r;
	}
	conn->keeper = keeper;
	conn->is_operator = as == COOP_CONN_OPERATOR;
	conn->agent = conn->is_operator ? coop_agent_ref(coop_agents_main(keeper)) : NULL;
	conn->fd = fd;
	conn->poll.data = conn;
	conn->dirty.run = on_dirty;
	coop_list_init(&conn->requests);
	coop_list_init(&conn->follows);
	coop_list_init(&conn->subscribers);
	coop_list_init(&conn->holders);
	coop_list_init(&conn->leases);
	coop_list_init(&conn->started);
	coop_list_init(&conn->ready);
	coop_list_add(&coop_connections_of(keeper)->all, &conn->in_keeper);
	coop_connections_of(keeper)->count++;
	if (!conn->agent)
		coop_admission_nobody(conn);
	coop_life_look(keeper);

	struct coop_jsonw w;
	size_t start = coop_conn_frame_begin(conn, &w);
	coop_jsonw_begin(&w, "hello");
	coop_jsonw_int(&w, "protocol", COOP_PROTOCOL);
	coop_jsonw_string(&w, "version", COOP_VERSION_STRING);
	coop_jsonw_int(&w, "pid", getpid());
	coop_env_rules_write(&coop_conf_of(keeper)->env, &w, "inherit");
	coop_jsonw_end(&w);
	if (!coop_conn_frame_end(conn, &w, start)) {
		coop_conn_close(conn);
		return -ENOMEM;
	}
	coop_conn_flush(conn);
	return 0;
}

int coop_conn_open(struct coop_keeper *keeper, int fd, enum coop_conn_as as)
{
	/* Somebody may come to end what uses up the memory. */
	bool before = coop_mem_relief(true);
	int r = open_conn(keeper, fd, as);

	(void)coop_mem_relief(before);
	return r;
}

void coop_conn_touch(struct coop_conn *conn)
{
	if (coop_buf_size(&conn->out) >= COUNTED_AT_ONCE && !conn->gone)
		count_unread(conn);
	if (!conn->gone)
		coop_later(coop_laters_of(conn->keeper), &conn->dirty);
}

static void say_fatal(struct coop_conn *conn, const char *code, const char *why, const char *reason)
{
	struct coop_jsonw w;
	bool before = coop_mem_relief(true);
	size_t start = coop_conn_frame_begin(conn, &w);

	coop_jsonw_begin(&w, "error");
	coop_jsonw_string(&w, "code", code);
	coop_jsonw_string(&w, "message", why);
	if (reason) {
		coop_jsonw_begin(&w, "details");
		coop_jsonw_string(&w, "reason", reason);
		coop_jsonw_end(&w);
	}
	coop_jsonw_end(&w);
	coop_jsonw_bool(&w, "fatal", true);
	(void)coop_conn_frame_end(conn, &w, start); /* without memory it ends without a word */
	(void)coop_mem_relief(before);
	conn->closing = true;
	coop_conn_touch(conn);
}

void coop_conn_fatal(struct coop_conn *conn, const char *code, const char *why)
{
	say_fatal(conn, code, why, NULL);
}

static bool send_out(struct coop_conn *conn);

void coop_conn_cut(struct coop_conn *conn, const char *code, const char *why, const char *reason)
{
	if (conn->gone)
		return;
	if (!conn->closing) {
		say_fatal(conn, code, why, reason);
		(void)send_out(conn);
	}
	coop_conn_close(conn);
}

/* Requests are dropped before the rows hear of the end: what hangs on a request is undone by the
 * request. */
void coop_conn_close(struct coop_conn *conn)
{
	if (conn->gone)
		return;
	conn->gone = true;
	while (!coop_list_empty(&conn->requests))
		coop_request_drop(
			COOP_LIST_ITEM(conn->requests.next, struct coop_request, in_conn));
	TELL(conn, on_over);
	TELL(conn, on_close);
	if (conn->expiry)
		uv_close((uv_handle_t *)conn->expiry, on_timer_closed);
	coop_later_cancel(&conn->dirty);
	coop_list_remove(&conn->in_keeper);
	coop_admission_leave(conn);
	coop_account_unread(&conn->unread, NULL, 0);
	coop_buf_clear(&conn->out);
	coop_connections_of(conn->keeper)->count--;
	uv_close((uv_handle_t *)&conn->poll, on_closed);
	(void)close(conn->fd);
	coop_life_look(conn->keeper);
}

/* A large output buffer goes from one busy connection to the next: growing a new one for each turn
 * costs as much as the bytes that it carries, and keeping one in each connection too much. */
void coop_conn_take_buffer(struct coop_conn *conn)
{
	struct coop_buf *spare = &coop_connections_of(conn->keeper)->spare_out;

	if (conn->out.data || !spare->data)
		return;
	conn->out = *spare;
	*spare = (struct coop_buf){0};
}

/* All of it has been sent. */
static void leave_buffer(struct coop_conn *conn)
{
	struct coop_buf *spare = &coop_connections_of(conn->keeper)->spare_out;

	if (spare->data || conn->out.capacity < SPARE_MIN || conn->out.capacity > SPARE_MAX) {
		coop_buf_consume(&conn->out, coop_buf_size(&conn->out));
		return;
	}
	*spare = conn->out;
	spare->head = spare->tail = 0;
	conn->out = (struct coop_buf){0};
}

void coop_conn_when_room(struct coop_conn *conn, struct coop_request *request)
{
	if (coop_list_empty(&conn->ready) && below_room(conn)) {
		request->on_room(request);
		return;
	}
	coop_list_add(&conn->ready, &request->in_process);
	coop_conn_touch(conn);
}

void coop_conn_answer_soon(struct coop_request *request)
{
	coop_list_remove(&request->in_process);
	if (request->timer)
		(void)uv_timer_stop(request->timer);
	coop_conn_when_room(request->conn, request);
}

void coop_conn_go_on(struct coop_conn *conn, struct coop_request *request)
{
	coop_list_push(&conn->ready, &request->in_process);
	coop_conn_touch(conn);
}

/* Returns whether any was answered. */
static bool serve_ready(struct coop_conn *conn)
{
	bool any = false;

	while (!coop_list_empty(&conn->ready) && below_room(conn)) {
		struct coop_request *request =
			COOP_LIST_ITEM(conn->ready.next, struct coop_request, in_process);
		coop_list_remove(&request->in_process);
		request->on_room(request);
		any = true;
	}
	return any;
}

/* Returns whether any had something. */
static bool serve_rows(struct coop_conn *conn)
{
	const struct coop_conn_watch *const *row = coop_connections_of(conn->keeper)->watch;
	bool any = false;

	for (; *row; row++)
		any = ((*row)->on_room && (*row)->on_room(conn)) || any;
	return any;
}

/* Returns false when the connection is broken. */
static bool send_out(struct coop_conn *conn)
{
	size_t size;

	while (!conn->full && (size = coop_buf_size(&conn->out)) > 0) {
		ssize_t n = send(conn->fd, coop_buf_front(&conn->out), size, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno != EAGAIN)
			return false;
		/* Until there is room another try would only say so again. */
		conn->full = n < 0 || (size_t)n < size;
		if (n > 0 && !coop_list_empty(&conn->holders))
			conn->sent_at = coop_clock_now();
		conn->sent += n > 0 ? (uint64_t)n : 0;
		if (n > 0 && (size_t)n == size)
			leave_buffer(conn);
		if (n > 0 && (size_t)n < size)
			coop_buf_consume(&conn->out, (size_t)n);
		TELL(conn, on_taken);
	}
	return true;
}

void coop_conn_flush(struct coop_conn *conn)
{
	bool more = true;

	coop_later_cancel(&conn->dirty);
	/* Requests that waited for room in this connection. */
	if (coop_buf_size(&conn->in))
		coop_intake(conn);
	while (more) {
		/* A full output hides that followers have more: they are asked again once it is
		 * sent. */
		bool full = coop_buf_size(&conn->out) && !below_room(conn);
		more = !conn->closing && serve_ready(conn);
		more = (!conn->closing && serve_rows(conn)) || more || full;
		if (!send_out(conn)) {
			coop_conn_close(conn);
			return;
		}
		more = more && !coop_buf_size(&conn->out);
	}
	if (conn->closing && !coop_buf_size(&conn->out)) {
		coop_conn_close(conn);
		return;
	}
	if (!coop_buf_size(&conn->out) && conn->out.capacity >= SPARE_MIN)
		leave_buffer(conn); /* taken for followers that had nothing */
	coop_buf_fit(&conn->out);
	count_unread(conn);
	update_interest(conn);
	/* There is room again, and what waited for it is here already: no event will tell of it. */
	if (conn->held && coop_conn_wants_input(conn))
		coop_conn_touch(conn);
}

/* Returns false when the client is gone. */
static bool receive(struct coop_conn *conn)
{
	bool before = coop_mem_relief(coop_buf_size(&conn->in) < COOP_INTAKE_RELIEF_MAX);
	uint8_t *place = coop_buf_reserve(&conn->in, READ_SIZE);

	(void)coop_mem_relief(before);
	if (!place)
		return false;
	ssize_t n = recv(conn->fd, place, READ_SIZE, 0);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	coop_buf_commit(&conn->in, (size_t)n);
	return n > 0;
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
	struct coop_conn *conn = poll->data;

	coop_meters_of(conn->keeper)->wakeups++;
	if (events & UV_WRITABLE)
		conn->full = false;
	if ((events & UV_READABLE) && !conn->closing) {
		if (!receive(conn)) {
			coop_conn_close(conn);
			return;
		}
		coop_intake(conn);
	} else if (status < 0 || (events & UV_DISCONNECT)) {
		coop_conn_close(conn);
		return;
	}
	coop_conn_touch(conn);
}
