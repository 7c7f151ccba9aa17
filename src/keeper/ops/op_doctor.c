#include "keeper/ops/op_doctor.h"

#include <stdlib.h>

#include "interface/err.h"
#include "interface/schema.h"
#include "keeper/conf/conf.h"
#include "keeper/conf/remedies.h"
#include "keeper/confine/confine.h"
#include "keeper/confine/confine_private.h"
#include "keeper/confine/credentials.h"
#include "keeper/confine/groups.h"
#include "keeper/core/keeper.h"
#include "keeper/host/host.h"
#include "keeper/link/connection.h"
#include "keeper/link/request.h"
#include "keeper/owner/agent.h"
#include "keeper/start/slots.h"
#include "sandbox/layout/host.h"
#include "sandbox/policy/limits.h"
#include "sandbox/policy/members.h"
#include "sandbox/policy/policy.h"
#include "sandbox/policy/protection.h"

/* What a command gets that says nothing, with every limit, so that each is looked at. Where the
 * operator's default confines less, the question is what a confined one would get. */
static int ask_for_all(const struct coop_keeper *keeper, struct coop_sandbox_policy *ret,
		       struct coop_err *err)
{
	struct coop_sandbox_policy silent;

	coop_sandbox_policy_init(&silent);
	int r = coop_sandbox_policy_merge(&coop_conf_of(keeper)->profiles, NULL, 0, &silent, ret,
					  err);
	coop_sandbox_policy_clear(&silent);
	if (r < 0)
		return r;
	if (ret->profile == COOP_PROFILE_FULL)
		ret->profile = COOP_PROFILE_WORKSPACE_WRITE;
	if (ret->network == COOP_NET_HOST)
		ret->network = COOP_NET_LOOPBACK;
	for (size_t i = 0; i < COOP_LIMIT_COUNT; i++)
		coop_limit_put(&ret->limits, i, 1 << 20);
	return 0;
}

static struct coop_remedy_host found(const struct coop_keeper *keeper)
{
	const struct coop_keeper_host *host = coop_host_of(keeper);

	return (struct coop_remedy_host){&host->can, host->probe_error, host->root_keeper};
}

/* `reason` tells why it does not hold wholly, `fix` what would have to change here. */
static void write_protections(const struct coop_keeper *keeper, const struct coop_confine *confine,
			      struct coop_jsonw *w)
{
	const struct coop_remedy_host host = found(keeper);
	char fix[COOP_REMEDY_MAX];

	coop_jsonw_begin(w, "protections");
	for (int i = 0; i < COOP_PROTECT_COUNT; i++) {
		const struct coop_held *held = &confine->achieved->held[i];
		bool enforced = held->strength == COOP_ENFORCED;
		coop_remedy(&host, (enum coop_protection)i, held->strength, fix);
		coop_jsonw_begin(w, coop_protection_name((enum coop_protection)i));
		coop_jsonw_string(w, "state", coop_strength_name(held->strength));
		coop_jsonw_string(w, "mechanism", *held->mechanism ? held->mechanism : NULL);
		coop_jsonw_string(w, "reason",
				  *held->reason ? held->reason
				  : enforced    ? NULL
						: "no control group");
		coop_jsonw_string(w, "fix", *fix ? fix : NULL);
		coop_jsonw_end(w);
	}
	coop_jsonw_end(w);
}

/* What was tried when the keeper started, and how that went: the ground on which mechanisms are
 * chosen. */
static void write_host(const struct coop_keeper *keeper, struct coop_jsonw *w)
{
	static const char *const tried[COOP_FACILITY_COUNT] = {
		[COOP_CAN_USERNS] = "a user namespace with its own ids in it",
		[COOP_CAN_NESTED] = "one inside it, with a view of the files",
		[COOP_CAN_PIDNS] = "a PID namespace with a /proc of its own",
		[COOP_CAN_NETNS] = "a net namespace with loopback up",
		[COOP_CAN_IPCNS] = "IPC and UTS namespaces",
		[COOP_CAN_MOUNT] = "a read-only root and a private /tmp",
		[COOP_CAN_OVERLAY] = "a private layer over a folder",
		[COOP_CAN_IDMAP] = "a folder shown with other owners",
		[COOP_CAN_LANDLOCK] = "file rules of the process's own",
		[COOP_CAN_SECCOMP] = "the system call filter",
		[COOP_CAN_NO_NEW_PRIVS] = "a process that can gain no privileges",
	};
	const struct coop_host *host = &coop_host_of(keeper)->can;

	coop_jsonw_begin(w, "host");
	for (int i = 0; i < COOP_FACILITY_COUNT; i++) {
		int error = host->error[i];
		coop_jsonw_begin(w, coop_facility_name((enum coop_facility)i));
		coop_jsonw_bool(w, "works", !error);
		coop_jsonw_string(w, "error", error ? coop_err_errno_name(error) : NULL);
		coop_jsonw_string(w, "detail",
				  i == COOP_CAN_IDMAP && !coop_host_of(keeper)->root_keeper
					  ? "not needed: only a keeper of root's shows other owners"
					  : tried[i]);
		coop_jsonw_end(w);
	}
	coop_jsonw_end(w);
	coop_jsonw_uint(w, "landlock_abi", host->landlock_abi);
}

/* Looked for here at the latest, if nothing has needed a group so far. */
static void write_cgroup(struct coop_keeper *keeper, struct coop_jsonw *w)
{
	static const char *const controllers[] = {"memory", "cpu", "pids", "freezer"};
	const struct coop_cgroups *host = coop_groups_host(keeper);
	const struct coop_remedy_host about = found(keeper);
	char fix[COOP_REMEDY_MAX];

	coop_remedy_groups(&about, fix);
	coop_jsonw_begin(w, "cgroup");
	for (size_t i = 0; i < sizeof controllers / sizeof controllers[0]; i++) {
		coop_jsonw_begin(w, controllers[i]);
		coop_jsonw_int(w, "version", host->version[i]);
		coop_jsonw_string(w, "reason", host->version[i] ? NULL : host->why[i]);
		coop_jsonw_string(w, "fix", host->version[i] ? NULL : fix);
		coop_jsonw_end(w);
	}
	coop_jsonw_end(w);
}

/* The operator's ceilings; null where there is none. */
static void write_ceiling(const struct coop_sandbox_policy *ceiling, struct coop_jsonw *w)
{
	int profile = coop_policy_widest(ceiling);

	coop_jsonw_begin(w, "at_most");
	coop_jsonw_string(w, "profile",
			  profile == COOP_PROFILE_FULL ? NULL : coop_profile_names[profile]);
	for (size_t i = 0; i < COOP_CHOICE_ROWS; i++) {
		const struct coop_choice_row *row = &coop_choice_rows[i];
		int most = coop_choice_of(ceiling, row);
		coop_jsonw_string(w, row->name, most < 0 ? NULL : row->names[most]);
	}
	coop_sandbox_limits_write(&ceiling->limits, w, "limits");
	coop_protections_write(ceiling->require, w, "always_require");
	coop_jsonw_end(w);
}

static void write_all(struct coop_keeper *keeper, const struct coop_confine *confine,
		      struct coop_jsonw *w)
{
	write_protections(keeper, confine, w);
	write_host(keeper, w);
	write_cgroup(keeper, w);
	coop_jsonw_begin(w, "identity");
	coop_jsonw_uint(w, "uid", coop_host_of(keeper)->can.uid);
	coop_jsonw_uint(w, "gid", coop_host_of(keeper)->can.gid);
	coop_jsonw_string(w, "how", coop_host_of(keeper)->whose);
	coop_jsonw_end(w);
	coop_slots_write(keeper, w, "slots");
	write_ceiling(&coop_conf_of(keeper)->profiles.ceiling, w);
	coop_jsonw_string(w, "keeper", coop_host_of(keeper)->root_keeper ? "root" : "user");
}

/* A limit of processes is looked at by itself: one that comes with others shares their group, alone
 * it needs none. */
static void hold_groups(struct coop_keeper *keeper, struct coop_confine *confine)
{
	struct coop_sandbox_limits *limits = &confine->policy.limits;
	const struct coop_sandbox_limits all = *limits;

	limits->max_pids = 0;
	coop_groups_hold(keeper, NULL, confine);
	*limits = (struct coop_sandbox_limits){.max_pids = all.max_pids};
	coop_groups_hold(keeper, NULL, confine);
	*limits = all;
}

/* What a confined command would get. NULL with the error filled; else for coop_confine_discard. */
static struct coop_confine *examine(struct coop_keeper *keeper, struct coop_err *err)
{
	struct coop_confine *confine = coop_confine_new();
	int r = confine ? ask_for_all(keeper, &confine->policy, err) : coop_err_no_memory(err);

	if (r < 0) {
		coop_confine_discard(confine);
		return NULL;
	}
	coop_means_choose(keeper, confine);
	hold_groups(keeper, confine);
	return confine;
}

void coop_doctor_write_states(struct coop_keeper *keeper, struct coop_jsonw *w, const char *name)
{
	struct coop_err err;
	struct coop_confine *confine = examine(keeper, &err);

	coop_jsonw_begin(w, name);
	for (int i = 0; confine && i < COOP_PROTECT_COUNT; i++)
		coop_jsonw_string(w, coop_protection_name((enum coop_protection)i),
				  coop_strength_name(confine->achieved->held[i].strength));
	coop_jsonw_end(w);
	coop_confine_discard(confine);
}

void coop_op_doctor(struct coop_request *request)
{
	struct coop_keeper *keeper = request->keeper;
	bool credentials = coop_arg_bool(request->args, "credentials", false);
	struct coop_err err;
	struct coop_jsonw w;

	/* What the user has in his home is nobody else's to know. */
	if (credentials && !coop_agent_is_main(request->conn->agent)) {
		(void)coop_err_field(
			&err, COOP_PERMISSION_DENIED, "credentials",
			"credentials: only the user himself may ask what is in his home");
		coop_request_fail(request, &err);
		return;
	}
	struct coop_confine *confine = examine(keeper, &err);
	if (!confine) {
		coop_request_fail(request, &err);
	} else {
		coop_request_result(request, &w);
		write_all(keeper, confine, &w);
		if (credentials)
			coop_credentials_write(keeper, confine, &w);
		coop_request_end(request, &w);
	}
	coop_confine_discard(confine);
}
