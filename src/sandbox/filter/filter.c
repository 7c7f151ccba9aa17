#include "sandbox/filter/filter.h"

#include <assert.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "sandbox/filter/filter_calls.h"

/* Numbers from here on are calls of the x32 kind; the library's part kills who makes one. */
#define X32_BIT 0x40000000u
#define OPENING_MAX 64

/* The library compares with single values and cannot say "none of these" or "from here on" about
 * the low half of a word. Those few tests are written out and stand in front of what it makes. */
struct opening {
	struct sock_filter code[OPENING_MAX];
	size_t count;
};

static void emit(struct opening *opening, struct sock_filter instruction)
{
	assert(opening->count < OPENING_MAX);
	opening->code[opening->count++] = instruction;
}

static void emit_load(struct opening *opening, size_t offset)
{
	emit(opening, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

static void emit_jump(struct opening *opening, uint16_t how, uint32_t value, size_t yes, size_t no)
{
	emit(opening, (struct sock_filter)BPF_JUMP((uint16_t)(BPF_JMP | how | BPF_K), value,
						   (uint8_t)yes, (uint8_t)no));
}

static void emit_refuse(struct opening *opening, int error)
{
	emit(opening,
	     (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)error));
}

/* Both architectures keep the low half of a word first. */
static void emit_load_arg(struct opening *opening, uint32_t arg)
{
	emit_load(opening, offsetof(struct seccomp_data, args) + 8 * (size_t)arg);
}

/* Expects the call's number loaded, and leaves it so. */
static void emit_choice(struct opening *opening, const struct coop_filter_choice *choice)
{
	int number = coop_filter_number(choice->name);
	size_t count = choice->value_count, when = choice->when.count;

	if (number < 0)
		return;
	/* Another call goes on behind all of this; one that is left alone, at the last load. */
	emit_jump(opening, BPF_JEQ, (uint32_t)number, 0, (when ? when + 1 : 0) + count + 3);
	if (when)
		emit_load_arg(opening, choice->when.arg);
	for (size_t i = 0; i < when; i++)
		emit_jump(opening, BPF_JEQ, choice->when.values[i], when - i - 1,
			  i + 1 < when ? 0 : count + 2);
	emit_load_arg(opening, choice->arg);
	for (size_t i = 0; i < count; i++)
		emit_jump(opening, BPF_JEQ, choice->values[i], count - i, 0);
	emit_refuse(opening, choice->error);
	emit_load(opening, offsetof(struct seccomp_data, nr));
}

static void emit_choices(struct opening *opening, const struct coop_filter_choice *choices)
{
	for (; choices->name; choices++)
		emit_choice(opening, choices);
}

static bool no_network(enum coop_filter kind)
{
	return kind == COOP_FILTER_NO_NETWORK || kind == COOP_FILTER_AMONG_OTHERS_NO_NETWORK;
}

static bool among_others(enum coop_filter kind)
{
	return kind == COOP_FILTER_AMONG_OTHERS || kind == COOP_FILTER_AMONG_OTHERS_NO_NETWORK;
}

/* Whatever it does not refuse goes on behind it. */
static void make_opening(struct opening *ret, enum coop_filter kind)
{
	emit_load(ret, offsetof(struct seccomp_data, arch));
	size_t foreign = ret->count;
	emit_jump(ret, BPF_JEQ, seccomp_arch_native(), 0, 0);
	emit_load(ret, offsetof(struct seccomp_data, nr));
	size_t x32 = ret->count;
	emit_jump(ret, BPF_JGE, X32_BIT, 0, 0);
	emit_jump(ret, BPF_JGE, COOP_FILTER_UNKNOWN, 0, 1);
	emit_refuse(ret, ENOSYS);
	emit_choices(ret, coop_filter_choices);
	if (among_others(kind))
		emit_choices(ret, coop_filter_others_choices);
	ret->code[foreign].jf = (uint8_t)(ret->count - foreign - 1);
	ret->code[x32].jt = (uint8_t)(ret->count - x32 - 1);
}

static int add(scmp_filter_ctx filter, const struct coop_filter_rule *rule, int number,
	       uint32_t bit)
{
	struct scmp_arg_cmp tests[2];
	unsigned count = 0;

	if (rule->is.mask)
		tests[count++] =
			SCMP_CMP64(rule->is.arg, SCMP_CMP_MASKED_EQ, rule->is.mask, rule->is.value);
	if (bit)
		tests[count++] = SCMP_CMP64(rule->any.arg, SCMP_CMP_MASKED_EQ, bit, bit);
	int r = seccomp_rule_add_array(filter, SCMP_ACT_ERRNO((uint32_t)rule->error), number, count,
				       tests);
	return r == -EEXIST ? 0 : r;
}

static int add_rule(scmp_filter_ctx filter, const struct coop_filter_rule *rule)
{
	int number = coop_filter_number(rule->name);

	if (number < 0)
		return number == -ENOSYS ? 0 : number;
	if (!rule->any.bits)
		return add(filter, rule, number, 0);
	for (uint32_t bit = 1; bit; bit <<= 1) {
		int r = rule->any.bits & bit ? add(filter, rule, number, bit) : 0;
		if (r < 0)
			return r;
	}
	return 0;
}

static int add_rules(scmp_filter_ctx filter, const struct coop_filter_rule *rules)
{
	int r = 0;

	for (; rules->name && r == 0; rules++)
		r = add_rule(filter, rules);
	return r;
}

static int add_refused(scmp_filter_ctx filter, const char *name)
{
	return add_rule(filter, &(struct coop_filter_rule){.name = name, .error = EPERM});
}

/* The library writes to files only. */
static int export(scmp_filter_ctx filter, struct coop_buf *ret)
{
	COOP_AUTO_FD int fd = memfd_create("coop-filter", MFD_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return -errno;
	int r = seccomp_export_bpf(filter, fd);
	if (r < 0)
		return r;
	if (fstat(fd, &st) < 0)
		return -errno;
	size_t size = (size_t)st.st_size;
	uint8_t *room = coop_buf_reserve(ret, size);
	if (!room)
		return -ENOMEM;
	ssize_t n = pread(fd, room, size, 0);
	if (n < 0 || (size_t)n != size)
		return n < 0 ? -errno : -EIO;
	coop_buf_commit(ret, size);
	return 0;
}

#define FILTER_API 3 /* of libseccomp: with the action that kills the whole process */

static int begin(scmp_filter_ctx *ret)
{
	/* What the running kernel can is found out by the probe, not here. */
	(void)seccomp_api_set(FILTER_API);
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);

	if (!filter)
		return -ENOMEM;
	int r = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
	/* A tree instead of a list: the kernel runs the program once for each number there is when
	 * it is loaded. */
	if (r == 0)
		r = seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	if (r < 0) {
		seccomp_release(filter);
		return r;
	}
	*ret = filter;
	return 0;
}

static int fill(scmp_filter_ctx filter, enum coop_filter kind)
{
	int r = 0;

	for (const char *const *name = coop_filter_refused; *name && r == 0; name++)
		r = add_refused(filter, *name);
	if (r == 0)
		r = add_rules(filter, coop_filter_rules);
	if (r == 0 && no_network(kind))
		r = add_rules(filter, coop_filter_network_rules);
	return r;
}

static int build_one(enum coop_filter kind, struct coop_buf *ret)
{
	struct opening opening = {0};
	uint32_t head[2] = {0};
	scmp_filter_ctx filter;

	int r = begin(&filter);
	if (r < 0)
		return r;
	make_opening(&opening, kind);
	size_t start = coop_buf_size(ret);
	r = fill(filter, kind);
	if (r == 0)
		r = coop_buf_append(ret, head, sizeof head);
	if (r == 0)
		r = coop_buf_append(ret, opening.code, opening.count * sizeof *opening.code);
	if (r == 0)
		r = export(filter, ret);
	seccomp_release(filter);
	if (r < 0)
		return r;
	size_t size = coop_buf_size(ret) - start - sizeof head;
	head[0] = (uint32_t)(size / sizeof(struct sock_filter));
	memcpy(coop_buf_front(ret) + start, head, sizeof head);
	return size > BPF_MAXINSNS * sizeof(struct sock_filter) ? -E2BIG : 0;
}

int coop_filter_build(struct coop_buf *ret)
{
	struct coop_buf all = {0};
	int r = 0;

	for (enum coop_filter kind = COOP_FILTER_NONE + 1; kind < COOP_FILTER_COUNT && r == 0;
	     kind++)
		r = build_one(kind, &all);
	if (r == 0)
		r = coop_buf_append(ret, coop_buf_front(&all), coop_buf_size(&all));
	coop_buf_clear(&all);
	return r;
}

int coop_filter_build_own(const char *const *names, size_t count, struct coop_buf *ret)
{
	scmp_filter_ctx filter;

	int r = begin(&filter);
	if (r < 0)
		return r;
	for (size_t i = 0; i < count && r == 0; i++)
		r = add_refused(filter, names[i]);
	if (r == 0)
		r = export(filter, ret);
	seccomp_release(filter);
	return r;
}
