/* The keeper: everything it owns, in one context that is passed around. One thread, one loop. */
#ifndef COOP_KEEPER_KEEPER_H
#define COOP_KEEPER_KEEPER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <uv.h>

#include "base/buf.h"
#include "base/list.h"
#include "base/map.h"
#include "interface/err.h"
#include "keeper/agents/agent.h"
#include "keeper/conf/conf.h"
#include "keeper/conf/host.h"
#include "keeper/conf/users.h"
#include "keeper/confine/groups.h"
#include "keeper/confine/net.h"
#include "keeper/core/meters.h"
#include "keeper/link/admission.h"
#include "keeper/link/listener.h"
#include "keeper/ops/ports.h"
#include "keeper/process/registry.h"
#include "keeper/start/helpers.h"
#include "keeper/start/launcher.h"
#include "keeper/start/parks.h"
#include "keeper/start/slots.h"
#include "keeper/store/journal.h"
#include "keeper/tree/tree.h"
#include "records/audit.h"
#include "sandbox/layout/host_sockets.h"
#include "sandbox/layout/idmap.h"

#define COOP_PROTOCOL 1

struct coop_ghosts;
struct coop_request;
struct coop_secret;
struct coop_store;

struct coop_keeper {
	uv_loop_t loop;
	struct coop_conf conf;
	char conf_path[4096];         /* "": there is no file */
	const char *const *overrides; /* settings that stand above it */
	int64_t conf_loaded_at;
	char conf_error[512]; /* why the last attempt to load it failed; "" if it did not */
	struct coop_registry registry;
	struct coop_launchers launchers;
	struct coop_helpers helpers;
	struct coop_keeper_host host;
	struct coop_idmaps idmaps;
	struct coop_ghosts *ghosts;
	struct coop_users users;
	struct coop_host_sockets sockets;
	struct coop_slots slots;
	struct coop_groups groups;
	struct coop_parks parks;
	struct coop_nets nets;
	struct coop_ports ports;
	struct coop_link reports; /* see reports.h */
	struct coop_tree tree;

	char socket_path[4096]; /* "" for a private keeper */
	char gate_path[108];    /* "": there is none; no longer than sun_path */
	char state_dir[4096];   /* "" for a private keeper */
	char data_dir[4096];    /* for agents' folders; "" for a private keeper */
	char spool_dir[4096];   /* chosen at start; in private mode "" until the first spool */
	/* "" until it is needed: files for processes without a view of their own */
	char files_dir[4096];
	uint64_t spool_bytes;
	struct coop_secret *secret;
	struct coop_store *store;            /* NULL in a private keeper */
	struct coop_audit *audit;            /* NULL: nothing is audited */
	uint64_t audit_lost;                 /* ends that could not be written */
	char audit_error[160];               /* why the last line could not be; "" if it could */
	struct coop_audit_anchor audit_then; /* its ends as an earlier keeper noted them */
	char audit_fault[160]; /* what was missing when a keeper started; "": nothing */
	struct coop_journal journal;
	struct coop_link ended; /* processes whose ends are to be written there and to the audit */
	struct coop_link changes, questions; /* that wait for their turn with the disk */
	int64_t last_row;   /* numbers of agents and tokens where there is no database */
	unsigned disk_jobs; /* that the helper thread has not finished */
	int spare_fd, null_fd;
	int locks[3]; /* the socket's; claims of it and of the state folder; -1: none */
	struct coop_buf spare_out; /* a large buffer that no connection uses at the moment */
	struct coop_listener door, gate;
	struct coop_admission admission;
	bool private_mode, on_demand;
	bool recording; /* processes are recorded in the store, not only agents and tokens */
	bool changing;  /* one of the changes has its turn */
	bool loose;     /* something confined was started without a view of its own */
	bool asking;    /* one of the questions */
	struct rlimit original_nofile;
	rlim_t fd_limit; /* as raised */
	struct coop_link connections, dirty;
	unsigned connection_count, follower_count, subscriber_count, agent_count, session_count;
	int64_t started_at;
	struct coop_link principals;
	struct coop_link left_out; /* agents that could not be read: left_out.h */
	struct coop_agent *main;   /* of the user whose keeper it is */
	struct coop_map tokens;    /* by id */
	uv_timer_t expiry;         /* of the agent that ends next */
	struct coop_link crowded;  /* agents with more finished records than they may keep */
	uint64_t last_session, session_end; /* numbers that this keeper may give; 0: no end */
	struct coop_link subscribers;
	/* of this keeper's processes, without a record's number: see sandbox/plan.h */
	uint64_t mark;
	uint64_t wakeups;
	struct coop_meters meters;

	uv_poll_t on_child;
	int child_fd; /* signalfd */
	uv_signal_t on_term, on_int, on_hup;
	uv_prepare_t before_sleep;
	uv_idle_t busy; /* active while something is left to do at once */
	uv_timer_t idle_timer;
	uv_timer_t trim_timer;
	bool trim_armed;
	/* Something happened since the caps were applied last that may let a record go. */
	bool untrimmed;
	bool idle_armed;
	pid_t reap_pid;        /* a dead child that cannot be judged … */
	uint64_t reap_blocked; /* … before the spawns up to this one have been answered */
	bool reap_again;
	bool recount;           /* orphans of ended records have been reaped */
	struct coop_link kills; /* struct coop_kill under way */
	bool kill_again;        /* at least one has something to look at */

	bool stopping,
		finished; /* asked to leave; nothing is left to do but sending the last answers */
	bool private_served; /* the one client of a private keeper has been connected */
	struct coop_link shutdown_requests;
	uint64_t shutdown_ended;
};

/* Prepares everything but the socket. 0, or the error filled. */
int coop_keeper_init(struct coop_keeper *keeper, struct coop_err *err);

/* Serves until shutdown. */
void coop_keeper_run(struct coop_keeper *keeper);

/* Frees everything; for leak checks at the end. False where a disk still holds something, or a
 * thread: then the process must end at once, without waiting for its threads. */
bool coop_keeper_free(struct coop_keeper *keeper);

/* Orderly stop: refuses spawns, stops all with grace, then ends the loop. `request` (or NULL) is
 * answered just before. */
void coop_keeper_shutdown(struct coop_keeper *keeper, uint64_t grace_ms,
			  struct coop_request *request);

/* Reads coop.conf again. 0, or the error filled: then what held before stays in force. */
int coop_keeper_reload(struct coop_keeper *keeper, struct coop_err *err);

/* A process ended, was removed, or a connection went: is there still something to keep? */
void coop_keeper_check_idle(struct coop_keeper *keeper);

/* Whether a further descriptor may be used: some are held back so that clients can always be
 * answered. */
bool coop_keeper_fd_allowed(const struct coop_keeper *keeper, int fd);

#endif
