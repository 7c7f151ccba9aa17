/* A caller's own list of system calls: any names give a program that the kernel takes and that
 * refuses just these, or an error and nothing. One name per line; a line of two bytes that begins
 * with 1 is the name of that number. */
#include <assert.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sandbox/filter/filter.h"
#include "sandbox/filter/filter_calls.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

#define NAMES_MAX 512
#define NUMBERS 480

#if defined(__x86_64__)
#define NATIVE AUDIT_ARCH_X86_64
#define FOREIGN AUDIT_ARCH_I386
#else
#define NATIVE AUDIT_ARCH_AARCH64
#define FOREIGN AUDIT_ARCH_ARM
#endif

/* As the kernel checks a filter before it takes it: known instructions, loads within the data and
 * whole, jumps that land inside, and a return at the end, so that no run leaves the program. */
static void check_program(const struct sock_filter *code, size_t count)
{
	assert(count >= 1 && count <= BPF_MAXINSNS);
	for (size_t i = 0; i < count; i++) {
		size_t rest = count - i - 1;
		switch (code[i].code) {
		case BPF_LD | BPF_W | BPF_ABS:
			assert(code[i].k % 4 == 0 && code[i].k < sizeof(struct seccomp_data));
			break;
		case BPF_JMP | BPF_JA:
			assert(code[i].k < rest);
			break;
		case BPF_JMP | BPF_JEQ | BPF_K:
		case BPF_JMP | BPF_JGE | BPF_K:
		case BPF_JMP | BPF_JGT | BPF_K:
		case BPF_JMP | BPF_JSET | BPF_K:
			assert(code[i].jt < rest && code[i].jf < rest);
			break;
		default:
			assert(code[i].code == (BPF_RET | BPF_K) ||
			       code[i].code == (BPF_ALU | BPF_AND | BPF_K));
		}
	}
	assert(code[count - 1].code == (BPF_RET | BPF_K));
}

static bool compare(const struct sock_filter *at, uint32_t word)
{
	switch (BPF_OP(at->code)) {
	case BPF_JEQ:
		return word == at->k;
	case BPF_JGE:
		return word >= at->k;
	case BPF_JGT:
		return word > at->k;
	default:
		return word & at->k;
	}
}

/* What a checked program says about a call. */
static uint32_t run(const struct sock_filter *at, uint32_t arch, uint32_t number)
{
	struct seccomp_data data = {.nr = (int)number, .arch = arch};
	uint32_t word = 0;

	for (;; at++) {
		switch (BPF_CLASS(at->code)) {
		case BPF_LD:
			memcpy(&word, (const char *)&data + at->k, sizeof word);
			break;
		case BPF_ALU:
			word &= at->k;
			break;
		case BPF_JMP:
			if (BPF_OP(at->code) == BPF_JA)
				at += at->k;
			else
				at += compare(at, word) ? at->jt : at->jf;
			break;
		default:
			return at->k;
		}
	}
}

static void check_meaning(const struct sock_filter *code, const char *const *names, size_t count)
{
	bool refused[NUMBERS] = {false};

	for (size_t i = 0; i < count; i++) {
		int number = coop_filter_number(names[i]);
		assert(number != -EINVAL && number < NUMBERS);
		if (number >= 0)
			refused[number] = true;
	}
	for (uint32_t number = 0; number < NUMBERS; number++) {
		uint32_t expected = refused[number] ? SECCOMP_RET_ERRNO | EPERM : SECCOMP_RET_ALLOW;
		assert(run(code, NATIVE, number) == expected);
		assert(run(code, FOREIGN, number) == SECCOMP_RET_KILL_PROCESS);
#ifdef __x86_64__
		assert(run(code, NATIVE, 0x40000000 + number) == SECCOMP_RET_KILL_PROCESS);
#endif
	}
}

/* Lines of `text`, which is changed. Names that are made from numbers are to be freed. */
static size_t split(char *text, const char **names, char **made)
{
	size_t count = 0;

	for (char *line = text, *end; line && count < NAMES_MAX; line = end) {
		end = strchr(line, '\n');
		if (end)
			*end++ = 0;
		if (line[0] == 1 && line[1] && !line[2])
			made[count] = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE,
								       2 * (uint8_t)line[1]);
		names[count] = made[count] ? made[count] : line;
		count++;
	}
	return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	const char *names[NAMES_MAX] = {NULL};
	char *made[NAMES_MAX] = {NULL};
	struct coop_buf out = {0};
	char *text = malloc(size + 1);

	assert(text);
	memcpy(text, input, size);
	text[size] = 0;
	size_t count = split(text, names, made);
	int r = coop_filter_build_own(names, count, &out);
	if (r < 0) {
		bool wrong = false;
		for (size_t i = 0; i < count; i++)
			wrong = wrong || coop_filter_number(names[i]) == -EINVAL;
		assert(r == -EINVAL && wrong && coop_buf_size(&out) == 0);
	} else {
		const struct sock_filter *code = (const void *)coop_buf_front(&out);
		assert(coop_buf_size(&out) % sizeof *code == 0);
		check_program(code, coop_buf_size(&out) / sizeof *code);
		check_meaning(code, names, count);
	}
	for (size_t i = 0; i < count; i++)
		free(made[i]);
	coop_buf_clear(&out);
	free(text);
	return 0;
}
