/* Owned locals: freed or closed when they leave scope, unless handed over with COOP_TAKE_PTR /
 * COOP_TAKE_FD. */
#ifndef COOP_BASE_CLEANUP_H
#define COOP_BASE_CLEANUP_H

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static inline void coop_cleanup_free(void *pointer)
{
	free(*(void **)pointer);
}

/* Keeps errno, so that a function may return -errno after its owned fds went. */
static inline void coop_cleanup_fd(const int *fd)
{
	if (*fd >= 0) {
		int saved = errno;
		(void)close(*fd);
		errno = saved;
	}
}

#define COOP_AUTO_FREE __attribute__((cleanup(coop_cleanup_free)))
#define COOP_AUTO_FD __attribute__((cleanup(coop_cleanup_fd)))

#define COOP_TAKE_PTR(p)                    \
	({                                  \
		__typeof__(p) taken_ = (p); \
		(p) = NULL;                 \
		taken_;                     \
	})
#define COOP_TAKE_FD(fd)           \
	({                         \
		int taken_ = (fd); \
		(fd) = -1;         \
		taken_;            \
	})

#endif
