#include "keeper/link/admission.h"

#include <string.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/io/log.h"
#include "base/json/jsonw.h"
#include "interface/frame.h"
#include "keeper/conf/conf.h"
#include "keeper/core/keeper.h"
#include "keeper/link/connection.h"
#include "keeper/link/connections.h"
#include "keeper/owner/agent.h"

#define FDS_FOR_LOOKING 12 /* stay free: without a look at /proc nothing can be killed */
#define WARN_MS 60000u

/* How many each may have. Descriptors are what processes need as well: where few may be open,
 * agents and those who have not logged in have no more than half of them. */
struct shares {
	int64_t nobody, agents, agent;
};

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t at_least_one(int64_t a)
{
	return a < 1 ? 1 : a;
}

static struct shares shares_of(const struct coop_keeper *keeper)
{
	const struct coop_settings *settings = &coop_conf_of(keeper)->settings;
	int64_t all = coop_place_of(keeper)->fd_limit / 2 < (rlim_t)settings->max_connections
			      ? (int64_t)(coop_place_of(keeper)->fd_limit / 2)
			      : settings->max_connections;
	int64_t rest = all - (all + 7) / 8;
	struct shares shares;

	shares.nobody = least(settings->login_max_connections, at_least_one(rest / 4));
	shares.agents = at_least_one(rest - shares.nobody);
	shares.agent =
		least(settings->agent_max_connections, at_least_one((shares.agents + 1) / 2));
	return shares;
}

/* The log is told once in a while: whoever is turned away may come again at once. */
static void warn(struct coop_keeper *keeper, const char *what)
{
	struct coop_admission *admission = &coop_connections_of(keeper)->admission;
	uint64_t now = uv_now(coop_loop_of(keeper));

	if (admission->warned_at && now - admission->warned_at < WARN_MS)
		return;
	admission->warned_at = now ? now : 1;
	coop_log(COOP_LOG_WARN, "%s refused=%llu cut=%llu", what,
		 (unsigned long long)admission->refused, (unsigned long long)admission->cut);
}

/* One frame, if the socket takes it at once, which a new one does. */
static void tell(int fd, const char *scope, int64_t limit)
{
	static const uint8_t blank[COOP_FRAME_HEADER];
	struct coop_buf frame = {0};
	struct coop_jsonw w = {.out = &frame};

	w.failed = coop_buf_append(&frame, blank, sizeof blank) < 0;
	coop_jsonw_begin(&w, NULL);
	coop_jsonw_begin(&w, "error");
	coop_jsonw_string(&w, "code", "quota");
	coop_jsonw_string(&w, "message", "the keeper takes no more connections at the moment");
	coop_jsonw_begin(&w, "details");
	coop_jsonw_string(&w, "scope", scope);
	coop_jsonw_int(&w, "limit", limit);
	coop_jsonw_end(&w);
	coop_jsonw_end(&w);
	coop_jsonw_bool(&w, "fatal", true);
	coop_jsonw_end(&w);
	if (!w.failed) {
		size_t size = coop_buf_size(&frame);
		coop_frame_put_json(coop_buf_front(&frame), size - COOP_FRAME_HEADER);
		/* Whoever does not get it sees the end. */
		(void)!send(fd, coop_buf_front(&frame), size, MSG_NOSIGNAL | MSG_DONTWAIT);
	}
	coop_buf_clear(&frame);
}

bool coop_admission_allows(struct coop_keeper *keeper, int fd, bool owner)
{
	int64_t limit = coop_conf_of(keeper)->settings.max_connections;
	bool room = coop_connections_of(keeper)->count < limit &&
		    (owner ? (rlim_t)fd + FDS_FOR_LOOKING < coop_place_of(keeper)->fd_limit
			   : coop_keeper_fd_allowed(keeper, fd));

	if (room)
		return true;
	coop_connections_of(keeper)->admission.refused++;
	warn(keeper, "there are as many connections as may be: one was turned away");
	tell(fd, "connections", limit);
	return false;
}

static void on_deadline(uv_timer_t *timer);

/* One timer for all: they wait in the order in which they came. */
static void watch_first(struct coop_keeper *keeper)
{
	struct coop_admission *admission = &coop_connections_of(keeper)->admission;

	if (coop_list_empty(&admission->nobody)) {
		(void)uv_timer_stop(&admission->deadline);
		return;
	}
	const struct coop_conn *first =
		COOP_LIST_ITEM(admission->nobody.next, struct coop_conn, in_nobody);
	uint64_t now = uv_now(coop_loop_of(keeper));
	uint64_t end =
		first->nobody_since + (uint64_t)coop_conf_of(keeper)->settings.login_timeout_ms;
	(void)uv_timer_start(&admission->deadline, on_deadline, end > now ? end - now : 0, 0);
}

static void cut(struct coop_conn *conn, const char *code, const char *why, const char *reason)
{
	struct coop_keeper *keeper = conn->keeper;

	coop_connections_of(keeper)->admission.cut++;
	warn(keeper, "a connection that had not logged in was ended");
	coop_conn_cut(conn, code, why, reason);
}

static void on_deadline(uv_timer_t *timer)
{
	struct coop_keeper *keeper = timer->data;
	struct coop_admission *admission = &coop_connections_of(keeper)->admission;
	uint64_t now = uv_now(coop_loop_of(keeper));
	uint64_t patience = (uint64_t)coop_conf_of(keeper)->settings.login_timeout_ms;

	while (!coop_list_empty(&admission->nobody)) {
		struct coop_conn *conn =
			COOP_LIST_ITEM(admission->nobody.next, struct coop_conn, in_nobody);
		if (conn->nobody_since + patience > now)
			break;
		cut(conn, "permission_denied", "no login came in time", "login_timeout");
	}
	watch_first(keeper);
}

void coop_admission_init(struct coop_admission *admission, struct coop_keeper *keeper)
{
	coop_list_init(&admission->nobody);
	(void)uv_timer_init(coop_loop_of(keeper), &admission->deadline);
	admission->deadline.data = keeper;
}

void coop_admission_nobody(struct coop_conn *conn)
{
	struct coop_keeper *keeper = conn->keeper;
	struct coop_admission *admission = &coop_connections_of(keeper)->admission;
	bool first = coop_list_empty(&admission->nobody);

	if (conn->in_nobody.next)
		return;
	coop_admission_leave(conn);
	/* Those who mean to log in do it at once: the oldest is the one that is least likely to. */
	while (admission->nobody_count >= shares_of(keeper).nobody) {
		struct coop_conn *oldest =
			COOP_LIST_ITEM(admission->nobody.next, struct coop_conn, in_nobody);
		cut(oldest, "quota", "too many connections wait for a login: log in at once",
		    "login_crowd");
	}
	conn->nobody_since = uv_now(coop_loop_of(keeper));
	coop_list_add(&admission->nobody, &conn->in_nobody);
	admission->nobody_count++;
	if (first)
		watch_first(keeper);
}

static int refuse(struct coop_keeper *keeper, const char *scope, int64_t limit,
		  struct coop_err *err)
{
	int r = coop_err_set(err, COOP_QUOTA, "the limit of %lld connections is reached",
			     (long long)limit);

	coop_connections_of(keeper)->admission.refused++;
	warn(keeper, "a share of connections is used up: a login was refused");
	coop_err_detail(err, "scope", scope);
	coop_err_detail_int(err, "limit", limit);
	return r;
}

/* The owner's own main has no share: what is not kept for the owner's socket is his to give. */
static bool has_share(const struct coop_agent *agent)
{
	return !coop_agent_is_main(agent);
}

/* Every level counts what is below it, so that an agent cannot have more by making others. */
int coop_admission_login(struct coop_conn *conn, struct coop_agent *agent, struct coop_err *err)
{
	struct coop_keeper *keeper = conn->keeper;
	struct shares shares = shares_of(keeper);

	if (coop_connections_of(keeper)->admission.agent_count >= shares.agents)
		return refuse(keeper, "connections", shares.agents, err);
	for (const struct coop_agent *at = agent; at; at = at->parent) {
		if (has_share(at) && at->connections >= shares.agent)
			return refuse(keeper, at == agent ? "agent" : "ancestor", shares.agent,
				      err);
	}
	coop_admission_leave(conn);
	conn->account = coop_agent_ref(agent);
	coop_connections_of(keeper)->admission.agent_count++;
	for (struct coop_agent *at = agent; at; at = at->parent)
		at->connections++;
	return 0;
}

/* Of the account that it was counted for, whoever it acts as by now. */
void coop_admission_leave(struct coop_conn *conn)
{
	struct coop_keeper *keeper = conn->keeper;
	struct coop_admission *admission = &coop_connections_of(keeper)->admission;

	if (conn->in_nobody.next) {
		bool first = admission->nobody.next == &conn->in_nobody;
		coop_list_remove(&conn->in_nobody);
		admission->nobody_count--;
		if (first)
			watch_first(keeper);
	}
	if (!conn->account)
		return;
	for (struct coop_agent *at = conn->account; at; at = at->parent)
		at->connections--;
	admission->agent_count--;
	coop_agent_unref(conn->account);
	conn->account = NULL;
}
