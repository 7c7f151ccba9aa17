/* System calls that leave errno alone. A command's process runs on the memory of the first process,
 * and errno with it, while that one goes on with calls of its own: whatever both do at the same
 * time is called from here. */
#ifndef COOP_SANDBOX_CALL_H
#define COOP_SANDBOX_CALL_H

#include <sys/syscall.h>

/* On another machine nobody compiles this before it is written down how it makes a system call. */
#if defined __x86_64__
/* What the kernel returns: a result, or -errno. */
static inline long coop_raw_call(long number, long a, long b, long c, long d, long e)
{
	register long fourth __asm__("r10") = d;
	register long fifth __asm__("r8") = e;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "0"(number), "D"(a), "S"(b), "d"(c), "r"(fourth), "r"(fifth)
			 : "rcx", "r11", "memory");
	return result;
}
#elif defined __aarch64__
static inline long coop_raw_call(long number, long a, long b, long c, long d, long e)
{
	register long which __asm__("x8") = number;
	register long result __asm__("x0") = a;
	register long second __asm__("x1") = b;
	register long third __asm__("x2") = c;
	register long fourth __asm__("x3") = d;
	register long fifth __asm__("x4") = e;

	__asm__ volatile("svc 0"
			 : "+r"(result)
			 : "r"(which), "r"(second), "r"(third), "r"(fourth), "r"(fifth)
			 : "memory");
	return result;
}
#endif

#endif
