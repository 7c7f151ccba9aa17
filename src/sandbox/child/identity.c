#include "sandbox/child/identity.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	ssize_t n = write(fd, text, strlen(text));
	int r = n < 0 ? -errno : 0;
	(void)close(fd);
	return r;
}

int coop_identity_map(uint32_t uid, uint32_t outer_uid, uint32_t gid, uint32_t outer_gid)
{
	char line[64];
	/* Without this the kernel refuses a map of groups by somebody without rights outside. */
	int r = write_file("/proc/self/setgroups", "deny");

	(void)snprintf(line, sizeof line, "%u %u 1", uid, outer_uid);
	if (r == 0)
		r = write_file("/proc/self/uid_map", line);
	(void)snprintf(line, sizeof line, "%u %u 1", gid, outer_gid);
	return r < 0 ? r : write_file("/proc/self/gid_map", line);
}
