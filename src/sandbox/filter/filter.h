/* The system call filters, made with libseccomp and handed to launchers as one sealed memfd: for
 * each of enum coop_filter but NONE, in order, a uint32 count of instructions, 4 bytes of nothing,
 * then that many struct sock_filter (8 bytes each). */
#ifndef COOP_SANDBOX_FILTER_H
#define COOP_SANDBOX_FILTER_H

#include "base/buf.h"

enum coop_filter {
	COOP_FILTER_NONE,
	COOP_FILTER_STANDARD, /* of every confined process */
	/* the same without INET and INET6 sockets, for hosts without net namespaces */
	COOP_FILTER_NO_NETWORK,
	/* both once more for hosts without PID namespaces: without limits of others */
	COOP_FILTER_AMONG_OTHERS,
	COOP_FILTER_AMONG_OTHERS_NO_NETWORK,
	COOP_FILTER_COUNT,
};

/* Appends all filters to `ret`. 0 or -errno, with nothing appended. What they refuse stands in
 * filter_calls.c. The process that loads one has no_new_privs already. */
int coop_filter_build(struct coop_buf *ret);

/* What a caller may add to the standard filter: names of system calls that are refused with EPERM.
 * The result is one program for seccomp(2), stacked on the other: instructions alone, without a
 * count. A name that only other architectures know says nothing. 0; -EINVAL for a name that is
 * none; or -errno; with nothing appended. */
int coop_filter_build_own(const char *const *names, size_t count, struct coop_buf *ret);

#endif
