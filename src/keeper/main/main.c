/* coop-keeper: parses its options, becomes a daemon if asked, and splits into guard and keeper. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <jansson.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io/claim.h"
#include "base/io/log.h"
#include "base/io/log_relay.h"
#include "base/io/paths.h"
#include "base/mem.h"
#include "guard/guard.h"
#include "interface/err.h"
#include "keeper/conf/config.h"
#include "keeper/conf/settings.h"
#include "keeper/confine/peer.h"
#include "keeper/core/books.h"
#include "keeper/core/keeper.h"
#include "keeper/link/connection.h"
#include "keeper/link/listener.h"
#include "keeper/main/keeper.h"
#include "keeper/main/locks.h"
#include "keeper/store/journal.h"
#include "records/backlog.h"
#include "sandbox/layout/ghosts.h"
#include "sandbox/plan/plan.h"

#define LOG_MAX (1 << 20)
/* Set aside for killing, releasing and looking: a request and an answer that ends with `more`, and
 * a look at all processes of the host. */
#define MEMORY_RESERVE (2u << 20)

struct options {
	bool daemon, foreground;
	int private_fd; /* -1: none */
	int ready_fd; /* in the foreground: where to say that it serves, or why not; -1: nowhere */
	const char **sets; /* NAME=VALUE, of COOP_SET and --set in this order; NULL-terminated */
	size_t set_count;
};

static void usage(FILE *out)
{
	(void)fputs("Usage: coop-keeper [--foreground | --daemon | --private FD] [--set "
		    "NAME=VALUE]...\n"
		    "Keeps the processes that agents start. People use it through `coop`.\n\n"
		    "  --foreground       serve until a signal or `coop shutdown`; logs on stderr "
		    "(default)\n"
		    "  --daemon           exit once it serves in the background; leaves when idle\n"
		    "  --private FD       serve one client on a connected socket, and end with it\n"
		    "  --ready FD         in the foreground: write `ready` there once it serves, "
		    "else why it does not\n"
		    "  --set NAME=VALUE   a setting; `coop info` lists them\n"
		    "  --version, --help\n",
		    out);
}

/* A setting from outside the file. A wrong one is told by the name of where it stood. */
static int add_set(struct options *options, const char *text, const char *where)
{
	struct coop_settings scratch;
	struct coop_err err;
	const char **grown =
		realloc(options->sets, (options->set_count + 2) * sizeof *options->sets);

	if (!grown)
		return -1;
	options->sets = grown;
	options->sets[options->set_count++] = text;
	options->sets[options->set_count] = NULL;
	coop_settings_defaults(&scratch);
	if (coop_settings_set(&scratch, text, &err) == 0)
		return 0;
	(void)fprintf(stderr, "coop-keeper: %s: %s\n", where, err.message);
	return -1;
}

/* Reads optarg as the number of an open descriptor. */
static int parse_fd(const char *option, int *ret)
{
	char *end;
	long fd = strtol(optarg, &end, 10);

	if (end == optarg || *end || fd < 0 || fd > INT_MAX || fcntl((int)fd, F_GETFD) < 0) {
		(void)fprintf(stderr, "coop-keeper: %s %s: not an open descriptor\n", option,
			      optarg);
		return -1;
	}
	*ret = (int)fd;
	return 0;
}

static int parse(int argc, char **argv, struct options *options)
{
	static const struct option table[] = {
		{"foreground", no_argument, NULL, 'f'},    {"daemon", no_argument, NULL, 'd'},
		{"private", required_argument, NULL, 'p'}, {"ready", required_argument, NULL, 'r'},
		{"set", required_argument, NULL, 's'},     {"version", no_argument, NULL, 'v'},
		{"help", no_argument, NULL, 'h'},          {NULL, 0, NULL, 0},
	};

	for (int c; (c = getopt_long(argc, argv, "h", table, NULL)) >= 0;) {
		if (c == 'f') {
			options->foreground = true;
		} else if (c == 'd') {
			options->daemon = true;
		} else if (c == 'p') {
			if (parse_fd("--private", &options->private_fd) < 0)
				return 2;
		} else if (c == 'r') {
			if (parse_fd("--ready", &options->ready_fd) < 0)
				return 2;
		} else if (c == 's') {
			if (add_set(options, optarg, "--set") < 0)
				return 2;
		} else if (c == 'v') {
			(void)puts("coop-keeper " COOP_VERSION_STRING);
			return 0;
		} else {
			usage(c == 'h' ? stdout : stderr);
			return c == 'h' ? 0 : 2;
		}
	}
	if (optind < argc ||
	    options->daemon + options->foreground + (options->private_fd >= 0) > 1 ||
	    (options->ready_fd >= 0 && (options->daemon || options->private_fd >= 0))) {
		usage(stderr);
		return 2;
	}
	return -1;
}

/* COOP_SET holds settings for a keeper that nobody starts by hand, separated by spaces. Its words
 * stay where they are: reloading needs them again. */
static int settings_from_environment(struct options *options)
{
	const char *text = getenv("COOP_SET");
	char *rest = text ? strdup(text) : NULL, *word;

	while (rest && (word = strsep(&rest, " "))) {
		if (*word && add_set(options, word, "COOP_SET") < 0)
			return 2;
	}
	return 0;
}

/* Forks; the parent stays until the child says over the pipe that it serves, and repeats its
 * complaint if it does not. Returns the write end, in the child. */
static int become_daemon(void)
{
	int ends[2], status = 0;
	char text[1024];
	size_t have = 0;
	ssize_t n;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	pid_t child = fork();
	if (child < 0)
		return -errno;
	if (child == 0) {
		(void)close(ends[0]);
		(void)setsid();
		return ends[1];
	}
	(void)close(ends[1]);
	while (have < sizeof text - 1 &&
	       (n = read(ends[0], text + have, sizeof text - 1 - have)) > 0)
		have += (size_t)n;
	text[have] = 0;
	if (!strcmp(text, "ready"))
		_exit(0);
	(void)fprintf(stderr, "coop-keeper: %s\n",
		      have ? text : "the keeper ended while it was starting");
	while ((n = waitpid(child, &status, 0)) < 0 && errno == EINTR)
		;
	exit(n == child && WIFEXITED(status) && WEXITSTATUS(status) == COOP_CLAIM_LOST
		     ? COOP_CLAIM_LOST
		     : 1);
}

/* A daemon's log, in the state folder; an old large one is begun anew. */
static void redirect_stdio(const struct coop_keeper *keeper)
{
	char path[4200];
	struct stat st;

	(void)snprintf(path, sizeof path, "%s/keeper.log", keeper->place.state_dir);
	int truncate = stat(path, &st) == 0 && st.st_size > LOG_MAX ? O_TRUNC : 0;
	COOP_AUTO_FD int log =
		open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | truncate, 0600);
	COOP_AUTO_FD int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	(void)dup2(null, 0);
	(void)dup2(null, 1);
	(void)dup2(log >= 0 ? log : null, 2);
	(void)!chdir("/");
}

/* Once: whoever started a daemon reads until the end of the pipe. */
static void report(int ready, const char *message)
{
	if (ready >= 0)
		(void)!write(ready, message, strlen(message));
	else if (strcmp(message, "ready") != 0)
		(void)fprintf(stderr, "coop-keeper: %s\n", message);
	if (ready >= 0)
		(void)close(ready);
}

/* What it has found while it was starting. Not before: a daemon's log is open from here on. */
static void tell_findings(const struct coop_keeper *keeper,
			  const struct coop_guard_findings *survivors)
{
	if (*keeper->books->audit_fault)
		coop_log(COOP_LOG_ERROR, "the audit is not whole fault=\"%s\"",
			 keeper->books->audit_fault);
	if (survivors->ended || survivors->left)
		coop_log(COOP_LOG_WARN,
			 "an earlier keeper and its guard were killed: what they left was ended "
			 "processes=%zu left=%zu",
			 survivors->ended, survivors->left);
	if (survivors->error)
		coop_log(COOP_LOG_WARN, "the mark of processes cannot be kept error=\"%s\"",
			 strerror(-survivors->error));
}

static uint64_t new_mark(void)
{
	uint64_t random = 0;

	(void)!getrandom(&random, sizeof random, 0);
	return COOP_MARK_BASE | (random & COOP_MARK_KEEPER);
}

static int serve(struct coop_main *main, const struct options *options, int ready,
		 struct coop_log_relay *relay)
{
	struct coop_keeper *keeper = &main->keeper;
	struct coop_guard_findings survivors;
	struct coop_err err = {0};

	coop_locks_take_over(&main->locks);
	keeper->place.mark = new_mark();
	coop_guard_inherit(keeper->place.state_dir, keeper->place.mark, &survivors);
	int r = coop_keeper_init(main, &err);

	if (r == 0 && options->private_fd < 0)
		r = coop_listener_open(keeper, &err);
	if (r == 0 && options->private_fd >= 0) {
		(void)fcntl(options->private_fd, F_SETFL, O_NONBLOCK);
		(void)fcntl(options->private_fd, F_SETFD, FD_CLOEXEC);
		r = coop_conn_open(keeper, options->private_fd, COOP_CONN_OPERATOR);
		main->serves_one = r == 0;
	}
	if (r < 0) {
		report(ready, *err.message ? err.message : "the client's socket cannot be used");
		return 1;
	}
	if (options->daemon)
		redirect_stdio(keeper);
	coop_log_relay_log(relay);
	coop_log(COOP_LOG_INFO, "serving version=%s pid=%d socket=%s", COOP_VERSION_STRING,
		 getpid(), *keeper->place.socket ? keeper->place.socket : "private");
	tell_findings(keeper, &survivors);
	report(ready, "ready");
	coop_keeper_run(main);
	/* The orderly end is under way; a late signal must not make it a death by signal. */
	sigset_t late;
	(void)sigemptyset(&late);
	(void)sigaddset(&late, SIGTERM);
	(void)sigaddset(&late, SIGINT);
	(void)sigprocmask(SIG_BLOCK, &late, NULL);
	coop_log(COOP_LOG_INFO, "ended pid=%d", getpid());
	if (!coop_keeper_free(main))
		_exit(0);
	return 0;
}

/* 0, or the exit status to end with. */
static int take_place(struct coop_keeper *keeper, struct coop_locks *locks,
		      const struct options *options, int ready)
{
	struct coop_err err = {0};
	int r;

	if (options->private_fd >= 0)
		return 0;
	r = coop_paths_socket(keeper->place.socket, sizeof keeper->place.socket);
	if (r == 0)
		r = coop_paths_state(keeper->place.state_dir, sizeof keeper->place.state_dir - 64);
	if (r == 0)
		r = coop_paths_data(keeper->place.data_dir, sizeof keeper->place.data_dir - 64);
	if (r < 0)
		(void)coop_err_set(
			&err, COOP_UNAVAILABLE,
			"the path of the socket, the state or the data folder is too long");
	else
		r = coop_locks_take(locks, &keeper->place, &err);
	if (r == 0)
		return 0;
	report(ready, err.message);
	return options->daemon && err.code == COOP_EXISTS ? COOP_CLAIM_LOST : 1;
}

/* A file with a fault keeps the keeper from starting: nobody should run with other rules than he
 * wrote. A private keeper has no operator but the program that it serves. */
static int configure(struct coop_keeper *keeper, const struct options *options)
{
	struct coop_err err = {0};

	keeper->config = coop_config_open(options->private_fd < 0, options->sets, &err);
	if (keeper->config)
		return 0;
	(void)fprintf(stderr, "coop-keeper: %s\n", err.message);
	return -1;
}

/* What keeper and guard share: before they part. */
static int make_memory(struct coop_keeper *keeper)
{
	struct coop_backlog *backlog = NULL;
	int r = keeper->place.private_mode ? 0 : coop_backlog_open(keeper->place.socket, &backlog);

	if (r < 0)
		return r;
	keeper->journal = coop_journal_new(backlog);
	keeper->place.backlog = coop_backlog_path(backlog);
	return keeper->journal ? 0 : -ENOMEM;
}

/* The keeper is gone: what it did not live to write. */
static void save_memory(const struct coop_keeper *keeper)
{
	struct coop_backlog *backlog = keeper->journal->backlog;
	const char *state = keeper->place.state_dir;

	if (keeper->place.private_mode)
		return;
	coop_ghosts_save(state, coop_backlog_apart(backlog));
	int r = coop_backlog_save(backlog, state);
	if (r < 0)
		coop_log(COOP_LOG_ERROR, "what was not on the disk yet is lost error=%s",
			 coop_err_errno_name(-r));
}

int main(int argc, char **argv)
{
	static struct coop_main program;
	struct coop_keeper *keeper = &program.keeper;
	static struct options options = {.private_fd = -1,
					 .ready_fd = -1}; /* the keeper holds its settings */
	struct coop_log_relay relay;
	char marks[4200];
	int ready = -1;

	coop_mem_init();
	coop_mem_reserve(MEMORY_RESERVE);
	json_set_alloc_funcs(coop_mem_alloc, free);
	(void)setenv("UV_THREADPOOL_SIZE", "1",
		     1); /* one helper thread: what it is given is done in order */
	int code = settings_from_environment(&options);
	if (code)
		return code;
	code = parse(argc, argv, &options);
	if (code >= 0)
		return code;
	if (configure(keeper, &options) < 0)
		return 1;
	/* A daemon keeps nothing open that its caller, or a script's lock, had open. */
	if (options.daemon)
		(void)close_range(3, ~0u, 0);
	if (options.daemon && (ready = become_daemon()) < 0) {
		(void)fprintf(stderr, "coop-keeper: cannot fork: %s\n", strerror(-ready));
		return 1;
	}
	if (options.ready_fd >= 0) {
		ready = options.ready_fd;
		(void)fcntl(ready, F_SETFD, FD_CLOEXEC);
	}
	program.locks = (struct coop_locks){-1, {-1, -1}};
	keeper->life = &program.life;
	keeper->place.private_mode = options.private_fd >= 0;
	program.on_demand = options.daemon;
	keeper->listeners = coop_listeners_new(keeper, coop_peer_may_connect);
	if (!keeper->listeners) {
		report(ready, "out of memory");
		return 1;
	}
	code = take_place(keeper, &program.locks, &options, ready);
	if (code)
		return code;
	if (make_memory(keeper) < 0) {
		report(ready, "there is no memory, or no room beside the socket, for what is not "
			      "on the disk yet");
		return 1;
	}
	int r = coop_log_relay_open(&relay);
	pid_t child = r < 0 ? r : coop_guard_fork();
	if (child < 0) {
		report(ready, r < 0 ? "cannot make a pipe for the log" : "cannot fork");
		return 1;
	}
	if (child == 0)
		return serve(&program, &options, ready, &relay);
	coop_locks_let_go(&program.locks);
	if (ready >= 0)
		(void)close(ready);
	if (options.private_fd >= 0)
		(void)close(options.private_fd);
	if (options.daemon)
		redirect_stdio(keeper);
	coop_log_relay_carry(&relay);
	bool marked = coop_guard_marks_path(keeper->place.state_dir, marks, sizeof marks);
	int status = coop_guard_watch(child, marked ? marks : NULL);
	save_memory(keeper);
	coop_log_relay_end(&relay);
	return status;
}
