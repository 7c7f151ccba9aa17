#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io/paths.h"
#include "coop.h"
#include "doors/cli/admin/doctor.h"
#include "doors/cli/cli.h"
#include "doors/cli/record.h"

__attribute__((format(printf, 3, 4))) static void
found(struct cli_finding *finding, enum cli_verdict verdict, const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	(void)vsnprintf(finding->detail, sizeof(finding->detail), format, ap);
	va_end(ap);
	finding->verdict = verdict;
}

__attribute__((format(printf, 2, 3))) static void advise(struct cli_finding *finding,
							 const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	(void)vsnprintf(finding->advice, sizeof(finding->advice), format, ap);
	va_end(ap);
}

static void look_kernel(struct cli *cli, struct cli_finding *finding)
{
	struct utsname name;
	unsigned major = 0, minor = 0;
	(void)uname(&name);
	(void)sscanf(name.release, "%u.%u", &major, &minor);
	if (major > 5 || (major == 5 && minor >= 15)) {
		found(finding, CLI_GOOD, "Linux %s, %s", name.release, name.machine);
		return;
	}
	found(finding, CLI_BAD, "Linux %s is older than 5.15", name.release);
	advise(finding, "use a host with Linux 5.15 or newer");
}

/* A child by clone3, or clone where a container's filter hides that, with a pidfd; signalled and
 * waited for by that. */
static void look_clone(struct cli *cli, struct cli_finding *finding)
{
	int pidfd = -1;
	struct clone_args args = {
		.flags = CLONE_PIDFD, .pidfd = (uint64_t)(uintptr_t)&pidfd, .exit_signal = SIGCHLD};
	const char *step = "clone3";
	long pid = syscall(SYS_clone3, &args, sizeof(args));
	if (pid < 0 && errno == ENOSYS) {
		step = "clone";
		pid = syscall(SYS_clone, CLONE_PIDFD | SIGCHLD, NULL, &pidfd, NULL, NULL);
	}
	const char *made = step;
	if (pid == 0) {
		(void)pause();
		_exit(0);
	}
	int r = pid < 0 ? -errno : 0;
	if (r == 0) {
		step = "pidfd_send_signal";
		if (syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0) < 0) {
			r = -errno;
			(void)kill((pid_t)pid, SIGKILL);
		}
		siginfo_t info;
		if (waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED) < 0 && r == 0) {
			r = -errno;
			step = "waitid(P_PIDFD)";
		}
		(void)close(pidfd);
	}
	if (r == 0) {
		found(finding, CLI_GOOD, "%s, pidfd_send_signal and waitid(P_PIDFD) work", made);
		return;
	}
	found(finding, CLI_BAD, "%s: %s", step, strerror(-r));
	advise(finding, r == -EPERM || r == -ENOSYS
				? "a seccomp filter of the container forbids it: allow it there "
				  "(Docker 20.10.10 or newer does)"
				: "raise the limits for processes and files");
}

static void look_socket(struct cli *cli, struct cli_finding *finding)
{
	char path[COOP_PATHS_MAX];
	int r = coop_paths_socket(path, sizeof(path));
	if (r < 0) {
		found(finding, CLI_BAD, "the socket's path is too long for a Unix socket");
		advise(finding, "set COOP_SOCKET to a shorter path");
		return;
	}
	r = coop_paths_make_parent(path);
	if (r < 0) {
		char why[256];
		coop_paths_explain_parent(path, r, why, sizeof(why));
		found(finding, CLI_BAD, "%.108s cannot be there: %s", path, why);
		advise(finding, "mend that, or set COOP_SOCKET to a path in a folder of yours");
		return;
	}
	struct stat st;
	char *slash = strrchr(path, '/');
	if (slash)
		*slash = '\0';
	if (stat(path, &st) == 0 && (st.st_mode & 077)) {
		found(finding, CLI_WARN, "%.400s has mode %04o: others can look into it", path,
		      st.st_mode & 07777);
		advise(finding, "chmod 700 %.200s", path);
		return;
	}
	found(finding, CLI_GOOD, "%.400s (mode 0700, yours)", path);
}

static void look_keeper(struct cli *cli, struct cli_finding *finding)
{
	struct coop_error error;
	int r = cli_open(cli, CLI_ONLY_RUNNING, &error);
	if (r == -ECONNREFUSED) {
		found(finding, CLI_GOOD, "not running; it is started when it is needed");
	} else if (r == -ENOTCONN) {
		found(finding, CLI_WARN, "not running, so that your token cannot be checked");
		advise(finding, "the first coop run starts it, and checks the token");
	} else if (r < 0 && (cli->token_file || getenv("COOP_TOKEN")) &&
		   strcmp(error.code, "unreachable") != 0) {
		found(finding, CLI_BAD, "running, but %.400s", error.message);
		advise(finding,
		       "coop token new, from an agent above, makes another; without COOP_TOKEN "
		       "you are main");
	} else if (r < 0) {
		found(finding, CLI_BAD, "cannot be reached: %.400s", error.message);
		advise(finding, "end the process that holds the socket, or set COOP_SOCKET to "
				"another place");
	} else if (strcmp(coop_keeper_version(cli->coop), COOP_VERSION) != 0) {
		found(finding, CLI_WARN, "pid %d has version %.32s, this program " COOP_VERSION,
		      coop_keeper_pid(cli->coop), coop_keeper_version(cli->coop));
		advise(finding, "coop shutdown ends it; the next command starts the new one");
	} else {
		found(finding, CLI_GOOD, "running, pid %d, version %.32s",
		      coop_keeper_pid(cli->coop), coop_keeper_version(cli->coop));
	}
}

/* What the keeper says of its audit; that is for the operator, and an agent sees nothing of it. */
static void look_audit(struct cli *cli, struct cli_finding *finding)
{
	struct coop_error error;
	json_t *info = NULL;
	if (cli->coop)
		(void)cli_call(cli, "info", json_object(), &info, &error);
	const json_t *audit = json_object_get(info, "audit");
	const char *fault = cli_text(audit, "fault"), *why = cli_text(audit, "error");
	if (*why) {
		found(finding, CLI_BAD, "cannot be written, so that nothing is started: %.300s",
		      why);
		advise(finding, "make room in the state folder, or mend what is said above");
	} else if (*fault) {
		found(finding, CLI_WARN, "not whole: %.400s", fault);
		advise(finding, "coop audit verify says more; with --acknowledge it is forgotten, "
				"with a line in the audit");
	} else if (json_is_object(audit)) {
		found(finding, CLI_GOOD, "%s", cli_text(audit, "state"));
	} else {
		found(finding, CLI_GOOD, "not looked at: %s",
		      cli->coop ? "that is for the operator" : "no keeper is running");
	}
	json_decref(info);
}

/* Agents that could not be read when the keeper started; for the operator, too. */
static void look_agents(struct cli *cli, struct cli_finding *finding)
{
	struct coop_error error;
	json_t *info = NULL;
	if (cli->coop)
		(void)cli_call(cli, "info", json_object(), &info, &error);
	const json_t *list = json_object_get(info, "left_out");
	const json_t *first = json_array_get(list, 0);
	if (json_array_size(list) > 0) {
		found(finding, CLI_WARN, "%zu left out, with their tokens: %.200s (%.200s)%s",
		      json_array_size(list), cli_text(first, "path"), cli_text(first, "reason"),
		      json_array_size(list) > 1 ? " and more" : "");
		advise(finding,
		       "put records.db back from a copy, or coop agent rm %.200s removes it for "
		       "good; coop op info --json lists all",
		       cli_text(first, "path"));
	} else if (json_is_array(list)) {
		found(finding, CLI_GOOD, "all could be read");
	} else {
		found(finding, CLI_GOOD, "not looked at: %s",
		      cli->coop ? "that is for the operator" : "no keeper is running");
	}
	json_decref(info);
}

/* The whole way once, with a keeper of our own: nothing of the user's is touched. */
static void look_spawn(struct cli *cli, struct cli_finding *finding)
{
	struct cli own = {.verb = cli->verb};
	struct coop_error error;
	json_t *spawned = NULL, *waited = NULL;
	int r = coop_open_private(NULL, &own.coop, &error);
	if (r >= 0)
		r = cli_call(&own, "spawn", json_pack("{s:[s]}", "argv", "true"), &spawned, &error);
	if (r >= 0)
		r = cli_call(&own, "wait",
			     cli_id_args(cli_text(json_object_get(spawned, "process"), "id")),
			     &waited, &error);
	if (r < 0) {
		found(finding, CLI_BAD, "a command cannot be run: %.400s", error.message);
		advise(finding, "see the %s; coop keeper shows the keeper's own log",
		       strcmp(error.code, "sandbox_unavailable") == 0 ? "protections below"
								      : "other lines");
	} else {
		char state[CLI_TEXT_MAX];
		const json_t *record = json_object_get(waited, "process");
		cli_record_state(record, state);
		const bool good = cli_record_exit_code(record) == 0;
		found(finding, good ? CLI_GOOD : CLI_BAD, "a private keeper ran \"true\": %s",
		      state);
	}
	json_decref(spawned);
	json_decref(waited);
	cli_close(&own);
}

static void look_state(struct cli *cli, struct cli_finding *finding)
{
	char path[COOP_PATHS_MAX], probe[COOP_PATHS_MAX + 32];
	int r = coop_paths_state(path, sizeof(path));
	if (r == 0)
		r = coop_paths_make_dir(path);
	if (r == 0) {
		(void)snprintf(probe, sizeof(probe), "%s/doctor.XXXXXX", path);
		COOP_AUTO_FD int fd = mkostemp(probe, O_CLOEXEC);
		if (fd < 0 || write(fd, "x", 1) != 1)
			r = -errno;
		if (fd >= 0)
			(void)unlink(probe);
	}
	if (r == 0) {
		found(finding, CLI_GOOD, "%.400s can be written", path);
		return;
	}
	char why[256];
	coop_paths_explain_dir(path, r, why, sizeof(why));
	found(finding, CLI_BAD, "%.200s cannot be used: %s", path, why);
	advise(finding, "make it a writable folder of yours, or set COOP_STATE to one");
}

static void look_files(struct cli *cli, struct cli_finding *finding)
{
	struct rlimit limit;
	(void)getrlimit(RLIMIT_NOFILE, &limit);
	const unsigned long long most = limit.rlim_max;
	/* Three for each process, and some for the keeper itself and its connections. */
	const unsigned long long processes = most > 64 ? (most - 64) / 3 : 0;
	found(finding, processes >= 256 ? CLI_GOOD : CLI_WARN,
	      "RLIMIT_NOFILE is %llu (hard %llu): about %llu processes at once",
	      (unsigned long long)limit.rlim_cur, most, processes);
	if (processes < 256)
		advise(finding, "raise the hard limit: ulimit -Hn, /etc/security/limits.conf, or "
				"LimitNOFILE= of a unit");
}

static long read_number(const char *path)
{
	char text[32];
	COOP_AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return -1;
	text[n] = '\0';
	return strtol(text, NULL, 10);
}

/* Hot pipes are enlarged. A user over the soft limit gets smaller ones, which only costs speed. */
static void look_pipes(struct cli *cli, struct cli_finding *finding)
{
	int fds[2];
	const long pages = read_number("/proc/sys/fs/pipe-user-pages-soft");
	if (pipe2(fds, O_CLOEXEC) < 0) {
		found(finding, CLI_BAD, "no pipe: %s", strerror(errno));
		return;
	}
	const int size = fcntl(fds[0], F_SETPIPE_SZ, 1 << 20);
	const int failure = errno;
	(void)close(fds[0]);
	(void)close(fds[1]);
	if (size > 0) {
		found(finding, CLI_GOOD, "a pipe of 1 MiB can be had (pipe-user-pages-soft is %ld)",
		      pages);
		return;
	}
	found(finding, CLI_WARN, "pipes cannot be enlarged (%s): output comes slower",
	      strerror(failure));
	advise(finding, "sysctl fs.pipe-user-pages-soft=%ld", pages > 0 ? pages * 4 : 65536);
}

static void look_proc(struct cli *cli, struct cli_finding *finding)
{
	if (access("/proc/self/stat", R_OK) < 0) {
		found(finding, CLI_BAD, "/proc is not there: %s", strerror(errno));
		advise(finding, "mount -t proc proc /proc");
	} else if (access("/proc/1/stat", R_OK) < 0) {
		found(finding, CLI_WARN, "/proc hides other users' processes (hidepid)");
		advise(finding, "descendants that change their user are not seen; run the keeper "
				"with the group of gid=, or as root");
	} else {
		found(finding, CLI_GOOD, "processes can be seen in /proc");
	}
}

/* A child that blocks in read, looked at as the keeper looks at its own. */
static void look_blocked(struct cli *cli, struct cli_finding *finding)
{
	int fds[2];
	char path[64], text[128] = "";
	if (pipe2(fds, O_CLOEXEC) < 0) {
		found(finding, CLI_WARN, "not tried: %s", strerror(errno));
		return;
	}
	pid_t pid = fork();
	if (pid == 0) {
		char byte;
		(void)close(fds[1]);
		_exit(read(fds[0], &byte, 1) == 0 ? 0 : 1);
	}
	(void)snprintf(path, sizeof(path), "/proc/%d/syscall", pid);
	/* It may not have got there yet. */
	for (int i = 0; i < 50; i++) {
		COOP_AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
		ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
		text[n > 0 ? n : 0] = '\0';
		if (n <= 0 || strncmp(text, "running", 7) != 0)
			break;
		(void)usleep(1000);
	}
	(void)close(fds[1]);
	(void)close(fds[0]);
	if (pid > 0)
		(void)waitpid(pid, NULL, 0);
	const long scope = read_number("/proc/sys/kernel/yama/ptrace_scope");
	if (*text) {
		found(finding, CLI_GOOD, "blocked_on_stdin can be told (ptrace_scope is %ld)",
		      scope < 0 ? 0 : scope);
		return;
	}
	found(finding, CLI_WARN,
	      "blocked_on_stdin cannot be told: /proc/PID/syscall is closed (ptrace_scope is %ld)",
	      scope);
	advise(finding, scope >= 2 ? "sysctl kernel.yama.ptrace_scope=1"
				   : "the kernel or a container forbids it");
}

static void look_pty(struct cli *cli, struct cli_finding *finding)
{
	COOP_AUTO_FD int fd = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	const char *name = fd >= 0 && grantpt(fd) == 0 && unlockpt(fd) == 0 ? ptsname(fd) : NULL;
	COOP_AUTO_FD int terminal = name ? open(name, O_RDWR | O_NOCTTY | O_CLOEXEC) : -1;
	if (terminal >= 0) {
		found(finding, CLI_GOOD, "terminals can be had (coop run -t)");
		return;
	}
	found(finding, CLI_BAD, "no terminal: %s", strerror(errno));
	advise(finding, "mount -t devpts devpts /dev/pts -o ptmxmode=0666");
}

const struct cli_check cli_checks[] = {
	{"kernel", look_kernel},   {"clone3", look_clone},
	{"proc", look_proc},       {"pty", look_pty},
	{"pipes", look_pipes},     {"files", look_files},
	{"blocked", look_blocked}, {"socket", look_socket},
	{"state", look_state},     {"keeper", look_keeper},
	{"audit", look_audit},     {"agents", look_agents},
	{"spawn", look_spawn},     {NULL, NULL},
};
