/* The system call filters, loaded into children: each attack gets the errno or the signal that is
 * promised. Arguments are such that the kernel would refuse them, too, but in another way: nothing
 * happens to the machine where a filter fails. */
#include <linux/netlink.h>
#include <netinet/in.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "filtered.h"

#define HIGH (UINT64_C(1) << 32)

static const struct {
	const char *name;
	long number;
} refused[] = {
#define CALL(name)                \
	{                         \
#name, SYS_##name \
	}
	CALL(ptrace),
	CALL(process_vm_readv),
	CALL(process_vm_writev),
	CALL(process_madvise),
	CALL(pidfd_getfd),
	CALL(kcmp),
	CALL(bpf),
	CALL(perf_event_open),
	CALL(userfaultfd),
	CALL(io_uring_setup),
	CALL(io_uring_enter),
	CALL(io_uring_register),
	CALL(fanotify_init),
	CALL(fanotify_mark),
	CALL(lookup_dcookie),
	CALL(nfsservctl),
	CALL(add_key),
	CALL(request_key),
	CALL(keyctl),
	CALL(mount),
	CALL(umount2),
	CALL(pivot_root),
	CALL(chroot),
	CALL(open_tree),
	{"open_tree_attr", 467},
	CALL(move_mount),
	CALL(fsopen),
	CALL(fsconfig),
	CALL(fsmount),
	CALL(fspick),
	CALL(mount_setattr),
	CALL(setns),
	CALL(unshare),
	CALL(name_to_handle_at),
	CALL(open_by_handle_at),
	CALL(init_module),
	CALL(finit_module),
	CALL(delete_module),
	CALL(kexec_load),
	CALL(kexec_file_load),
	CALL(reboot),
	CALL(swapon),
	CALL(swapoff),
	CALL(acct),
	CALL(quotactl),
	CALL(quotactl_fd),
	CALL(syslog),
	CALL(vhangup),
	CALL(sethostname),
	CALL(setdomainname),
	CALL(settimeofday),
	CALL(clock_settime),
	CALL(adjtimex),
	CALL(clock_adjtime),
	CALL(mbind),
	CALL(set_mempolicy),
	CALL(set_mempolicy_home_node),
	CALL(migrate_pages),
	CALL(move_pages),
#ifdef __x86_64__
	CALL(iopl),
	CALL(ioperm),
	CALL(modify_ldt),
	CALL(uselib),
	CALL(create_module),
	CALL(query_module),
	CALL(get_kernel_syms),
#endif
#undef CALL
};

static int call_refused(void)
{
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
		errno = 0;
		if (syscall(refused[i].number, -1, -1, -1, -1, -1, -1) != -1 || errno != EPERM) {
			fprintf(stderr, "%s: %s\n", refused[i].name, strerror(errno));
			return 1;
		}
	}
	return 0;
}

static void refuses_calls(void **state)
{
	filtered_holds(COOP_FILTER_STANDARD, call_refused);
	filtered_holds(COOP_FILTER_NO_NETWORK, call_refused);
}

static int call_unknown(void)
{
	static const long numbers[] = {SYS_clone3, SYS_openat2, 470,    471,       500,
				       512,        600,         100000, 0x3fffffff};

	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		EXPECT_ERROR(syscall(numbers[i], -1, -1, -1, -1, -1, -1), ENOSYS);
	/* One that is known but later than the library: it reaches the kernel. */
	errno = 0;
	EXPECT(syscall(463, -1, -1, -1, -1, -1, -1) == -1 && errno != EPERM);
	return 0;
}

static void unknown_calls_do_not_exist(void **state)
{
	filtered_holds(COOP_FILTER_STANDARD, call_unknown);
}

/* A clone that is let through is a fork: its child leaves at once. */
static long try_clone(uint64_t flags)
{
	long pid = syscall(SYS_clone, flags, 0, 0, 0, 0);

	if (pid == 0)
		_exit(0);
	if (pid > 0)
		(void)waitpid((pid_t)pid, NULL, __WALL);
	return pid;
}

static int clone_namespaces(void)
{
	static const uint64_t flags[] = {CLONE_NEWNS,   CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC,
					 CLONE_NEWUSER, CLONE_NEWPID,    CLONE_NEWNET};

	for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
		EXPECT_ERROR(try_clone(flags[i] | SIGCHLD), EPERM);
		EXPECT_ERROR(try_clone(flags[i] | CLONE_NEWUSER | SIGCHLD), EPERM);
		EXPECT_ERROR(try_clone(flags[i] | HIGH | SIGCHLD), EPERM);
	}
	EXPECT(try_clone(SIGCHLD) > 0);
	EXPECT(try_clone(CLONE_FS | CLONE_FILES | SIGCHLD) > 0);
	return 0;
}

static void refuses_namespaces(void **state)
{
	filtered_holds(COOP_FILTER_STANDARD, clone_namespaces);
}

static int type_into_terminal(void)
{
	int count;

	for (uint64_t high = 0; high <= HIGH; high += HIGH) {
		EXPECT_ERROR(syscall(SYS_ioctl, -1, TIOCSTI | high, "x"), EPERM);
		EXPECT_ERROR(syscall(SYS_ioctl, -1, TIOCLINUX | high, "x"), EPERM);
		EXPECT_ERROR(syscall(SYS_ioctl, -1, TIOCSETD | high, "x"), EPERM);
		EXPECT_ERROR(syscall(SYS_ioctl, -1, (TIOCSTI + 1) | high, "x"), EBADF);
	}
	EXPECT_ERROR(syscall(SYS_ioctl, -1, TIOCSTI | UINT64_C(0xdeadbeef00000000), "x"), EPERM);
	EXPECT_ERROR(ioctl(-1, TIOCGWINSZ, &count), EBADF);
	return 0;
}

static void refuses_typing(void **state)
{
	filtered_holds(COOP_FILTER_STANDARD, type_into_terminal);
}

static bool is_known_family(uint64_t family)
{
	uint32_t low = (uint32_t)family;

	return low == AF_UNIX || low == AF_INET || low == AF_INET6 || low == AF_NETLINK;
}

/* With a type that there is not the kernel says EINVAL for every family of its own. */
static int try_family(uint64_t family)
{
	int expected = is_known_family(family) ? EINVAL : EAFNOSUPPORT, pair[2];

	EXPECT_ERROR(syscall(SYS_socket, family, 11, 0), expected);
	EXPECT_ERROR(syscall(SYS_socketpair, family, 11, 0, pair), expected);
	return 0;
}

static int try_families(void)
{
	for (uint64_t family = 0; family < 300; family++)
		EXPECT(try_family(family) == 0 && try_family(family | HIGH) == 0);
	for (unsigned bit = 0; bit < 32; bit++)
		EXPECT(try_family(UINT64_C(1) << bit) == 0 &&
		       try_family(AF_INET | (UINT64_C(1) << bit)) == 0);
	EXPECT(try_family(UINT32_MAX) == 0 && try_family(UINT64_MAX) == 0);
	EXPECT(socket(AF_INET, SOCK_STREAM, 0) >= 0);
	EXPECT(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0) >= 0);
	return 0;
}

static void refuses_families(void **state)
{
	filtered_holds(COOP_FILTER_STANDARD, try_families);
}

static bool is_known_protocol(uint64_t family, uint64_t protocol)
{
	static const uint32_t known[] = {0,
					 IPPROTO_ICMP,
					 IPPROTO_TCP,
					 IPPROTO_UDP,
					 IPPROTO_ICMPV6,
					 IPPROTO_UDPLITE,
					 IPPROTO_MPTCP};

	if ((uint32_t)family != AF_INET && (uint32_t)family != AF_INET6)
		return true;
	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		if ((uint32_t)protocol == known[i])
			return true;
	}
	return false;
}

/* As above: with a type that there is not the kernel itself says EINVAL. */
static int try_protocol(uint64_t family, uint64_t protocol)
{
	int expected = is_known_protocol(family, protocol) ? EINVAL : EPROTONOSUPPORT, pair[2];

	EXPECT_ERROR(syscall(SYS_socket, family, 11, protocol), expected);
	EXPECT_ERROR(syscall(SYS_socketpair, family, 11, protocol, pair), expected);
	return 0;
}

static int try_protocols(void)
{
	static const uint64_t families[] = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK, AF_INET | HIGH};
	int pair[2];

	for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
		for (uint64_t protocol = 0; protocol < 300; protocol++)
			EXPECT(try_protocol(families[i], protocol) == 0 &&
			       try_protocol(families[i], protocol | HIGH) == 0);
		EXPECT(try_protocol(families[i], UINT32_MAX) == 0);
	}
	/* A type can be enough to have a protocol loaded. */
	EXPECT_ERROR(socket(AF_INET, SOCK_DCCP | SOCK_CLOEXEC, 0), ESOCKTNOSUPPORT);
	EXPECT_ERROR(socketpair(AF_INET6, SOCK_DCCP, 0, pair), ESOCKTNOSUPPORT);
	EXPECT(socket(AF_INET, SOCK_STREAM, IPPROTO_TCP) >= 0);
	EXPECT(socket(AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK, IPPROTO_UDP) >= 0);
	EXPECT(socket(AF_NETLINK, SOCK_RAW, NETLINK_KOBJECT_UEVENT) >= 0);
	return 0;
}

static void refuses_protocols(void **state)
{
	filtered_holds(COOP_FILTER_STANDARD, try_protocols);
}

static int try_network(void)
{
	int pair[2];

	for (uint64_t high = 0; high <= HIGH; high += HIGH) {
		EXPECT_ERROR(syscall(SYS_socket, AF_INET | high, SOCK_DGRAM, 0), EACCES);
		EXPECT_ERROR(syscall(SYS_socket, AF_INET6 | high, SOCK_STREAM, 0), EACCES);
		EXPECT_ERROR(syscall(SYS_socket, AF_NETLINK | high, SOCK_RAW, 0), EACCES);
		EXPECT_ERROR(syscall(SYS_socket, AF_VSOCK | high, SOCK_STREAM, 0), EAFNOSUPPORT);
		EXPECT(syscall(SYS_socket, AF_UNIX | high, SOCK_STREAM, 0) >= 0);
	}
	EXPECT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
	return 0;
}

static void refuses_network(void **state)
{
	filtered_holds(COOP_FILTER_NO_NETWORK, try_network);
}

static int try_personality(void)
{
	EXPECT(personality(0xffffffff) == 0);
	EXPECT(personality(0) == 0);
	EXPECT_ERROR(personality(READ_IMPLIES_EXEC), EPERM);
	EXPECT_ERROR(personality(ADDR_NO_RANDOMIZE), EPERM);
	EXPECT_ERROR(syscall(SYS_personality, HIGH | READ_IMPLIES_EXEC), EPERM);
	EXPECT(syscall(SYS_personality, HIGH) == 0);
	return 0;
}

static void refuses_personality(void **state)
{
	filtered_holds(COOP_FILTER_STANDARD, try_personality);
}

#ifdef __x86_64__
static int old_call(long number)
{
	long r;

	__asm__ volatile("int $0x80"
			 : "=a"(r)
			 : "a"(number), "b"(0), "c"(0), "d"(0)
			 : "memory", "r8", "r9", "r10", "r11");
	return (int)r;
}

static int old_getpid(void)
{
	return old_call(20) < 0;
}

static int old_ptrace(void)
{
	return old_call(26) < 0;
}

static int x32_getpid(void)
{
	return syscall(0x40000000 + SYS_getpid) < 0;
}

static int x32_ptrace(void)
{
	return syscall(0x40000000 + 521, 0, 0, 0, 0) < 0;
}
#endif

static void kills_foreign_calls(void **state)
{
#ifdef __x86_64__
	static int (*const calls[])(void) = {old_getpid, old_ptrace, x32_getpid, x32_ptrace};

	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
		int status = filtered_run(COOP_FILTER_STANDARD, false, calls[i]);
		assert_true(WIFSIGNALED(status));
		assert_int_equal(WTERMSIG(status), SIGSYS);
	}
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refuses_calls),       cmocka_unit_test(unknown_calls_do_not_exist),
		cmocka_unit_test(refuses_namespaces),  cmocka_unit_test(refuses_typing),
		cmocka_unit_test(refuses_families),    cmocka_unit_test(refuses_network),
		cmocka_unit_test(refuses_protocols),   cmocka_unit_test(refuses_personality),
		cmocka_unit_test(kills_foreign_calls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
