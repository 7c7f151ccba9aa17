#include "sandbox/namespaces.h"

#include <errno.h>
#include <net/if.h>
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
