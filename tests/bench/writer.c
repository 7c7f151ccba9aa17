/* Writes BYTES to stdout in pieces of 64 KiB, which hold a pattern that tells them from anything
 * else.
 *
 *     writer BYTES */
#include <unistd.h>

#include "bench.h"

int main(int argc, char **argv)
{
	static unsigned char piece[65536];

	if (argc != 2)
		bench_fail("usage: writer BYTES", NULL);
	for (size_t i = 0; i < sizeof piece; i++)
		piece[i] = (unsigned char)(i * 31 + (i >> 8));
	for (size_t left = bench_number(argv[1]); left;) {
		ssize_t n = write(STDOUT_FILENO, piece, left < sizeof piece ? left : sizeof piece);
		if (n < 0)
			bench_fail_errno("write");
		left -= (size_t)n;
	}
	return 0;
}
