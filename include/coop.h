/* coop: keep the processes that agents start.
 *
 * The client side of the keeper's socket (docs/PROTOCOL.md). Operations take their arguments and
 * give their results as JSON text, exactly as the protocol names them; bytes of a process travel
 * beside them and are never JSON.
 *
 * Results: 0 or a count on success, a negative errno on failure. A call that fails fills the
 * caller's coop_error (which may be NULL). An operation that the keeper refuses gives
 * -EREMOTEIO, with the keeper's own error code in `code`.
 *
 * A connection may be used from one thread at a time. The library never prints, exits, or
 * touches signals.
 */
#ifndef COOP_H
#define COOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define COOP_VERSION "0.1.0"

/* Most bytes of stdin that a spawn may bring, and most in one write_stdin. */
#define COOP_SPAWN_STDIN_MAX (4u << 20)
#define COOP_WRITE_STDIN_MAX (1u << 20)
/* Most bytes of one file that a process is given, and of all of them. */
#define COOP_FILE_MAX (8u << 20)
#define COOP_FILES_MAX (16u << 20)
/* Most bytes that a spawn may bring in all: those of files first, then stdin's. */
#define COOP_SPAWN_DATA_MAX (COOP_FILES_MAX + COOP_SPAWN_STDIN_MAX)
/* Most bytes that the answer to one blocking call may bring; more is -EMSGSIZE, code
 * "too_large". */
#define COOP_REPLY_MAX (64u << 20)
/* "No event number": the cursor of bytes that were not asked for by event. */
#define COOP_NO_CURSOR UINT64_MAX

enum coop_stream {
	COOP_STDIN = 0,
	COOP_STDOUT = 1,
	COOP_STDERR = 2,
	COOP_PTY = 3,
	COOP_NOTE = 4, /* what coop itself says of a process: only where it is asked for */
};

/* What went wrong. `code` is stable ("invalid_input", "no_such_process", …; "unreachable" and
 * "protocol" come from the library itself), `message` is for people, `details` is the keeper's
 * JSON object ("{}" if there is none, cut off never: too long ones are "{}"). */
struct coop_error {
	char code[32];
	char message[512];
	char details[8192];
};

struct coop; /* one connection */

/* Most bytes of a token. */
#define COOP_TOKEN_MAX 256u

/* How to connect. Zero-initialise it; NULL stands for all defaults. */
struct coop_options {
	const char *socket; /* NULL: COOP_SOCKET, else this user's place */
	/* The coop-keeper program. NULL: COOP_KEEPER, else found beside this program, beside the
	 * library, or in PATH. */
	const char *keeper;
	/* Do not start a keeper if there is none: fail with -ECONNREFUSED, code "unreachable". */
	bool no_start;
	/* Act as the agent whose token this is. NULL: the token in COOP_TOKEN, if that is set and
	 * not empty; else, and with "", as this user's first agent, main. */
	const char *token;
};

/* Connects to this user's keeper and starts one if there is none. Blocks until the keeper has
 * said hello and, where there is a token, has taken it. On success *ret is the caller's, to be
 * ended with coop_close().
 *
 * A token that the keeper does not take (wrong, expired, revoked) is -EACCES, code
 * "permission_denied"; one that cannot be any (longer than COOP_TOKEN_MAX, or with control
 * characters) -EINVAL, code "invalid_input". There is no connection without it then. No error
 * holds the token. */
int coop_open(const struct coop_options *options, struct coop **ret, struct coop_error *error);

/* Starts a keeper of this program's own, on a socketpair: it keeps no records, and ends all it
 * owns when the connection goes, however it goes (coop_close(), exit, SIGKILL). It knows no
 * tokens: COOP_TOKEN is not looked at, and one in the options is -EINVAL. */
int coop_open_private(const struct coop_options *options, struct coop **ret,
		      struct coop_error *error);

/* A connection over a socket that somebody else has connected to a keeper; it is the connection's
 * from now on. Nothing is waited for and no token is looked at: who acts as an agent submits the
 * operation login first. */
int coop_open_fd(int fd, struct coop **ret, struct coop_error *error);

/* Ends the connection. Requests still open are dropped without their callbacks being called.
 * NULL is fine. A private keeper is waited for: when this returns, it and all it owned are gone
 * (it is killed if it takes more than 15 s). In a forked copy of the program that opened it,
 * only the copy's fd is closed. */
void coop_close(struct coop *coop);

/* The keeper's pid and version as it said hello. */
int coop_keeper_pid(const struct coop *coop);
const char *coop_keeper_version(const struct coop *coop);

/* Whether a command's base environment (`base_env` of the operation spawn) may hold a variable of
 * this name: the usual ten, and what the keeper's operator lets in besides. Others would be
 * refused. coop_spawn() sends what it may. */
bool coop_inherits(const struct coop *coop, const char *name);

/* ---- blocking calls ---- */

struct coop_reply; /* result and bytes of one operation */

/* Carries out one operation and waits for its answer. `args` is a JSON object as text, or NULL.
 * `data`, `size` are the request's bytes (files, stdin). On success *ret is the caller's, to be
 * ended with coop_reply_free(). Events of a follow are dropped; use coop_submit() for those.
 * Callbacks of other open requests may run meanwhile. */
int coop_call(struct coop *coop, const char *op, const char *args, const void *data, size_t size,
	      struct coop_reply **ret, struct coop_error *error);

/* The result object as JSON text; lives as long as the reply. */
const char *coop_reply_json(const struct coop_reply *reply);
/* The bytes of one stream that came with the reply, in order; *ret_size may be 0. Lives as long
 * as the reply. */
const void *coop_reply_data(const struct coop_reply *reply, enum coop_stream stream,
			    size_t *ret_size);
void coop_reply_free(struct coop_reply *reply);

/* ---- the non-blocking form ---- */

/* Bytes of a process: `offset` is their position in the stream, `cursor` the event's number or
 * COOP_NO_CURSOR. */
struct coop_chunk {
	enum coop_stream stream;
	uint64_t offset;
	uint64_t cursor;
	const void *data;
	size_t size;
};

/* What a request brings, in this order: any number of data and event calls, then exactly one
 * done. Any of them may be NULL. They run inside coop_dispatch(), coop_run() or a blocking call;
 * what they are given lives until they return. They may submit and cancel requests, and must not
 * close the connection. */
struct coop_handler {
	void (*data)(void *user, uint64_t request, const struct coop_chunk *chunk);
	/* `json` is the event's whole frame: {"id":…,"event":"gap",…} */
	void (*event)(void *user, uint64_t request, const char *json);
	/* status 0: `json` is the result, error is NULL. Else status is negative, json NULL, and
	 * error says why. */
	void (*done)(void *user, uint64_t request, int status, const char *json,
		     const struct coop_error *error);
	void *user;
};

/* Queues one operation and returns at once; the request's id (>= 1) is in *ret_request. The
 * handler is copied. Fails with -EINVAL (args are no JSON object), -EMSGSIZE (too large: code
 * "too_large"), -ENOMEM, -EPIPE (the connection is gone), -EAGAIN (64 MiB wait to be sent
 * already: dispatch first). */
int coop_submit(struct coop *coop, const char *op, const char *args, const void *data, size_t size,
		const struct coop_handler *handler, uint64_t *ret_request,
		struct coop_error *error);

/* Asks the keeper to end an open request early; its done is called with code "cancelled" or with
 * the answer that was already on its way. An unknown request is ignored. */
int coop_cancel(struct coop *coop, uint64_t request);

/* For the caller's own poll loop: the fd to poll, and which of POLLIN and POLLOUT are wanted
 * now. */
int coop_fd(const struct coop *coop);
short coop_poll_events(const struct coop *coop);

/* Reads and writes what can be had without blocking and runs handlers. Returns the number of
 * frames handled, or -EPIPE when the connection has ended: all open requests have then been told
 * (code "unreachable", or the keeper's own reason if it gave one). -EBUSY if called from a
 * handler, where the blocking calls fail likewise. */
int coop_dispatch(struct coop *coop, struct coop_error *error);

/* Waits for up to timeout_ms (-1: without limit) until the connection has something to do, then
 * dispatches. Returns as coop_dispatch(), 0 also when time is up or a signal handler has run. */
int coop_run(struct coop *coop, int timeout_ms, struct coop_error *error);

/* Number of requests not yet done. */
size_t coop_pending(const struct coop *coop);

/* ---- the common operations, without JSON ----
 *
 * Blocking, and made of coop_call() alone: what they do not offer (docs/PROTOCOL.md section 7)
 * is had from there. An `id` is a process's id, its tag, or an unambiguous beginning of an id. */

#define COOP_ID_SIZE 64 /* an id and its NUL */

enum coop_input {
	COOP_INPUT_NONE, /* end of file at once */
	COOP_INPUT_PIPE, /* open for coop_write_stdin() */
	COOP_INPUT_DATA, /* the bytes given, then end of file */
};

enum coop_lease {
	COOP_LEASE_AWAITED,    /* ends with its session, not with this connection */
	COOP_LEASE_EPHEMERAL,  /* ends with this connection */
	COOP_LEASE_PERSISTENT, /* ends by request or when its time to live is over */
};

/* How a process is confined (docs/PROTOCOL.md names the same members). Zero-initialise it; what is
 * NULL is as the operator and the agent's settings have it: the profile "workspace-write", the
 * network "loopback", the home "cow", the root "host". Where one of them allows less, asking for
 * more is refused, code "permission_denied". Lists end with NULL; paths are absolute, "~/" at
 * their front is the home folder. */
struct coop_spawn_sandbox {
	const char *profile; /* "read-only", "workspace-write", "full", or one of coop.conf */
	/* The folder that it may change. NULL: the one that the agent is bound to; without such,
	 * nothing but a /tmp of its own and what it writes to the home folder, which vanishes. The
	 * library grants nothing by itself, least of all this program's own folder. */
	const char *workspace;
	const char *network;            /* "none", "loopback", "host" */
	const char *home;               /* "cow", "read-only", "hidden" */
	const char *root;               /* "host", "minimal" */
	const char *const *allow_write; /* more folders that it may change */
	const char *const *allow_read;  /* with the root "minimal": what is seen besides */
	const char *const *deny_write;  /* wins over what may be changed */
	const char *const *deny_read;   /* files, folders or patterns that are not seen */
	const char *const *protect;     /* read-only in all it may change, besides the usual ones */
	/* Protections by name ("files", "network", "identity", "ipc", "privileges", "seccomp",
	 * "kill", and limits by their fields). Without one that is required the process is not
	 * started: code "sandbox_unavailable", with `protection` and `reason` in the details. NULL:
	 * all but "ipc", and each limit that is asked for. */
	const char *const *require;
	const char *const *tolerate; /* taken out of those */
};

/* Limits of a process with all that it starts. Zero-initialise it; 0: none of its own. */
struct coop_spawn_limits {
	uint64_t memory_bytes;
	uint32_t cpu_millis; /* thousandths of a processor: 1500 is one and a half */
	uint64_t max_pids;
	uint64_t max_cpu_secs; /* of each process, as the following two */
	uint64_t max_open_files;
	uint64_t max_file_bytes; /* that it writes */
	uint64_t tmp_bytes;      /* what fits into its /tmp */
};

/* A file that a process is given, read-only, and gone when it ends. */
struct coop_spawn_file {
	const char *name; /* a variable that holds the file's path; or */
	const char *path; /* an absolute path where it is found */
	const void *data;
	size_t size;
};

/* What to start. Zero-initialise it; only argv or command is needed. Text must be UTF-8. */
struct coop_spawn_options {
	const char *const *argv; /* program and arguments, ends with NULL */
	const char *command;     /* instead of argv: a line for the shell */
	const char *cwd;         /* NULL: this program's own */
	/* "NAME=VALUE", ends with NULL; on top of those variables of this program that
	 * coop_inherits() names (PATH, HOME, LANG, …) */
	const char *const *env;
	const char *tag;        /* a name to find it by */
	const char *why;        /* what it is for, shown to people */
	enum coop_input input;  /* of a terminal the input is always open */
	const void *input_data; /* with COOP_INPUT_DATA: at most COOP_SPAWN_STDIN_MAX bytes */
	size_t input_size;
	bool pty;            /* run it on a terminal */
	uint16_t cols, rows; /* of that terminal; 0: 80 and 24 */
	bool merge_stderr;   /* one pipe for both: all of it is COOP_STDOUT, in write order */
	uint64_t timeout_ms; /* 0: none. Then the whole tree is killed, cause "timed_out" */
	enum coop_lease lease;
	const char *session; /* id of a session that it ends with; NULL: the agent's default one */
	const char *call_id; /* the operation cancel ends all that carry it; NULL: none */
	const struct coop_spawn_sandbox *sandbox; /* NULL: as the operator and the agent have it */
	const struct coop_spawn_limits *limits;   /* NULL: likewise */
	const struct coop_spawn_file *files;      /* at most 128 */
	size_t file_count;
};

/* Starts a process; returns when the program has been executed. */
int coop_spawn(struct coop *coop, const struct coop_spawn_options *options,
	       char ret_id[COOP_ID_SIZE], struct coop_error *error);

/* How a process ended, or how it is. */
struct coop_end {
	char state[16]; /* "running", "stopped", "exited", "signaled", … */
	int exit_code;  /* -1: it returned none */
	int signal;     /* what killed it; 0: nothing did */
	/* "self_exit", "killed_by_request", "timed_out", "oom", …; "" while it lives */
	char cause[32];
};

/* Waits for the end for up to timeout_ms (-1: without limit). Returns 1 when it has ended, 0
 * when time is up. */
int coop_wait(struct coop *coop, const char *id, int64_t timeout_ms, struct coop_end *ret,
	      struct coop_error *error);

/* Where a read got to. */
struct coop_position {
	uint64_t cursor;        /* of the first byte read; more than asked for if bytes were lost */
	uint64_t next;          /* what to ask for next */
	uint64_t bytes_dropped; /* lost between what was asked for and `cursor` */
	bool eof;               /* the stream has ended and this was the last of it */
};

/* Reads bytes of COOP_STDOUT, COOP_STDERR or COOP_PTY from `cursor` on (0 is the first byte
 * ever) into the buffer, without waiting and without removing them. Returns how many; 0 also if
 * there are none yet. `size` above 4 MiB counts as that. */
int coop_read(struct coop *coop, const char *id, enum coop_stream stream, uint64_t cursor,
	      void *buffer, size_t size, struct coop_position *ret, struct coop_error *error);

/* Writes to the process's stdin and waits until the kernel took all of it, for up to timeout_ms
 * for every MiB (-1: without limit). *ret_written (may be NULL) is how much it took, also on
 * failure; -ETIMEDOUT if that is not all. */
int coop_write_stdin(struct coop *coop, const char *id, const void *data, size_t size,
		     int64_t timeout_ms, size_t *ret_written, struct coop_error *error);

/* End of file for the process. 0 also if it was closed before. */
int coop_close_stdin(struct coop *coop, const char *id, struct coop_error *error);

/* Sends a signal ("TERM", "SIGUSR1", "9") to the process's group. Returns 1 if it was sent, 0 if
 * the process has ended. */
int coop_signal(struct coop *coop, const char *id, const char *signal, struct coop_error *error);

/* What a kill did, read back from the kernel. */
struct coop_receipt {
	bool success; /* nothing of the tree is left */
	size_t signalled, killed, survivors;
};

/* Kills the process with its whole tree and answers when that is empty. *ret may be NULL. */
int coop_kill(struct coop *coop, const char *id, struct coop_receipt *ret,
	      struct coop_error *error);
/* The same after a SIGTERM and up to grace_ms (at most 30000) of patience. */
int coop_stop(struct coop *coop, const char *id, int grace_ms, struct coop_receipt *ret,
	      struct coop_error *error);

/* Forgets the process and its output; kills it first if need be. */
int coop_release(struct coop *coop, const char *id, struct coop_error *error);

#ifdef __cplusplus
}
#endif

#endif
