#include "sandbox/layout/host.h"

const char *coop_facility_name(enum coop_facility facility)
{
	static const char *const names[COOP_FACILITY_COUNT] = {
		[COOP_CAN_USERNS] = "user_namespaces",
		[COOP_CAN_NESTED] = "nested_user_namespaces",
		[COOP_CAN_PIDNS] = "pid_namespaces",
		[COOP_CAN_NETNS] = "net_namespaces",
		[COOP_CAN_IPCNS] = "ipc_namespaces",
		[COOP_CAN_MOUNT] = "mounts",
		[COOP_CAN_OVERLAY] = "overlays",
		[COOP_CAN_IDMAP] = "id_mapped_mounts",
		[COOP_CAN_LANDLOCK] = "landlock",
		[COOP_CAN_SECCOMP] = "seccomp",
		[COOP_CAN_NO_NEW_PRIVS] = "no_new_privs",
	};

	return facility < COOP_FACILITY_COUNT ? names[facility] : "unknown";
}
