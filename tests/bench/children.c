#include "children.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench.h"

/* A pid has at most 10 digits, and a space behind it. */
#define TEXT_MAX (CHILDREN_MAX * 11)

static size_t read_text(int pid, char text[TEXT_MAX + 1])
{
	char path[64];
	size_t size = 0;
	ssize_t n;

	(void)snprintf(path, sizeof path, "/proc/%d/task/%d/children", pid, pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		bench_fail_errno(path);
	while ((n = read(fd, text + size, TEXT_MAX - size)) > 0)
		size += (size_t)n;
	if (n < 0)
		bench_fail_errno(path);
	(void)close(fd);
	text[size] = 0;
	return size;
}

static int by_number(const void *first, const void *second)
{
	int a = *(const int *)first, b = *(const int *)second;

	return (a > b) - (a < b);
}

void children_read(int pid, struct children *ret)
{
	static char text[TEXT_MAX + 1];
	char *at = text, *end;

	if (read_text(pid, text) == TEXT_MAX)
		bench_fail("too many children", NULL);
	ret->count = 0;
	for (;; at = end) {
		long number = strtol(at, &end, 10);
		if (end == at)
			break;
		if (ret->count == CHILDREN_MAX)
			bench_fail("too many children", NULL);
		ret->pids[ret->count++] = (int)number;
	}
	qsort(ret->pids, ret->count, sizeof *ret->pids, by_number);
}

size_t children_common(const struct children *first, const struct children *second)
{
	size_t common = 0;

	for (size_t i = 0, j = 0; i < first->count && j < second->count;) {
		int a = first->pids[i], b = second->pids[j];
		common += a == b;
		i += a <= b;
		j += b <= a;
	}
	return common;
}
