/* One process at a time, each party in turn, COUNT times over: A B C A B C... so that whatever the
 * machine does meets all alike.
 *
 *     race COUNT PAUSE_US PARTY...
 *
 * A party is a group of words that ends with ";":
 *
 *     exec NAME [VARIABLE=VALUE...] PROGRAM [ARGUMENT...] ;   started with posix_spawn (in PWD, if
 * given), output read, waited for keeper NAME SOCKET confined|unchecked ARGS ;            a spawn
 * with those JSON arguments, and a wait
 *
 * Prints `NAME KNOWN GONE START` for each process, both in nanoseconds from its start. KNOWN: its
 * exit status and all of its output are here (of a keeper: the answer to the wait). GONE: nothing
 * of it is left. For `exec` that is when there is no child any more: orphans come to this program.
 * Of a keeper it is seen from outside, by descriptors of the keeper's children, which tell when one
 * is reaped; 0 if it was not seen. START is what the record says, "-" for exec. The first processes
 * of each party warm it up and are not printed.
 *
 * Each must exit with 0 without output, and with `confined` the record must say that the sandbox is
 * enforced. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"
#include "children.h"

enum { PARTIES_MAX = 16, ENV_MAX = 256, WARM_UP = 3 };

/* How long it may take until nothing of a process is left. */
#define GONE_LIMIT_MS 1000

struct sample {
	uint64_t known, gone;
	char start[16];
};

struct party {
	const char *name;
	char **argv; /* exec; NULL: a keeper */
	char *envp[ENV_MAX];
	const char *cwd; /* NULL: ours */
	struct coop *coop;
	const char *args;
	bool confined;
	struct sample *samples;
};

static void rest(uint64_t ns)
{
	struct timespec time = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};

	if (ns)
		(void)nanosleep(&time, NULL);
}

/* Nothing may come, and the end of it must. */
static void expect_end(const char *name, int fd)
{
	char text[256];
	ssize_t n;

	while ((n = read(fd, text, sizeof text - 1)) < 0 && errno == EINTR)
		;
	if (n < 0)
		bench_fail_errno("read");
	text[n] = 0;
	if (n)
		bench_fail(name, text);
	(void)close(fd);
}

static pid_t start_captured(const struct party *party, int ret_fds[2])
{
	posix_spawn_file_actions_t actions;
	int out[2], err[2];
	pid_t pid;

	if (pipe2(out, O_CLOEXEC) < 0 || pipe2(err, O_CLOEXEC) < 0)
		bench_fail_errno("pipe2");
	if (posix_spawn_file_actions_init(&actions) ||
	    posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO) ||
	    posix_spawn_file_actions_adddup2(&actions, err[1], STDERR_FILENO))
		bench_fail("posix_spawn_file_actions", NULL);
	if (party->cwd && posix_spawn_file_actions_addchdir_np(&actions, party->cwd))
		bench_fail("posix_spawn_file_actions", party->cwd);
	if (posix_spawn(&pid, party->argv[0], &actions, NULL, party->argv, party->envp))
		bench_fail("posix_spawn", party->argv[0]);
	(void)posix_spawn_file_actions_destroy(&actions);
	(void)close(out[1]);
	(void)close(err[1]);
	ret_fds[0] = out[0];
	ret_fds[1] = err[0];
	return pid;
}

static void run_exec(const struct party *party, struct sample *ret)
{
	uint64_t began = bench_now();
	int fds[2], status;
	pid_t pid = start_captured(party, fds);

	expect_end(party->name, fds[0]);
	expect_end(party->name, fds[1]);
	if (waitpid(pid, &status, 0) != pid || status)
		bench_fail("did not exit with 0", party->name);
	ret->known = bench_now() - began;
	while (waitpid(-1, NULL, __WALL) > 0)
		;
	if (errno != ECHILD)
		bench_fail_errno("waitpid");
	ret->gone = bench_now() - began;
	(void)snprintf(ret->start, sizeof ret->start, "-");
}

static struct coop_reply *ask(const struct party *party, const char *op, const char *args)
{
	struct coop_reply *reply;
	struct coop_error error;

	if (coop_call(party->coop, op, args, NULL, 0, &reply, &error) < 0)
		bench_fail(op, error.message);
	return reply;
}

static void copy_start(const char *json, struct sample *ret)
{
	static const char key[] = "\"start\":\"";
	const char *at = strstr(json, key);

	if (!at)
		bench_fail("no start in the answer", json);
	(void)snprintf(ret->start, sizeof ret->start, "%.*s",
		       (int)strcspn(at + sizeof key - 1, "\""), at + sizeof key - 1);
}

/* Descriptors of processes; one of them is about to be gone. */
struct watch {
	size_t count;
	struct pollfd fds[CHILDREN_MAX];
};

static void watch_add(struct watch *watch, int pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	/* Only what is reaped is of interest, and that is always told. One that is gone by now is
	 * not told of. */
	if (fd >= 0)
		watch->fds[watch->count++] = (struct pollfd){.fd = fd};
}

static void watch_end(struct watch *watch)
{
	while (watch->count)
		(void)close(watch->fds[--watch->count].fd);
}

/* A launched process is a new child of the keeper; a pooled one was among those it had. */
static void watch_new(struct watch *watch, const struct children *before,
		      const struct children *now)
{
	for (size_t i = 0; i < now->count; i++) {
		struct children one = {.count = 1, .pids = {now->pids[i]}};
		if (!children_common(before, &one))
			watch_add(watch, now->pids[i]);
	}
}

static uint64_t wait_gone(struct watch *watch, uint64_t began)
{
	int n = poll(watch->fds, watch->count, GONE_LIMIT_MS);

	return n > 0 ? bench_now() - began : 0;
}

static void run_keeper(const struct party *party, struct sample *ret)
{
	static struct children before, now;
	static struct watch watch;
	char id[COOP_ID_SIZE], args[COOP_ID_SIZE + 16];
	int keeper = coop_keeper_pid(party->coop);

	children_read(keeper, &before);
	for (size_t i = 0; i < before.count; i++)
		watch_add(&watch, before.pids[i]);
	uint64_t began = bench_now();
	struct coop_reply *spawned = ask(party, "spawn", party->args);
	bench_id(coop_reply_json(spawned), id);
	/* One look while the program runs: the keeper could start more later. */
	children_read(keeper, &now);
	watch_new(&watch, &before, &now);
	(void)snprintf(args, sizeof args, "{\"id\":\"%s\"}", id);
	struct coop_reply *ended = ask(party, "wait", args);
	ret->known = bench_now() - began;
	ret->gone = wait_gone(&watch, began);
	copy_start(coop_reply_json(ended), ret);
	watch_end(&watch);
	bench_check_end(coop_reply_json(ended));
	if (party->confined)
		bench_check_confined(coop_reply_json(ended));
	coop_reply_free(ended);
	coop_reply_free(spawned);
}

static void set_exec(struct party *party, char **words)
{
	size_t count = 0;

	/* Ahead of what is inherited: the first of a name is the one that is found. */
	for (; *words && strchr(*words, '=') && count < ENV_MAX / 2; words++) {
		party->envp[count++] = *words;
		if (!strncmp(*words, "PWD=", 4))
			party->cwd = *words + 4;
	}
	for (char **variable = environ; *variable && count < ENV_MAX - 1; variable++)
		party->envp[count++] = *variable;
	if (!*words)
		bench_fail("no program", party->name);
	party->argv = words;
}

static void set_keeper(struct party *party, char **words, int count)
{
	if (count != 3)
		bench_fail("usage: keeper NAME SOCKET confined|unchecked ARGS ;", NULL);
	struct coop_options options = {.socket = words[0], .no_start = true};
	struct coop_error error;

	if (coop_open(&options, &party->coop, &error) < 0)
		bench_fail(words[0], error.message);
	party->confined = !strcmp(words[1], "confined");
	party->args = words[2];
}

/* One group of words; gives what comes behind it. */
static char **set_party(struct party *party, char **words, size_t samples)
{
	int count = 0;

	while (words[count] && strcmp(words[count], ";") != 0)
		count++;
	if (count < 3 || !words[count])
		bench_fail("not a party", words[0]);
	words[count] = NULL;
	party->name = words[1];
	if (!strcmp(words[0], "exec"))
		set_exec(party, words + 2);
	else
		set_keeper(party, words + 2, count - 2);
	party->samples = calloc(samples, sizeof *party->samples);
	if (!party->samples)
		bench_fail_errno("calloc");
	return words + count + 1;
}

static void run(struct party *parties, size_t count, size_t turns, uint64_t pause)
{
	for (size_t turn = 0; turn < turns; turn++) {
		for (struct party *party = parties; party < parties + count; party++) {
			rest(pause);
			if (party->argv)
				run_exec(party, &party->samples[turn]);
			else
				run_keeper(party, &party->samples[turn]);
		}
	}
}

static void print(const struct party *party, size_t turns)
{
	for (size_t i = WARM_UP; i < turns; i++)
		printf("%s %" PRIu64 " %" PRIu64 " %s\n", party->name, party->samples[i].known,
		       party->samples[i].gone, party->samples[i].start);
}

int main(int argc, char **argv)
{
	static struct party parties[PARTIES_MAX];
	size_t count = 0;

	if (argc < 4)
		bench_fail("usage: race COUNT PAUSE_US PARTY...", NULL);
	size_t turns = bench_number(argv[1]) + WARM_UP;
	uint64_t pause = strtoull(argv[2], NULL, 10) * 1000;
	for (char **words = argv + 3; *words; count++) {
		if (count == PARTIES_MAX)
			bench_fail("too many parties", NULL);
		words = set_party(&parties[count], words, turns);
	}
	/* Sleep as long as is asked for, and be the one to whom orphans come. */
	if (prctl(PR_SET_TIMERSLACK, 1ul) < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1ul) < 0)
		bench_fail_errno("prctl");
	run(parties, count, turns, pause);
	for (size_t i = 0; i < count; i++) {
		print(&parties[i], turns);
		coop_close(parties[i].coop);
		free(parties[i].samples);
	}
	return 0;
}
