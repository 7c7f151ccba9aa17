/* Trees that do not want to end. Each says "ready" and stays, unless it is the main process's part
 * to leave. */
#include "attack.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const int polite[] = {SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGPIPE};

static _Noreturn void stay(void)
{
	for (size_t i = 0; i < sizeof(polite) / sizeof(polite[0]); i++)
		(void)signal(polite[i], SIG_IGN);
	(void)alarm(0);
	for (;;)
		(void)pause();
}

/* Two forks and a session of its own: nobody's child. */
static void daemonize(bool stopped)
{
	pid_t child = fork();
	if (child == 0) {
		(void)setsid();
		if (fork() == 0) {
			if (stopped)
				(void)raise(SIGSTOP);
			stay();
		}
		_exit(0);
	}
	(void)waitpid(child, NULL, 0);
}

/* Words COUNT: half of them in sessions of their own, all deaf. With this process there are one
 * more. */
static struct attack_outcome hostile_tree(const struct attack_context *context)
{
	long count = context->arg_count > 0 ? strtol(context->args[0], NULL, 10) : 40;
	for (long i = 0; i < count; i++) {
		if (i % 2 == 0) {
			daemonize(false);
			continue;
		}
		pid_t child = fork();
		if (child == 0)
			stay();
		if (child < 0)
			return attack_refused(errno);
	}
	dprintf(STDOUT_FILENO, "ready\n");
	stay();
}

/* Words COUNT: they get away, the main process ends well. */
static struct attack_outcome leave_behind(const struct attack_context *context)
{
	long count = context->arg_count > 0 ? strtol(context->args[0], NULL, 10) : 1;
	for (long i = 0; i < count; i++)
		daemonize(false);
	return attack_succeeded();
}

/* A child that is its parent's sibling; under the first process of a namespace it is that one's. */
static struct attack_outcome leave_by_clone_parent(const struct attack_context *context)
{
	(void)context;
	long child = syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0);
	if (child == 0) {
		(void)setsid();
		stay();
	}
	return attack_from(child);
}

/* Everybody stands, this process too: who waits for the tree to move waits for ever. */
static struct attack_outcome stop_all(const struct attack_context *context)
{
	(void)context;
	for (int i = 0; i < 3; i++)
		daemonize(true);
	dprintf(STDOUT_FILENO, "ready\n");
	(void)raise(SIGSTOP);
	stay();
}

const struct attack attack_trees[] = {
	{"tree", hostile_tree, .alone = true},
	{"S-093", leave_behind, .alone = true},
	{"S-103", leave_by_clone_parent, .alone = true},
	{"S-104", stop_all, .alone = true},
	{0},
};
