#include <unistd.h>

#include "base/json/jsonw.h"
#include "base/list.h"
#include "keeper/agents/agent.h"
#include "keeper/agents/left_out.h"
#include "keeper/conf/settings.h"
#include "keeper/core/keeper.h"
#include "keeper/core/resources.h"
#include "keeper/link/connection.h"
#include "keeper/link/request.h"
#include "keeper/ops/op_look.h"
#include "keeper/process/eviction.h"
#include "keeper/process/process.h"
#include "keeper/start/slots.h"
#include "keeper/tree/tree.h"
#include "records/audit.h"
#include "records/backlog.h"
#include "sandbox/cgroup/cgroup.h"
#include "sandbox/layout/ghosts.h"

static void write_counts(struct coop_keeper *keeper, const struct coop_agent *viewer,
			 struct coop_jsonw *w)
{
	unsigned receipts = 0;

	coop_eviction_trim(keeper);
	(void)coop_tree_look_lately(
		keeper); /* for the strays; without it the last look's number stands */
	COOP_LIST_EACH(&viewer->principal->receipts, link)
	{
		receipts += coop_agent_sees(
			viewer, COOP_LIST_ITEM(link, struct coop_process, in_receipts)->agent);
	}
	coop_jsonw_begin(w, "processes");
	coop_jsonw_uint(w, "live", viewer->live);
	coop_jsonw_uint(w, "finished", viewer->finished);
	coop_jsonw_uint(w, "receipts", receipts);
	coop_jsonw_uint(w, "receipts_dropped", viewer->receipts_dropped);
	coop_jsonw_uint(w, "strays", keeper->tree.strays);
	coop_jsonw_end(w);
}

static void write_resources(const struct coop_keeper *keeper, struct coop_jsonw *w)
{
	const struct coop_launcher *first =
		coop_list_empty(&keeper->launchers.all)
			? NULL
			: COOP_LIST_ITEM(keeper->launchers.all.next, struct coop_launcher, in_all);
	coop_jsonw_begin(w, "launcher");
	coop_jsonw_int(w, "pid", first ? first->pid : 0);
	coop_jsonw_uint(w, "restarts", keeper->launchers.restarts);
	coop_jsonw_end(w);
	coop_jsonw_begin(w, "sandbox");
	coop_jsonw_uint(w, "net_namespaces", keeper->nets.count);
	coop_jsonw_uint(w, "ghosts", coop_ghosts_count(keeper->ghosts));
	coop_jsonw_uint(w, "cgroups",
			keeper->groups.known ? coop_cgroups_count(&keeper->groups.host) : 0);
	coop_slots_write(keeper, w, "slots");
	coop_jsonw_end(w);
	coop_jsonw_uint(w, "connections", keeper->connection_count);
	coop_jsonw_uint(w, "subscribers", keeper->follower_count + keeper->subscriber_count);
	coop_jsonw_begin(w, "memory");
	coop_jsonw_uint(w, "rss_bytes", coop_resources_rss());
	coop_jsonw_uint(w, "buffer_bytes", coop_resources_buffers(keeper));
	coop_jsonw_uint(w, "spool_bytes", keeper->spool_bytes);
	coop_jsonw_end(w);
	coop_resources_write_fds(w, "fds");
	coop_jsonw_uint(w, "wakeups", keeper->wakeups);
}

/* One of the two things on disk: how it goes, and what is lost. */
static void write_disk(struct coop_jsonw *w, const char *name, bool on, const char *error,
		       uint64_t lost)
{
	coop_jsonw_begin(w, name);
	coop_jsonw_string(w, "state", !on ? "off" : *error ? "failing" : "ok");
	coop_jsonw_uint(w, "lost", lost);
	coop_jsonw_string(w, "error", *error ? error : NULL);
}

static void write_records(const struct coop_keeper *keeper, struct coop_jsonw *w)
{
	const struct coop_journal *journal = &keeper->journal;
	const struct coop_backlog *lines = journal->chain.backlog;

	coop_jsonw_string(w, "socket", *keeper->socket_path ? keeper->socket_path : NULL);
	coop_jsonw_string(w, "gate", *keeper->gate_path ? keeper->gate_path : NULL);
	coop_jsonw_string(w, "state_dir", *keeper->state_dir ? keeper->state_dir : NULL);
	write_disk(w, "records", keeper->recording, journal->error, journal->lost);
	coop_jsonw_uint(w, "pending", journal->count);
	coop_jsonw_end(w);
	write_disk(w, "audit", keeper->audit != NULL, keeper->audit_error, keeper->audit_lost);
	coop_jsonw_uint(w, "last", journal->chain.last);
	coop_jsonw_uint(w, "waiting_bytes",
			lines ? coop_backlog_waiting(lines, COOP_LANE_AUDIT) : 0);
	coop_jsonw_string(w, "fault", *keeper->audit_fault ? keeper->audit_fault : NULL);
	coop_jsonw_end(w);
	coop_left_out_write(keeper, w, "left_out");
	coop_jsonw_begin(w, "configuration");
	coop_jsonw_string(w, "path", keeper->conf.present ? keeper->conf_path : NULL);
	coop_jsonw_time(w, "loaded_at", keeper->conf.present ? keeper->conf_loaded_at : 0);
	coop_jsonw_string(w, "error", *keeper->conf_error ? keeper->conf_error : NULL);
	coop_jsonw_end(w);
}

void coop_op_info(struct coop_request *request)
{
	static const char *const hidden[] = {
		"launcher",    "sandbox",       "socket", "state_dir", "connections",
		"subscribers", "memory",        "fds",    "wakeups",   "records",
		"audit",       "configuration", "gate",   "left_out"};
	struct coop_keeper *keeper = request->keeper;
	const struct coop_conn *conn = request->conn;
	struct coop_jsonw w;

	coop_request_result(request, &w);
	coop_jsonw_string(&w, "version", COOP_VERSION_STRING);
	coop_jsonw_int(&w, "protocol", COOP_PROTOCOL);
	coop_jsonw_int(&w, "pid", getpid());
	coop_jsonw_int(&w, "guard_pid", getppid());
	coop_jsonw_time(&w, "started_at", keeper->started_at);
	coop_jsonw_begin(&w, "you");
	coop_jsonw_string(&w, "principal", conn->agent->principal->name);
	coop_jsonw_string(&w, "agent", conn->agent->path);
	coop_jsonw_bool(&w, "operator", conn->is_operator);
	coop_jsonw_end(&w);
	write_counts(keeper, conn->agent, &w);
	if (conn->is_operator) {
		write_resources(keeper, &w);
		write_records(keeper, &w);
	}
	for (size_t i = 0; !conn->is_operator && i < sizeof hidden / sizeof hidden[0]; i++)
		coop_jsonw_null(&w, hidden[i]);
	coop_jsonw_bool(&w, "private", keeper->private_mode);
	coop_settings_write(&keeper->conf.settings, &w, "settings");
	coop_request_end(request, &w);
}
