#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The one piece of global state in the program: allocation has no context to carry it. */
static struct {
	unsigned long fail_at, then_every;     /* written once, before there are threads */
	_Atomic unsigned long count, failures; /* the helper thread allocates, too */
} fault;

void coop_mem_init(void)
{
	const char *spec = getenv("COOP_FAULT");

	if (!spec || sscanf(spec, "alloc:%lu:%lu", &fault.fail_at, &fault.then_every) < 1)
		fault.fail_at = 0;
	fault.count = 0;
}

/* One block that is given back to malloc when somebody who may needs it: what was freed is found
 * again. */
static struct {
	void *block; /* NULL: in use */
	size_t size, left;
} reserve;

/* The helper thread's allocations fail where others do. */
static _Thread_local bool relief;

void coop_mem_reserve(size_t size)
{
	reserve.block = malloc(size);
	reserve.size = reserve.left = size;
}

static void refill(void)
{
	if (!reserve.size || reserve.block)
		return;
	reserve.block = malloc(reserve.size);
	if (reserve.block)
		reserve.left = reserve.size;
}

bool coop_mem_relief(bool on)
{
	bool before = relief;

	relief = on;
	if (!on && before)
		refill();
	return before;
}

bool coop_mem_short(void)
{
	return relief && !reserve.block;
}

/* Whether a failed allocation may be tried again. */
static bool may_retry(size_t size)
{
	if (!relief || size > reserve.left)
		return false;
	reserve.left -= size;
	free(reserve.block);
	reserve.block = NULL;
	return true;
}

static int must_fail(void)
{
	if (!fault.fail_at)
		return 0;
	unsigned long count = ++fault.count;
	if (count < fault.fail_at)
		return 0;
	if (count == fault.fail_at)
		return 1;
	return fault.then_every && (count - fault.fail_at) % fault.then_every == 0;
}

unsigned long coop_mem_failures(void)
{
	return fault.failures;
}

static void *counted(void *memory)
{
	if (!memory)
		fault.failures++;
	return memory;
}

void *coop_mem_alloc(size_t size)
{
	void *memory = must_fail() ? NULL : malloc(size ? size : 1);

	if (!memory && may_retry(size))
		memory = malloc(size ? size : 1);
	return counted(memory);
}

void *coop_mem_zalloc(size_t size)
{
	void *memory = must_fail() ? NULL : calloc(1, size ? size : 1);

	if (!memory && may_retry(size))
		memory = calloc(1, size ? size : 1);
	return counted(memory);
}

void *coop_mem_realloc(void *old, size_t size)
{
	void *memory = must_fail() ? NULL : realloc(old, size ? size : 1);

	if (!memory && may_retry(size))
		memory = realloc(old, size ? size : 1);
	return counted(memory);
}

char *coop_mem_strdup(const char *text)
{
	size_t size = strlen(text) + 1;
	char *copy = coop_mem_alloc(size);

	return copy ? memcpy(copy, text, size) : NULL;
}
