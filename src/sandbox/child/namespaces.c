#include "sandbox/child/namespaces.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

int coop_namespaces_loopback(void)
{
	struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	int r = ioctl(fd, SIOCSIFFLAGS, &request) < 0 ? -errno : 0;
	(void)close(fd);
	return r;
}

static uint32_t read_count(const char *path)
{
	char text[24] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);

	if (fd >= 0)
		(void)close(fd);
	return n > 0 ? (uint32_t)strtoul(text, NULL, 10) : 0;
}

/* The first user namespace of the host's, which those of a namespace further down cannot exceed
 * whatever they say. */
void coop_namespaces_counts(struct coop_user_counts *ret)
{
	ret->instances = read_count("/proc/sys/fs/inotify/max_user_instances");
	ret->watches = read_count("/proc/sys/fs/inotify/max_user_watches");
}

static void write_count(int proc, const char *path, uint32_t count)
{
	char text[16];
	int fd = openat(proc, path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	(void)snprintf(text, sizeof text, "%u", count);
	(void)!write(fd, text, strlen(text)); /* best effort, as the header says */
	(void)close(fd);
}

void coop_namespaces_bound(int proc, const struct coop_user_counts *counts, bool last)
{
	if (counts->instances)
		write_count(proc, "sys/user/max_inotify_instances", counts->instances);
	if (counts->watches)
		write_count(proc, "sys/user/max_inotify_watches", counts->watches);
	if (last)
		write_count(proc, "sys/user/max_user_namespaces", 0);
}

void coop_namespaces_bound_here(const struct coop_user_counts *counts, bool last)
{
	int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (proc < 0)
		return;
	coop_namespaces_bound(proc, counts, last);
	(void)close(proc);
}
