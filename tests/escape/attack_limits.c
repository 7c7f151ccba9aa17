/* Taking more than is given: space, files, processes, memory, time. Each has a bound of its own, so
 * that a sandbox without the limit does not take the host with it. */
#include "attack.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define FORKS_MAX 2000
#define FILES_MAX 300000

static long number(const struct attack_context *context, const char *name)
{
	return strtol(attack_param(context, name), NULL, 10);
}

static struct attack_outcome with_count(struct attack_outcome outcome, long count)
{
	(void)snprintf(outcome.value, sizeof(outcome.value), "%ld", count);
	return outcome;
}

static struct attack_outcome fill_tmp(const struct attack_context *context)
{
	static char block[1 << 20];
	long most = number(context, "TMP_BYTES_MAX"), done = 0;
	const char *path = "/tmp/coop-attack-fill";
	int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	if (fd < 0)
		return attack_refused(errno);
	struct attack_outcome outcome = attack_succeeded();
	memset(block, 1, sizeof(block));
	while (done < most && outcome.kind == ATTACK_OK) {
		ssize_t put = write(fd, block, sizeof(block));
		outcome = attack_from(put);
		done += put > 0 ? put : 0;
	}
	(void)close(fd);
	(void)unlink(path);
	return with_count(outcome, done);
}

/* Asked for in one piece, so that a bound refuses it at once; twice as much, as a home may have
 * more room than /tmp. */
static struct attack_outcome reserve(const struct attack_context *context, const char *path)
{
	int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	if (fd < 0)
		return attack_refused(errno);
	struct attack_outcome outcome =
		attack_from(fallocate(fd, 0, 0, 2 * number(context, "TMP_BYTES_MAX")));
	(void)close(fd);
	(void)unlink(path);
	return outcome;
}

static struct attack_outcome fill_shared_memory(const struct attack_context *context)
{
	return reserve(context, "/dev/shm/coop-attack-fill");
}

static struct attack_outcome fill_home(const struct attack_context *context)
{
	return reserve(context, attack_path(context, "HOME", "/coop-attack-fill"));
}

/* Links take an inode each and little else. */
static struct attack_outcome fill_inodes(const struct attack_context *context)
{
	long most = number(context, "TMP_FILES_MAX"), done = 0;
	struct attack_outcome outcome = attack_succeeded();
	char name[32];
	if (mkdir("/tmp/coop-attack-many", 0700) != 0 || chdir("/tmp/coop-attack-many") != 0)
		return attack_refused(errno);
	while (done < most && done < FILES_MAX && outcome.kind == ATTACK_OK) {
		(void)snprintf(name, sizeof(name), "%ld", done);
		outcome = attack_from(symlink("x", name));
		done += outcome.kind == ATTACK_OK;
	}
	for (long i = 0; i < done; i++) {
		(void)snprintf(name, sizeof(name), "%ld", i);
		(void)unlink(name);
	}
	(void)rmdir("/tmp/coop-attack-many");
	return with_count(outcome, done);
}

static struct attack_outcome fork_many(const struct attack_context *context)
{
	pid_t children[FORKS_MAX];
	long count = 0;
	struct attack_outcome outcome = attack_succeeded();
	(void)context;
	while (count < FORKS_MAX && outcome.kind == ATTACK_OK) {
		pid_t child = fork();
		if (child == 0) {
			(void)pause();
			_exit(0);
		}
		outcome = attack_from(child);
		if (child > 0)
			children[count++] = child;
	}
	for (long i = 0; i < count; i++) {
		(void)kill(children[i], SIGKILL);
		(void)waitpid(children[i], NULL, 0);
	}
	return with_count(outcome, count);
}

static struct attack_outcome touch_memory(const struct attack_context *context)
{
	size_t size = (size_t)number(context, "MEMORY_MAX");
	char *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (bytes == MAP_FAILED)
		return attack_refused(errno);
	for (size_t i = 0; i < size; i += 4096)
		bytes[i] = 1;
	return attack_succeeded();
}

static struct attack_outcome open_many(const struct attack_context *context)
{
	long count = 0;
	(void)context;
	while (count < 100000) {
		if (open("/dev/null", O_RDONLY | O_CLOEXEC) < 0)
			return with_count(attack_refused(errno), count);
		count++;
	}
	return with_count(attack_succeeded(), count);
}

static struct attack_outcome write_large_file(const struct attack_context *context)
{
	static char block[1 << 20];
	long most = number(context, "FILE_BYTES_MAX"), done = 0;
	int fd = open(attack_path(context, "WORKSPACE", "/large"), O_CREAT | O_WRONLY | O_CLOEXEC,
		      0600);
	if (fd < 0)
		return attack_refused(errno);
	(void)signal(SIGXFSZ, SIG_IGN);
	struct attack_outcome outcome = attack_succeeded();
	while (done < most && outcome.kind == ATTACK_OK) {
		ssize_t put = write(fd, block, sizeof(block));
		outcome = attack_from(put);
		done += put > 0 ? put : 0;
	}
	(void)close(fd);
	(void)unlink(attack_path(context, "WORKSPACE", "/large"));
	return with_count(outcome, done);
}

/* Until the limit of processor time ends it; a child's alarm if nothing does. */
static struct attack_outcome spin(const struct attack_context *context)
{
	(void)context;
	(void)alarm(30);
	for (volatile unsigned long i = 0; i + 1; i = i + 1)
		;
	return attack_succeeded();
}

const struct attack attack_limits[] = {
	{"S-079", fill_tmp},
	{"S-079.shm", fill_shared_memory},
	{"S-079.home", fill_home},
	{"S-092", fill_inodes},
	{"S-090", fork_many, .alone = true},
	{"S-091", touch_memory, .alone = true},
	{"open-files", open_many, .alone = true},
	{"file-size", write_large_file, .alone = true},
	{"cpu-time", spin, .alone = true},
	{0},
};
