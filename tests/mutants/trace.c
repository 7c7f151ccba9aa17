/*
 * Linked into every program of the traced build: notes which basic blocks run, in a file that all
 * processes of one program share. What is stored there survives SIGKILL, and is seen from children
 * that share no heap or may make no system calls any
 * more. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define TRACE_SIZE ((size_t)16 << 20)

extern const char __ehdr_start __attribute__((visibility("hidden")));
static unsigned char *blocks;

/* The compiler calls it at the beginning of each basic block. */
__attribute__((visibility("hidden"))) void __sanitizer_cov_trace_pc(void)
{
	size_t at = (size_t)((const char *)__builtin_return_address(0) - &__ehdr_start);

	if (blocks && at < TRACE_SIZE)
		blocks[at] = 1;
}

__attribute__((constructor)) static void begin(void)
{
	char program[PATH_MAX], path[2 * PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
	const char *name;
	void *mapped;
	int fd;

	if (length <= 0)
		return;
	program[length] = '\0';
	name = strrchr(program, '/') ? strrchr(program, '/') + 1 : program;
	for (char *byte = program; *byte; byte++) {
		if (*byte == ' ' || *byte == ':')
			*byte = '_';
	}
	(void)snprintf(path, sizeof path, "%s/%s", TRACE_FOLDER, name);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	if (fd < 0)
		return;
	/* Keepers of other users write there, too. */
	(void)fchmod(fd, 0666);
	if (ftruncate(fd, (off_t)TRACE_SIZE) == 0) {
		mapped = mmap(NULL, TRACE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (mapped != MAP_FAILED)
			blocks = mapped;
	}
	(void)close(fd);
}
