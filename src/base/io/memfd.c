#include "base/io/memfd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"

int coop_memfd_sealed(const char *name, const void *bytes, size_t size)
{
	COOP_AUTO_FD int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	const uint8_t *from = bytes;

	for (size_t done = 0; fd >= 0 && done < size;) {
		ssize_t n = write(fd, from + done, size - done);
		if (n < 0 && errno != EINTR)
			return -errno;
		done += n > 0 ? (size_t)n : 0;
	}
	if (fd < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
		return -errno;
	return COOP_TAKE_FD(fd);
}
