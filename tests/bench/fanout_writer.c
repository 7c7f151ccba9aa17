/* The process whose output is sent to all: COUNT writes of SIZE bytes to stdout, as fast as they
 * are allowed to be.
 *
 *     fanout_writer SIZE COUNT UNIT FIFO apart|together
 *
 * Each byte that comes through the FIFO allows UNIT bytes more; nothing is written before the
 * first. `apart` marks the pipe so that the reader gets each write by itself, as from a process
 * that writes now and then. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "fanout.h"

enum { SIZE_MAX_BYTES = 65536 };

static size_t allowance(int fd, size_t unit)
{
	char credits[4096];
	ssize_t n;

	do
		n = read(fd, credits, sizeof credits);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		bench_fail("nobody reads any more", NULL);
	return (size_t)n * unit;
}

static void write_all(const uint8_t *bytes, size_t size)
{
	while (size) {
		ssize_t n = write(STDOUT_FILENO, bytes, size);
		if (n < 0)
			bench_fail_errno("write");
		bytes += n;
		size -= (size_t)n;
	}
}

int main(int argc, char **argv)
{
	static uint8_t bytes[FANOUT_PERIOD + SIZE_MAX_BYTES];

	if (argc != 6)
		bench_fail("usage: fanout_writer SIZE COUNT UNIT FIFO apart|together", NULL);
	size_t size = bench_number(argv[1]), total = size * bench_number(argv[2]);
	size_t unit = bench_number(argv[3]), allowed = 0;
	if (size > SIZE_MAX_BYTES || unit < size)
		bench_fail("SIZE is above 64 KiB or UNIT", NULL);
	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = fanout_byte(i);
	if (!strcmp(argv[5], "apart") && fcntl(STDOUT_FILENO, F_SETFL, O_DIRECT) < 0)
		bench_fail_errno("O_DIRECT");
	int fd = open(argv[4], O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		bench_fail_errno(argv[4]);
	for (size_t written = 0; written < total; written += size) {
		while (allowed < written + size && allowed < total)
			allowed += allowance(fd, unit);
		write_all(bytes + written % FANOUT_PERIOD, size);
	}
	return 0;
}
