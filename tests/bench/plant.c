/* A planted slow-down: loaded into a keeper (LD_PRELOAD), it refuses to enlarge pipes, as the kernel does to a user who has
 * too many large ones. A benchmark that does not notice is not to be trusted. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>

/* With 64-bit file offsets, which the build asks for, this is fcntl's name in the library. */
int fcntl64(int fd, int command, ...);

int fcntl64(int fd, int command, ...)
{
	typedef int real_fcntl(int, int, ...);
	va_list list;

	if (command == F_SETPIPE_SZ) {
		errno = EPERM;
		return -1;
	}
	va_start(list, command);
	void *argument = va_arg(list, void *);
	va_end(list);
	real_fcntl *real = (real_fcntl *)dlsym(RTLD_NEXT, "fcntl64");
	return real(fd, command, argument);
}
