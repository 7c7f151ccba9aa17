/* The plan: what the keeper sends to a launcher to start one process. Shared by both, and by
 * nothing else.
 *
 * One SEQPACKET message: struct coop_plan, then (unless COOP_PLAN_BODY_FD) the body. With it come
 * the fds of enum coop_plan_fd, in that order, then those that operations name. A large body comes
 * as a sealed memfd. The body holds, one after the other:
 *
 *	struct coop_plan_op    ops[op_count];       what makes the view of the files, in this order
 *	struct coop_plan_rule  rules[rule_count];   the same for Landlock
 *	struct coop_plan_limit limits[limit_count];
 *	char                   text[];              argc + envc strings, each with its NUL;
 *	                                            then what offsets point to
 *
 * A launcher answers every plan, in order, with one struct coop_plan_reply. The child tells over
 * its channel, another SEQPACKET socket, with struct coop_plan_status messages; the kernel adds the
 * sender's pid as the keeper sees it. First comes CLONED, so that a child is never lost if the
 * launcher dies before its reply.
 *
 * Without COOP_PLAN_INIT the child itself becomes the program: then comes one FAILED, or end of
 * file, which means that it has been executed. With it the child is the first process of its PID
 * namespace and starts the program as its own child: then comes one FAILED, or EXECUTED, later
 * perhaps STOPPED and CONTINUED, and EXITED. The child is gone when the kernel says so to its
 * parent, the keeper; with it are all of its namespace. */
#ifndef COOP_SANDBOX_PLAN_H
#define COOP_SANDBOX_PLAN_H

#include <stdint.h>

#define COOP_PLAN_MAGIC 0x324c5043u /* "CPL2" */
#define COOP_PLAN_INLINE_MAX 65536u /* largest message; a larger body goes into a memfd */
#define COOP_PLAN_BODY_MAX (64u << 20)
#define COOP_PLAN_OPS_MAX 4096u
#define COOP_PLAN_EXTRA_FDS_MAX 24u /* beyond enum coop_plan_fd */

/* What a launcher finds open when it begins. Its arguments: enum coop_launcher_kind; the uid and
 * gid to change to first, or "-"; how many doors there are; "join" if the user namespace is to be
 * joined that comes along, else "-". Its first message says how that went, with the user namespace
 * that the sandboxes are below as an fd. A PROBE sends one struct coop_host instead, and leaves. */
#define COOP_LAUNCHER_FD_SOCKET 3
#define COOP_LAUNCHER_FD_FILTERS 4 /* sealed memfd, see filter.h */
#define COOP_LAUNCHER_FD_IMAGE 5   /* itself */
#define COOP_LAUNCHER_FD_USERNS 6
#define COOP_LAUNCHER_FD_DOORS 7 /* cgroup.procs files of groups to enter */

enum coop_launcher_kind {
	COOP_LAUNCHER_PLAIN, /* in no namespace of its own */
	/* in a user namespace above the sandboxes, and in a net namespace of nobody's */
	COOP_LAUNCHER_BOX,
	COOP_LAUNCHER_HOST, /* the same with the host's network */
	COOP_LAUNCHER_PROBE,
};

/* A process and all that it starts carry the number of its record in RLIMIT_LOCKS, a limit that the
 * kernel hands on through fork and exec, and that has no effect. The soft one: the hard one stays,
 * so that a keeper inside a kept process can set its own. A mark is a number that no limit is by
 * chance, with the keeper's own bits in the middle and the record's number at the end; 0 there: a
 * sandbox that waits for its command. */
#define COOP_MARK_BASE (UINT64_C(1) << 62)
#define COOP_MARK_KEEPER (UINT64_C(0x1fffff) << 41)
#define COOP_MARK_NUMBER ((UINT64_C(1) << 41) - 1)

enum coop_plan_kind {
	COOP_PLAN_SPAWN, /* clone and go on to the end */
	/* clone a sandbox: go as far as is possible without a command, say READY and wait for GO
	 * on the channel */
	COOP_PLAN_FILL,
	COOP_PLAN_GO, /* to that sandbox: the rest */
	/* no process: the keeper has the net namespace net_id. It is not answered, and no fds
	 * come with it */
	COOP_PLAN_FORGET,
};

enum coop_plan_flag {
	COOP_PLAN_TERMINAL = 1, /* stdin is a terminal, to become the controlling one */
	COOP_PLAN_BODY_FD = 2,
	COOP_PLAN_INIT = 4,     /* a first process of its own */
	COOP_PLAN_MAP_SELF = 8, /* a user namespace is made: map uid and gid to themselves */
	COOP_PLAN_NO_NEW_PRIVS = 16,
	COOP_PLAN_DROP_CAPS = 32,
	COOP_PLAN_NET_FD = 64, /* an fd of the session's net namespace comes along */
	/* the session has none yet: make it (unless net_id is known), and send it with the reply */
	COOP_PLAN_NET_NEW = 128,
	COOP_PLAN_CGROUP_FD = 256, /* clone into that cgroup of version 2 */
	COOP_PLAN_KILL_REST = 512, /* with INIT: leave as soon as the program has ended */
	/* the working directory is a path of the new view, `cwd`; else COOP_PLAN_FD_CWD */
	COOP_PLAN_CWD_PATH = 1024,
	COOP_PLAN_PROGRAM_FD = 2048, /* the program is that fd, whatever argv[0] is called */
};

enum coop_plan_fd {
	COOP_PLAN_FD_STDIN,
	COOP_PLAN_FD_STDOUT,
	COOP_PLAN_FD_STDERR,
	COOP_PLAN_FD_CHANNEL, /* only the keeper holds the other end */
	COOP_PLAN_FD_CWD,     /* O_PATH: the directory that was checked is the one entered */
	/* with COOP_PLAN_BODY_FD; the following likewise, only if their flag is set */
	COOP_PLAN_FD_BODY,
	COOP_PLAN_FD_NET,
	COOP_PLAN_FD_CGROUP,
	COOP_PLAN_FD_PROGRAM, /* a sealed memfd of the keeper's */
	COOP_PLAN_FD_COUNT,
};

struct coop_plan {
	uint32_t magic;
	uint32_t kind;
	uint32_t flags;
	uint32_t op_count, rule_count, limit_count;
	uint32_t argc, envc;
	uint64_t sequence; /* grows by one per plan */
	uint64_t body_size;
	uint64_t mark;
	uint64_t namespaces;           /* CLONE_NEW… */
	uint64_t net_id;               /* the session's number, never reused; with NET_NEW */
	uint32_t uid, gid;             /* with MAP_SELF: whom it is inside … */
	uint32_t outer_uid, outer_gid; /* … and outside */
	uint32_t filter;               /* enum coop_filter; 0: none */
	uint32_t landlock;             /* ABI to make use of; 0: no Landlock */
	uint32_t scopes;               /* with Landlock of ABI 6: LANDLOCK_SCOPE_… */
	uint32_t cwd;                  /* with CWD_PATH: offset into the text */
	uint32_t extra_fds;
	/* of GO: how many operations came with FILL. No gaps: plans are compared byte by byte */
	uint32_t op_first;
};

_Static_assert(sizeof(struct coop_plan) % 8 == 0, "the body that follows is aligned");

/* What makes the view of the files. Paths are absolute, without links, dots and doubled slashes;
 * they are looked up without following any link, so that what is moved meanwhile fails instead of
 * being followed. */
enum coop_plan_op_kind {
	/* All that is there becomes read-only and ignores set-id bits; nothing mounted later
	   outside shows up. First of all in place. */
	COOP_OP_ROOT_READONLY = 1,
	/* An empty root to be filled, in which all later paths lie (sources are looked up in the
	   old one); PIVOT makes it the root. */
	COOP_OP_ROOT_EMPTY,
	COOP_OP_PIVOT,
	/* An empty private file system at path: size, inodes, mode. The folder below stays
	   reachable as a source. */
	COOP_OP_TMPFS,
	COOP_OP_PROC, /* at path */
	/* at path: null zero full random urandom tty, own pts and shm; with a terminal, it as
	 * console */
	COOP_OP_DEV,
	/* path is seen as it is, less the names in data (count of them, relative, NUL-ended);
	   writes go to a private layer (size, inodes). */
	COOP_OP_LAYER,
	/* The tree that is at `source` (0: at path), or that fd holds, appears at path; missing
	 * folders on the way are made where the view is private. Without an fd its dev and ino are
	 * checked. COOP_OP_WRITABLE, else read-only. */
	COOP_OP_TREE,
	COOP_OP_READONLY, /* path, which exists, becomes read-only */
	/* path, which exists, becomes a mount point: it cannot be renamed or removed */
	COOP_OP_PIN,
	COOP_OP_COVER, /* path, which exists, reads as an empty file or folder */
	/* a read-only file with size bytes of data at path; on an existing file, or in a private
	 * folder */
	COOP_OP_FILE,
	COOP_OP_FOLDER, /* makes the folder path (mode) in a private view */
	COOP_OP_LINK, /* makes a symbolic link at path with data as its target, in a private view */
	/* Where this identity may not search an ancestor of path: covers the topmost such with an
	   empty one that holds only the way down. */
	COOP_OP_WAY,
	COOP_OP_COUNT,
};

enum coop_plan_op_flag {
	COOP_OP_WRITABLE = 1,
	COOP_OP_OPTIONAL = 2, /* a path that is not there is no failure */
	COOP_OP_NOEXEC = 4,
	COOP_OP_DEVICES = 8, /* TREE: device files work */
	/* COVER: of what is only not to be made, and so its own mode is in nobody's way */
	COOP_OP_ABSENT = 16,
	/* COVER: nobody looked whether it is there, and whatever keeps it from being covered
	 * keeps it from being read by that name */
	COOP_OP_UNLOOKED = 32,
};

struct coop_plan_op {
	uint32_t kind, flags;
	/* offsets into the text; source 0: none. LAYER: a folder that hides the names already */
	uint32_t path, source;
	int32_t fd; /* which of the extra fds; -1: none */
	uint32_t mode;
	uint64_t dev, ino; /* 0: not checked */
	uint64_t size, inodes;
	uint32_t data, count;
};

/* Landlock: below path all of that kind is allowed. A path that is not there says nothing. */
enum coop_plan_access {
	COOP_ACCESS_READ = 1,
	COOP_ACCESS_WRITE,
	COOP_ACCESS_DEVICES,
	COOP_ACCESS_PROC
};

struct coop_plan_rule {
	uint32_t path, access;
};

struct coop_plan_limit {
	uint32_t resource, unused;
	uint64_t soft, hard;
};

struct coop_plan_reply {
	uint64_t sequence;
	int32_t pid; /* in the launcher's own view, 0 on failure */
	int32_t error;
	uint32_t net;  /* an fd of the net namespace that was made for the session comes along */
	uint32_t step; /* of the failure */
};

/* Steps between clone and exec, in their order. */
enum coop_plan_step {
	COOP_STEP_CLONE,
	COOP_STEP_BODY,
	COOP_STEP_NETWORK,
	COOP_STEP_IDENTITY,
	COOP_STEP_DEATH_SIGNAL,
	COOP_STEP_SESSION,
	COOP_STEP_MOUNTS,
	COOP_STEP_INIT,
	COOP_STEP_TERMINAL,
	COOP_STEP_STDIO,
	COOP_STEP_CHDIR,
	COOP_STEP_LIMITS,
	COOP_STEP_CLOSE_FDS,
	COOP_STEP_NO_NEW_PRIVS,
	COOP_STEP_LANDLOCK,
	COOP_STEP_CAPABILITIES,
	COOP_STEP_SECCOMP,
	COOP_STEP_EXEC,
	COOP_STEP_COUNT,
};

enum coop_plan_event {
	COOP_PLAN_CLONED = 1,
	COOP_PLAN_READY,
	COOP_PLAN_FAILED,   /* step, error, op */
	COOP_PLAN_EXECUTED, /* the sender's pid is the program's */
	COOP_PLAN_STOPPED,
	COOP_PLAN_CONTINUED,
	COOP_PLAN_EXITED, /* wait_status, cpu_ns, peak_bytes, alone */
};

struct coop_plan_status {
	uint32_t event;
	uint32_t step;
	int32_t error;
	uint32_t op; /* MOUNTS: which */
	int32_t wait_status;
	uint32_t alone; /* nobody else is left */
	uint64_t cpu_ns, peak_bytes;
	/* of an end that is no success: attempts to reach other hosts while it ran, see reach.h */
	uint64_t unreachable;
};

#endif
