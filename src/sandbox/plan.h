/* The plan: what the keeper sends to the launcher to start one process. Shared by both, and by nothing else.
 *
 * One SEQPACKET message: struct coop_plan, then (unless COOP_PLAN_BODY_FD) the body: argc + envc strings, each
 * with its NUL. With it come the fds of enum coop_plan_fd, in that order. A large body comes as a sealed memfd.
 *
 * The launcher answers every plan, in order, with one struct coop_plan_reply. The child itself tells over its status pipe,
 * with struct coop_plan_status messages: first STEP_CLONED with its pid (so that a child is never lost if the launcher dies
 * before its reply), then either end of file, which means that the program has been executed, or one failure. */
#ifndef COOP_SANDBOX_PLAN_H
#define COOP_SANDBOX_PLAN_H

#include <stdint.h>

#define COOP_PLAN_MAGIC 0x314c5043u /* "CPL1" */
#define COOP_PLAN_INLINE_MAX 65536u /* largest message; a larger body goes into a memfd */

/* The launcher's end of its socket to the keeper. */
#define COOP_PLAN_LAUNCHER_FD 3

/* A process and all that it starts carry the number of its record in RLIMIT_LOCKS, a limit that the kernel hands on through fork
 * and exec, and that has no effect. The soft one: the hard one stays, so that a keeper inside a kept process can set its own. A
 * mark is a number that no limit is by chance, with the keeper's own bits in the middle and the record's number at the end. */
#define COOP_MARK_BASE (UINT64_C(1) << 62)
#define COOP_MARK_KEEPER (UINT64_C(0x1fffff) << 41)
#define COOP_MARK_NUMBER ((UINT64_C(1) << 41) - 1)

enum coop_plan_flag {
	COOP_PLAN_TERMINAL = 1, /* stdin is a terminal, to become the controlling one */
	COOP_PLAN_BODY_FD = 2,
};

enum coop_plan_fd {
	COOP_PLAN_FD_STDIN,
	COOP_PLAN_FD_STDOUT,
	COOP_PLAN_FD_STDERR,
	COOP_PLAN_FD_STATUS, /* write end of the status pipe; only the keeper holds the other */
	COOP_PLAN_FD_CWD,    /* O_PATH: the directory that was checked is the one entered */
	COOP_PLAN_FD_BODY,   /* with COOP_PLAN_BODY_FD */
	COOP_PLAN_FD_COUNT,
};

struct coop_plan {
	uint32_t magic;
	uint32_t flags;
	uint64_t sequence; /* grows by one per plan */
	uint32_t argc, envc;
	uint64_t body_size;
	uint64_t mark;
};

struct coop_plan_reply {
	uint64_t sequence;
	int32_t pid; /* 0 on failure */
	int32_t error;
};

/* Steps between clone and exec, in their order. */
enum coop_plan_step {
	COOP_STEP_CLONED,
	COOP_STEP_BODY,
	COOP_STEP_DEATH_SIGNAL,
	COOP_STEP_SESSION,
	COOP_STEP_TERMINAL,
	COOP_STEP_STDIO,
	COOP_STEP_CHDIR,
	COOP_STEP_CLOSE_FDS,
	COOP_STEP_EXEC,
	COOP_STEP_COUNT,
};

struct coop_plan_status {
	int32_t step;
	int32_t value; /* CLONED: the pid; else the errno */
};

#endif
