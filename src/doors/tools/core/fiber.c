#include "doors/tools/core/fiber.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/mem.h"

#if defined(__SANITIZE_ADDRESS__)
#define FIBER_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FIBER_ASAN 1
#endif
#endif
#ifdef FIBER_ASAN
#include <dlfcn.h>
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

/* Stacks are used again, as mapping one costs more than most calls. */
#define SPARE_MAX 8

struct coop_fiber {
	ucontext_t own, back;
	void (*run)(void *context);
	void *context;
	char *map; /* the guard page, then the stack */
	bool over;
	/* AddressSanitizer must be told of every change of stack. */
	void *fake, *back_fake;
	const void *back_stack;
	size_t back_size;
};

static char *spare[SPARE_MAX];
static unsigned spare_count;

static size_t guard_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static char *take_stack(void)
{
	if (spare_count)
		return spare[--spare_count];
	size_t guard = guard_size();
	void *map = mmap(NULL, guard + COOP_FIBER_STACK, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
	if (map == MAP_FAILED)
		return NULL;
	if (mprotect(map, guard, PROT_NONE) < 0) {
		(void)munmap(map, guard + COOP_FIBER_STACK);
		return NULL;
	}
	return map;
}

static void give_stack(char *map)
{
#ifdef FIBER_ASAN
	/* What the last one left there is not this one's affair. */
	__asan_unpoison_memory_region(map + guard_size(), COOP_FIBER_STACK);
#endif
	if (spare_count < SPARE_MAX)
		spare[spare_count++] = map;
	else
		(void)munmap(map, guard_size() + COOP_FIBER_STACK);
}

/* The sanitizer's own swapcontext() warns that it does not know what goes on; here it is told. */
static void swap(ucontext_t *from, const ucontext_t *to)
{
#ifdef FIBER_ASAN
	static int (*real)(ucontext_t *, const ucontext_t *);

	if (!real)
		*(void **)(&real) = dlsym(RTLD_NEXT, "swapcontext");
	(void)real(from, to);
#else
	(void)swapcontext(from, to);
#endif
}

static void leave(struct coop_fiber *fiber, bool for_good)
{
#ifdef FIBER_ASAN
	__sanitizer_start_switch_fiber(for_good ? NULL : &fiber->fake, fiber->back_stack,
				       fiber->back_size);
#endif
	(void)for_good;
	swap(&fiber->own, &fiber->back);
}

static void arrive(struct coop_fiber *fiber)
{
	(void)fiber;
#ifdef FIBER_ASAN
	__sanitizer_finish_switch_fiber(fiber->fake, &fiber->back_stack, &fiber->back_size);
#endif
}

/* makecontext() passes integers only. */
static void enter(unsigned high, unsigned low)
{
	struct coop_fiber *fiber =
		(struct coop_fiber *)(((uintptr_t)high << 32) | (uintptr_t)low); // NOLINT

	arrive(fiber);
	fiber->run(fiber->context);
	fiber->over = true;
	leave(fiber, true);
}

struct coop_fiber *coop_fiber_new(void (*run)(void *context), void *context)
{
	struct coop_fiber *fiber = coop_mem_zalloc(sizeof *fiber);

	if (!fiber || !(fiber->map = take_stack()) || getcontext(&fiber->own) < 0) {
		coop_fiber_free(fiber);
		return NULL;
	}
	fiber->run = run;
	fiber->context = context;
	fiber->own.uc_stack.ss_sp = fiber->map + guard_size();
	fiber->own.uc_stack.ss_size = COOP_FIBER_STACK;
	uintptr_t self = (uintptr_t)fiber;
	makecontext(&fiber->own, (void (*)(void))enter, 2, (unsigned)(self >> 32),
		    (unsigned)(self & UINT32_MAX));
	return fiber;
}

bool coop_fiber_resume(struct coop_fiber *fiber)
{
#ifdef FIBER_ASAN
	__sanitizer_start_switch_fiber(&fiber->back_fake, fiber->own.uc_stack.ss_sp,
				       COOP_FIBER_STACK);
#endif
	swap(&fiber->back, &fiber->own);
#ifdef FIBER_ASAN
	__sanitizer_finish_switch_fiber(fiber->back_fake, NULL, NULL);
#endif
	return fiber->over;
}

void coop_fiber_suspend(struct coop_fiber *fiber)
{
	leave(fiber, false);
	arrive(fiber);
}

void coop_fiber_free(struct coop_fiber *fiber)
{
	if (!fiber)
		return;
	if (fiber->map)
		give_stack(fiber->map);
	free(fiber);
}

void coop_fiber_trim(void)
{
	while (spare_count)
		(void)munmap(spare[--spare_count], guard_size() + COOP_FIBER_STACK);
}
