/* Planted slow-downs: loaded into a keeper (LD_PRELOAD), this does what COOP_PLANT says. A
 * benchmark that does not notice is not to be trusted.
 *
 *     pipe  refuses to enlarge pipes, as the kernel does to a user who has too many large ones
 *     fork  forks before each request to the launcher and each use of a slot, as a keeper would
 * that did not leave that to them: the larger the keeper, the slower */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* With 64-bit file offsets, which the build asks for, this is fcntl's name in the library. */
int fcntl64(int fd, int command, ...);

static bool planted(const char *what)
{
	const char *name = getenv("COOP_PLANT");

	return name && !strcmp(name, what);
}

int fcntl64(int fd, int command, ...)
{
	typedef int real_fcntl(int, int, ...);
	va_list list;

	if (command == F_SETPIPE_SZ && planted("pipe")) {
		errno = EPERM;
		return -1;
	}
	va_start(list, command);
	void *argument = va_arg(list, void *);
	va_end(list);
	real_fcntl *real = (real_fcntl *)dlsym(RTLD_NEXT, "fcntl64");
	return real(fd, command, argument);
}

/* Without a signal at its end: the keeper, which waits for any child, does not see this one. */
static void fork_once(void)
{
	long pid = syscall(SYS_clone, 0, 0, 0, 0, 0);

	if (!pid)
		(void)syscall(SYS_exit_group, 0);
	if (pid > 0)
		(void)waitpid((pid_t)pid, NULL, (int)__WCLONE);
}

/* What brings descriptors along is a start. */
ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	if (message->msg_controllen && planted("fork"))
		fork_once();
	return syscall(SYS_sendmsg, fd, message, flags);
}
