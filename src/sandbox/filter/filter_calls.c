#include "sandbox/filter/filter_calls.h"

#include <asm/ioctls.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <seccomp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

const char *const coop_filter_refused[] = {
	/* Other processes. */
	"ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "pidfd_getfd", "kcmp",
	/* Large parts of the kernel that ordinary work does without. */
	"bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "io_uring_enter",
	"io_uring_register", "fanotify_init", "fanotify_mark", "lookup_dcookie", "nfsservctl",
	"uselib", "modify_ldt",
	/* Keys: not divided by namespaces in every kernel. */
	"add_key", "request_key", "keyctl",
	/* The view of the files. */
	"mount", "umount2", "pivot_root", "chroot", "open_tree", "open_tree_attr", "move_mount",
	"fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr", "setns", "unshare",
	"name_to_handle_at", "open_by_handle_at",
	/* The machine. */
	"init_module", "finit_module", "delete_module", "create_module", "query_module",
	"get_kernel_syms", "kexec_load", "kexec_file_load", "reboot", "swapon", "swapoff", "acct",
	"quotactl", "quotactl_fd", "syslog", "vhangup", "sethostname", "setdomainname", "iopl",
	"ioperm",
	/* Its clock. Whether a call only asks stands in memory, where no filter sees it. */
	"settimeofday", "clock_settime", "adjtimex", "clock_adjtime",
	/* Where memory lies: another process's too. */
	"mbind", "set_mempolicy", "set_mempolicy_home_node", "migrate_pages", "move_pages", NULL};

#define WHOLE 0xffffffffu
#define NAMESPACES                                                                     \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | \
	 CLONE_NEWPID | CLONE_NEWNET)
/* A file with one of these, made in a folder whose owner is shown as another one, would be set-id
 * for that owner outside. */
#define SET_ID (S_ISUID | S_ISGID)
#define SOCKET_TYPE 0xfu /* the other bits are flags */
#define TMPFILE (O_TMPFILE & ~O_DIRECTORY)

const struct coop_filter_rule coop_filter_rules[] = {
	/* What they are asked for stands in memory; callers fall back on clone and openat. */
	{"clone3", ENOSYS},
	{"openat2", ENOSYS},
	{"clone", EPERM, .any = {0, NAMESPACES}},
	{"ioctl", EPERM, .is = {1, WHOLE, TIOCSTI}},
	{"ioctl", EPERM, .is = {1, WHOLE, TIOCLINUX}},
	/* Line disciplines are loaded on demand, for anybody with a terminal. */
	{"ioctl", EPERM, .is = {1, WHOLE, TIOCSETD}},
	/* So is this protocol by its type alone. */
	{"socket", ESOCKTNOSUPPORT, .is = {1, SOCKET_TYPE, SOCK_DCCP}},
	{"socketpair", ESOCKTNOSUPPORT, .is = {1, SOCKET_TYPE, SOCK_DCCP}},
	{"chmod", EPERM, .any = {1, SET_ID}},
	{"fchmod", EPERM, .any = {1, SET_ID}},
	{"fchmodat", EPERM, .any = {2, SET_ID}},
	{"fchmodat2", EPERM, .any = {2, SET_ID}},
	{"creat", EPERM, .any = {1, SET_ID}},
	{"mkdir", EPERM, .any = {1, SET_ID}},
	{"mkdirat", EPERM, .any = {2, SET_ID}},
	/* A mode counts only where a file is made; else it is whatever happened to be in the
	   register. */
	{"open", EPERM, .is = {1, O_CREAT, O_CREAT}, .any = {2, SET_ID}},
	{"open", EPERM, .is = {1, TMPFILE, TMPFILE}, .any = {2, SET_ID}},
	{"openat", EPERM, .is = {2, O_CREAT, O_CREAT}, .any = {3, SET_ID}},
	{"openat", EPERM, .is = {2, TMPFILE, TMPFILE}, .any = {3, SET_ID}},
	/* Pipes, sockets and plain files are made by anybody. */
	{"mknod", EPERM, .is = {1, S_IFMT, S_IFCHR}},
	{"mknod", EPERM, .is = {1, S_IFMT, S_IFBLK}},
	{"mknod", EPERM, .any = {1, SET_ID}},
	{"mknodat", EPERM, .is = {2, S_IFMT, S_IFCHR}},
	{"mknodat", EPERM, .is = {2, S_IFMT, S_IFBLK}},
	{"mknodat", EPERM, .any = {2, SET_ID}},
	{NULL},
};

const struct coop_filter_rule coop_filter_network_rules[] = {
	{"socket", EACCES, .is = {0, WHOLE, AF_INET}},
	{"socket", EACCES, .is = {0, WHOLE, AF_INET6}},
	{"socket", EACCES, .is = {0, WHOLE, AF_NETLINK}},
	{NULL},
};

#define PROTOCOLS \
	0, IPPROTO_ICMP, IPPROTO_TCP, IPPROTO_UDP, IPPROTO_ICMPV6, IPPROTO_UDPLITE, IPPROTO_MPTCP

const struct coop_filter_choice coop_filter_choices[] = {
	{"socket", EAFNOSUPPORT, 0, 4, {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK}},
	{"socketpair", EAFNOSUPPORT, 0, 4, {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK}},
	/* Others are loaded on demand, for anybody who names them. */
	{"socket", EPROTONOSUPPORT, 2, 7, {PROTOCOLS}, .when = {0, 2, {AF_INET, AF_INET6}}},
	{"socketpair", EPROTONOSUPPORT, 2, 7, {PROTOCOLS}, .when = {0, 2, {AF_INET, AF_INET6}}},
	/* The usual one, and the question which one it is. */
	{"personality", EPERM, 0, 2, {0, WHOLE}},
	{NULL},
};

const struct coop_filter_choice coop_filter_others_choices[] = {
	/* One's own limits alone: those of the same user's other processes, the keeper among
	 * them, end them. Neither Landlock nor the kernel objects. */
	{"prlimit64", EPERM, 0, 1, {0}},
	{NULL},
};

/* Later than the library; the same on every architecture. */
static const struct {
	const char *name;
	int number;
} later[] = {
	{"cachestat", 451},         {"fchmodat2", 452},        {"map_shadow_stack", 453},
	{"futex_wake", 454},        {"futex_wait", 455},       {"futex_requeue", 456},
	{"statmount", 457},         {"listmount", 458},        {"lsm_get_self_attr", 459},
	{"lsm_set_self_attr", 460}, {"lsm_list_modules", 461}, {"mseal", 462},
	{"setxattrat", 463},        {"getxattrat", 464},       {"listxattrat", 465},
	{"removexattrat", 466},     {"open_tree_attr", 467},   {"file_getattr", 468},
	{"file_setattr", 469},
};

int coop_filter_number(const char *name)
{
	int number = seccomp_syscall_resolve_name(name);

	if (number >= 0)
		return number;
	for (size_t i = 0; i < sizeof later / sizeof *later; i++) {
		if (!strcmp(later[i].name, name))
			return later[i].number;
	}
	return number == __NR_SCMP_ERROR ? -EINVAL : -ENOSYS;
}
