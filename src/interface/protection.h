/* The protections of a sandbox, and its limits, which are protections of the host. */
#ifndef COOP_INTERFACE_PROTECTION_H
#define COOP_INTERFACE_PROTECTION_H

enum coop_protection {
	COOP_PROTECT_FILES,
	COOP_PROTECT_NETWORK,
	COOP_PROTECT_IDENTITY,
	COOP_PROTECT_IPC,
	COOP_PROTECT_PRIVILEGES, /* no_new_privs, capabilities */
	COOP_PROTECT_SECCOMP,
	COOP_PROTECT_KILL,
	/* Limits: the rows of coop_limits_fields, in their order. */
	COOP_PROTECT_MEMORY,     /* memory_bytes */
	COOP_PROTECT_CPU,        /* cpu_quota */
	COOP_PROTECT_PIDS,       /* max_pids */
	COOP_PROTECT_CPU_TIME,   /* max_cpu_secs */
	COOP_PROTECT_OPEN_FILES, /* max_open_files */
	COOP_PROTECT_FILE_SIZE,  /* max_file_bytes */
	COOP_PROTECT_TMP,        /* tmp_bytes */
	COOP_PROTECT_COUNT,
};

#endif
