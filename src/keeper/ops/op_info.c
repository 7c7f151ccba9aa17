#include <unistd.h>

#include "base/json/jsonw.h"
#include "base/list.h"
#include "keeper/agents/left_out.h"
#include "keeper/conf/config.h"
#include "keeper/conf/settings.h"
#include "keeper/confine/groups.h"
#include "keeper/confine/net.h"
#include "keeper/core/books.h"
#include "keeper/core/keeper.h"
#include "keeper/core/meters.h"
#include "keeper/host/views.h"
#include "keeper/launch/launcher.h"
#include "keeper/link/connection.h"
#include "keeper/link/connections.h"
#include "keeper/link/listener.h"
#include "keeper/link/request.h"
#include "keeper/ops/notices.h"
#include "keeper/ops/op_look.h"
#include "keeper/ops/resources.h"
#include "keeper/output/spool.h"
#include "keeper/owner/agent.h"
#include "keeper/process/eviction.h"
#include "keeper/process/process.h"
#include "keeper/start/slots.h"
#include "keeper/store/journal.h"
#include "keeper/tree/tree.h"
#include "records/audit.h"
#include "records/backlog.h"
#include "sandbox/cgroup/cgroup.h"
#include "sandbox/layout/ghosts.h"

/* As the caller sees it: its own and what is below. Caps are applied first, so that the numbers are
 * not those of a moment ago. */
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
			viewer, COOP_LIST_ITEM(link, struct coop_process, in.receipts)->agent);
	}
	coop_jsonw_begin(w, "processes");
	coop_jsonw_uint(w, "live", viewer->live);
	coop_jsonw_uint(w, "finished", viewer->finished);
	coop_jsonw_uint(w, "receipts", receipts);
	coop_jsonw_uint(w, "receipts_dropped", viewer->receipts_dropped);
	coop_jsonw_uint(w, "strays", coop_tree_strays(keeper));
	coop_jsonw_end(w);
}

/* For the operator alone: how many of whom there are is nobody else's business. */
static void write_resources(const struct coop_keeper *keeper, struct coop_jsonw *w)
{
	const struct coop_launcher *first =
		coop_list_empty(coop_launchers_all(keeper))
			? NULL
			: COOP_LIST_ITEM(coop_launchers_all(keeper)->next, struct coop_launcher,
					 in_all);
	coop_jsonw_begin(w, "launcher");
	coop_jsonw_int(w, "pid", first ? first->pid : 0);
	coop_jsonw_uint(w, "restarts", coop_launchers_restarts(keeper));
	coop_jsonw_end(w);
	coop_jsonw_begin(w, "sandbox");
	coop_jsonw_uint(w, "net_namespaces", coop_nets_count(keeper));
	coop_jsonw_uint(w, "ghosts", coop_ghosts_count(coop_views_of(keeper)->ghosts));
	coop_jsonw_uint(
		w, "cgroups",
		coop_groups_of(keeper)->known ? coop_cgroups_count(coop_groups_known(keeper)) : 0);
	coop_slots_write(keeper, w, "slots");
	coop_jsonw_end(w);
	coop_jsonw_uint(w, "connections", coop_connections_count(keeper));
	coop_jsonw_uint(w, "subscribers",
			coop_meters_of(keeper)->followers + coop_notices_count(keeper));
	coop_jsonw_begin(w, "memory");
	coop_jsonw_uint(w, "rss_bytes", coop_resources_rss());
	coop_jsonw_uint(w, "buffer_bytes", coop_resources_buffers(keeper));
	coop_jsonw_uint(w, "spool_bytes", coop_spool_bytes(keeper));
	coop_jsonw_end(w);
	coop_resources_write_fds(w, "fds");
	coop_jsonw_uint(w, "wakeups", coop_meters_of(keeper)->wakeups);
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
	const struct coop_journal *journal = coop_journal_of(keeper);
	const struct coop_backlog *lines = journal->chain.backlog;

	coop_jsonw_string(w, "socket",
			  *coop_place_of(keeper)->socket ? coop_place_of(keeper)->socket : NULL);
	coop_jsonw_string(w, "gate",
			  *coop_listener_gate(keeper) ? coop_listener_gate(keeper) : NULL);
	coop_jsonw_string(w, "state_dir",
			  *coop_place_of(keeper)->state_dir ? coop_place_of(keeper)->state_dir
							    : NULL);
	write_disk(w, "records", coop_books_of(keeper)->recording, journal->error, journal->lost);
	coop_jsonw_uint(w, "pending", journal->count);
	coop_jsonw_end(w);
	write_disk(w, "audit", coop_books_of(keeper)->audit != NULL,
		   coop_books_of(keeper)->audit_error, coop_books_of(keeper)->audit_lost);
	coop_jsonw_uint(w, "last", journal->chain.last);
	coop_jsonw_uint(w, "waiting_bytes",
			lines ? coop_backlog_waiting(lines, COOP_LANE_AUDIT) : 0);
	coop_jsonw_string(w, "fault",
			  *coop_books_of(keeper)->audit_fault ? coop_books_of(keeper)->audit_fault
							      : NULL);
	coop_jsonw_end(w);
	coop_left_out_write(keeper, w, "left_out");
	coop_jsonw_begin(w, "configuration");
	coop_jsonw_string(w, "path",
			  coop_conf_of(keeper)->present ? coop_config_path(coop_config_of(keeper))
							: NULL);
	coop_jsonw_time(
		w, "loaded_at",
		coop_conf_of(keeper)->present ? coop_config_loaded_at(coop_config_of(keeper)) : 0);
	coop_jsonw_string(w, "error",
			  *coop_config_error(coop_config_of(keeper))
				  ? coop_config_error(coop_config_of(keeper))
				  : NULL);
	coop_jsonw_end(w);
}

void coop_op_info(struct coop_request *request)
{
	/* Null for everybody else, so that answers have the same members whoever asks. */
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
	coop_jsonw_time(&w, "started_at", coop_place_of(keeper)->started_at);
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
	coop_jsonw_bool(&w, "private", coop_place_of(keeper)->private_mode);
	coop_settings_write(&coop_conf_of(keeper)->settings, &w, "settings");
	coop_request_end(request, &w);
}
