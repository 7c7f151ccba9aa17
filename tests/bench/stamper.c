/* Waits for a few milliseconds, so that whoever waits for its end surely does, puts the time into
 * the shared file and exits.
 *
 *     stamper FILE */
#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

int main(int argc, char **argv)
{
	struct timespec pause = {.tv_nsec = 3000000};

	if (argc != 2)
		bench_fail("usage: stamper FILE", NULL);
	int fd = open(argv[1], O_RDWR | O_CLOEXEC);
	volatile uint64_t *stamp =
		mmap(NULL, sizeof *stamp, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (stamp == MAP_FAILED)
		bench_fail_errno("mmap");
	*stamp = 0; /* the page is there when it matters */
	(void)nanosleep(&pause, NULL);
	*stamp = bench_now();
	_exit(0);
}
