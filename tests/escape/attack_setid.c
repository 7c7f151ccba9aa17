/* Who the process is, and whether it can become or make somebody else: ids, capabilities, set-id
 * files. */
#include "attack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

static struct attack_outcome become_root(const struct attack_context *context)
{
	(void)context;
	return attack_worse(attack_from(setresuid(0, 0, 0)), attack_from(setuid(0)));
}

static struct attack_outcome become_roots_group(const struct attack_context *context)
{
	(void)context;
	return attack_from(setresgid(0, 0, 0));
}

/* The copy has the set-id bits of its owner: does it run as somebody else? */
static struct attack_outcome run_setuid_copy(const struct attack_context *context)
{
	int ends[2], status = 0;
	char text[64] = "", own[64];
	const char *copy = attack_path(context, "WORKSPACE", "/setuid-copy");
	(void)snprintf(own, sizeof(own), "%u %u\n", geteuid(), getegid());
	if (pipe2(ends, O_CLOEXEC) != 0)
		return attack_refused(errno);
	pid_t child = fork();
	if (child == 0) {
		(void)dup2(ends[1], STDOUT_FILENO);
		(void)execl(copy, "setuid-copy", "whoami", (char *)NULL);
		_exit(errno);
	}
	(void)close(ends[1]);
	ssize_t got = read(ends[0], text, sizeof(text) - 1);
	(void)close(ends[0]);
	(void)waitpid(child, &status, 0);
	if (got <= 0)
		return attack_refused(WEXITSTATUS(status));
	return strcmp(text, own) == 0 ? attack_looked("unchanged") : attack_succeeded();
}

/* All ways to give a file or folder the bits. What must be is EPERM for each; the first that is
 * otherwise is told. */
static struct attack_outcome change_modes(const struct attack_context *context)
{
	static const mode_t modes[] = {04755, 02755, 06755, 04600};
	const char *paths[2] = {attack_path(context, "WORKSPACE", "/setid-file"),
				attack_path(context, "WORKSPACE", "/setid-folder")};
	int fd = open(paths[0], O_CREAT | O_RDWR | O_CLOEXEC, 0755);
	if (fd < 0)
		return attack_refused(errno);
	(void)close(fd);
	(void)mkdir(paths[1], 0755);
	for (size_t p = 0; p < 2; p++) {
		fd = open(paths[p], O_RDONLY | O_CLOEXEC);
		for (size_t m = 0; m < sizeof(modes) / sizeof(modes[0]); m++) {
			struct attack_outcome tries[] = {
				attack_from(chmod(paths[p], modes[m])),
				attack_from(fchmod(fd, modes[m])),
				attack_from(syscall(SYS_fchmodat, AT_FDCWD, paths[p], modes[m])),
				attack_from(
					syscall(SYS_fchmodat2, AT_FDCWD, paths[p], modes[m], 0)),
				/* The kernel looks at the lower half only. */
				attack_from(syscall(SYS_fchmod, fd,
						    (uint64_t)modes[m] | UINT64_C(0xff00000000))),
			};
			for (size_t t = 0; t < sizeof(tries) / sizeof(tries[0]); t++) {
				bool old_kernel = t == 3 && tries[t].error == ENOSYS;
				if (tries[t].kind == ATTACK_ERRNO &&
				    (tries[t].error == EPERM || old_kernel))
					continue;
				(void)snprintf(tries[t].value, sizeof(tries[t].value),
					       "try %zu, mode %o, %s", t, modes[m], paths[p]);
				(void)close(fd);
				return tries[t];
			}
		}
		(void)close(fd);
	}
	return attack_refused(EPERM);
}

static struct attack_outcome create_modes(const struct attack_context *context)
{
	static const mode_t modes[] = {04755, 02755};
	const char *file = attack_path(context, "WORKSPACE", "/setid-made");
	const char *folder = attack_path(context, "WORKSPACE", "/setid-made-folder");
	const char *workspace = attack_param(context, "WORKSPACE");
	for (size_t m = 0; m < 2; m++) {
		mode_t mode = modes[m];
		struct attack_outcome tries[] = {
			attack_from(open(file, O_CREAT | O_WRONLY | O_CLOEXEC, mode)),
			attack_from(openat(AT_FDCWD, file, O_CREAT | O_WRONLY | O_CLOEXEC, mode)),
			attack_from(creat(file, mode)),
			attack_from(open(workspace, O_TMPFILE | O_RDWR | O_CLOEXEC, mode)),
			attack_from(mkdir(folder, mode)),
			attack_from(mkdirat(AT_FDCWD, folder, mode)),
			attack_from(mknod(file, S_IFREG | mode, 0)),
#ifdef SYS_open
			attack_from(syscall(SYS_open, file, O_CREAT | O_WRONLY, mode)),
#endif
		};
		for (size_t t = 0; t < sizeof(tries) / sizeof(tries[0]); t++) {
			if (tries[t].kind == ATTACK_ERRNO && tries[t].error == EPERM)
				continue;
			(void)snprintf(tries[t].value, sizeof(tries[t].value), "try %zu, mode %o",
				       t, mode);
			return tries[t];
		}
	}
	return attack_refused(EPERM);
}

struct how {
	uint64_t flags, mode, resolve;
};

static struct attack_outcome create_by_openat2(const struct attack_context *context)
{
	struct how file = {.flags = O_CREAT | O_WRONLY | O_CLOEXEC, .mode = 04755};
	struct how nameless = {.flags = O_TMPFILE | O_RDWR | O_CLOEXEC, .mode = 02755};
	const char *path = attack_path(context, "WORKSPACE", "/setid-openat2");
	struct attack_outcome first =
		attack_from(syscall(SYS_openat2, AT_FDCWD, path, &file, sizeof(file)));
	return attack_worse(first, attack_from(syscall(SYS_openat2, AT_FDCWD,
						       attack_param(context, "WORKSPACE"),
						       &nameless, sizeof(nameless))));
}

/* A folder that is mapped may also be shared by its group. */
static struct attack_outcome folder_by_openat2(const struct attack_context *context)
{
	struct how how = {.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC};
	const char *workspace = attack_param(context, "WORKSPACE");
	return attack_from(syscall(SYS_openat2, AT_FDCWD, workspace, &how, sizeof(how)));
}

static struct attack_outcome outside_identity(const struct attack_context *context)
{
	unsigned long inside = 0, outside = 0, count = 0, id = geteuid();
	struct attack_outcome outcome = attack_looked("not mapped");
	(void)context;
	FILE *file = fopen("/proc/self/uid_map", "re");
	if (!file)
		return attack_refused(errno);
	while (fscanf(file, "%lu %lu %lu", &inside, &outside, &count) == 3) {
		if (id >= inside && id - inside < count)
			outcome = attack_looked(outside + id - inside == 0 ? "root" : "not root");
	}
	(void)fclose(file);
	return outcome;
}

static struct attack_outcome capability_sets(const struct attack_context *context)
{
	static const char *const sets[] = {"CapInh", "CapPrm", "CapEff", "CapAmb"};
	char text[64];
	(void)context;
	for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++) {
		if (!attack_status_line(sets[i], text, sizeof(text)))
			return attack_looked("%s cannot be read", sets[i]);
		if (strspn(text, "0") != strlen(text))
			return attack_looked("%s %s", sets[i], text);
	}
	return attack_looked("none");
}

/* Of itself it gives nothing: what could still be got, were there a way to get it. */
static struct attack_outcome bounding_set(const struct attack_context *context)
{
	char text[64] = "?";
	(void)context;
	(void)attack_status_line("CapBnd", text, sizeof(text));
	return attack_looked("%s", strspn(text, "0") == strlen(text) ? "none" : "some");
}

static struct attack_outcome no_new_privs(const struct attack_context *context)
{
	char text[32] = "?";
	(void)context;
	(void)attack_status_line("NoNewPrivs", text, sizeof(text));
	return attack_looked("%s", text);
}

static struct attack_outcome seccomp_mode(const struct attack_context *context)
{
	char text[32] = "?";
	(void)context;
	(void)attack_status_line("Seccomp", text, sizeof(text));
	return attack_looked("%s", text);
}

static struct attack_outcome groups(const struct attack_context *context)
{
	gid_t found[64];
	(void)context;
	int count = getgroups(64, found);
	for (int i = 0; i < count; i++) {
		if (found[i] == 0)
			return attack_looked("root");
	}
	return attack_looked(getegid() == 0 || getgid() == 0 ? "root" : "not root");
}

const struct attack attack_setid[] = {
	{"S-083", become_root},
	{"S-083.group", become_roots_group},
	{"S-095", run_setuid_copy},
	{"S-129", change_modes},
	{"S-130", create_modes},
	{"S-131", create_by_openat2},
	{"S-131.folder", folder_by_openat2},
	{"S-126", outside_identity},
	{"S-126.groups", groups},
	{"S-127", capability_sets},
	{"S-127.bounding", bounding_set},
	{"S-044", no_new_privs},
	{"S-128", seccomp_mode},
	{0},
};
