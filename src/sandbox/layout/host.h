/* What this host can do, found out by doing it in a throw-away child when the keeper starts. An
 * errno of 0 says that it works. */
#ifndef COOP_SANDBOX_HOST_H
#define COOP_SANDBOX_HOST_H

#include <stdint.h>

enum coop_facility {
	COOP_CAN_USERNS,  /* a user namespace that maps its own ids */
	COOP_CAN_NESTED,  /* and one inside it: the launcher's, above those of the sandboxes */
	COOP_CAN_PIDNS,   /* with a proc of its own */
	COOP_CAN_NETNS,   /* with loopback up */
	COOP_CAN_IPCNS,   /* IPC and UTS */
	COOP_CAN_MOUNT,   /* the calls that mount by fd, and a read-only root */
	COOP_CAN_OVERLAY, /* a private layer over a folder */
	COOP_CAN_IDMAP,   /* root keeper: a folder on a tmpfs shown with other owners */
	COOP_CAN_LANDLOCK,
	COOP_CAN_SECCOMP,
	COOP_CAN_NO_NEW_PRIVS,
	COOP_FACILITY_COUNT,
};

struct coop_host {
	int32_t error[COOP_FACILITY_COUNT]; /* 0: works */
	uint32_t landlock_abi;
	uint32_t uid, gid; /* whom confined commands run as */
};

const char *coop_facility_name(enum coop_facility facility);

#endif
