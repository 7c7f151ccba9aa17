#include "doors/http/main/confine.h"

#include <errno.h>
#include <grp.h>
#include <jansson.h>
#include <linux/capability.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "doors/http/main/confine_calls.h"

#define NOBODY 65534

#define NAMESPACES (CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNET | CLONE_NEWCGROUP)

/* Landlock, of which the headers of Debian 12 know only the beginning. */
#define LANDLOCK_CREATE 444
#define LANDLOCK_RESTRICT 446
#define LANDLOCK_VERSION 1u
#define LANDLOCK_NET 3u    /* since version 4: bind and connect of TCP */
#define LANDLOCK_SCOPES 3u /* since version 6: abstract sockets, signals */

struct landlock {
	uint64_t files, net, scopes;
};

/* Libraries that read something when they are first used do it now. */
static void warm_up(void)
{
	unsigned char digest[EVP_MAX_MD_SIZE];
	json_object_seed(0);
	(void)OPENSSL_init_crypto(OPENSSL_INIT_LOAD_CONFIG, NULL);
	(void)EVP_Digest("", 0, digest, NULL, EVP_sha1(), NULL);
}

/* Puts an empty folder in place of all files. In a mount namespace of our own. */
static int leave_files(void)
{
	/* Any folder will do to put it on; which ones there are depends on the container. */
	static const char *const places[] = {"/proc", "/tmp", "/dev", "/usr", NULL};
	const char *const *place = places;
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return -errno;
	while (*place && mount("none", *place, "tmpfs",
			       MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, "size=4k,mode=555"))
		place++;
	if (!*place || chdir(*place) < 0)
		return -errno;
	/* With the same folder twice the old root comes to lie on the new one, and is taken away
	 * from there. */
	if (syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		return -errno;
	return 0;
}

/* 1 if they are in force, 0 if they cannot be had; a negative errno if something is half done. */
static int enter_namespaces(int flags)
{
	if (unshare(flags) < 0)
		return 0;
	const int r = leave_files();
	return r < 0 ? r : 1;
}

/* What could be gained by executing something: up to the first that this kernel does not know. Who
 * may not drop them has nothing to gain either, as no_new_privs holds. */
static void drop_bounds(void)
{
	for (unsigned long number = 0; prctl(PR_CAPBSET_DROP, number, 0, 0, 0) == 0; number++)
		;
}

static int drop_capabilities(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	const struct __user_cap_data_struct none[2] = {{0}};
	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	drop_bounds();
	return syscall(SYS_capset, &header, none) < 0 ? -errno : 0;
}

static int leave_root(void)
{
	if (geteuid() != 0)
		return 0;
	drop_bounds();
	if (setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
	    setresuid(NOBODY, NOBODY, NOBODY) < 0)
		return -errno;
	return 0;
}

/* Root makes namespaces while it still may; everybody else in a user namespace, and so does root
 * where it is not allowed to. */
static int isolate(void)
{
	const bool root = geteuid() == 0;
	int held = root ? enter_namespaces(NAMESPACES) : 0;
	if (held < 0)
		return held;
	int r = leave_root();
	if (r < 0)
		return r;
	if (!held)
		held = enter_namespaces(NAMESPACES | CLONE_NEWUSER);
	if (held < 0)
		return held;
	r = drop_capabilities();
	return r < 0 ? r : held;
}

/* A ruleset that knows all rights and gives none. 1 if it is in force, 0 if the kernel has no
 * Landlock. */
static int landlock(void)
{
	/* How many rights on files each version knows. */
	static const unsigned char rights[] = {0, 13, 14, 15, 15, 16};
	const size_t known = sizeof rights - 1;
	const long version = syscall(LANDLOCK_CREATE, NULL, 0, LANDLOCK_VERSION);
	if (version < 1)
		return 0;
	const size_t row = (size_t)version < known ? (size_t)version : known;
	const struct landlock all = {.files = (UINT64_C(1) << rights[row]) - 1,
				     .net = version >= 4 ? LANDLOCK_NET : 0,
				     .scopes = version >= 6 ? LANDLOCK_SCOPES : 0};
	/* The kernel refuses what is longer than it knows only if there is something in it. */
	const int ruleset = (int)syscall(LANDLOCK_CREATE, &all, sizeof all, 0);
	if (ruleset < 0)
		return 0;
	const int r = syscall(LANDLOCK_RESTRICT, ruleset, 0) < 0 ? -errno : 1;
	(void)close(ruleset);
	return r;
}

int coop_confine(char *ret_text, size_t size)
{
	const struct rlimit none = {0, 0};
	int spaces = 0, locked = 0, r;
	warm_up();
	if (setrlimit(RLIMIT_CORE, &none) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	if (COOP_CONFINE_SANITIZED) {
		r = drop_capabilities();
	} else {
		r = spaces = isolate();
		if (r >= 0)
			r = locked = landlock();
		if (r >= 0 && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
			r = -errno;
	}
	if (r >= 0)
		r = coop_confine_calls();
	if (r < 0)
		return r;
	(void)snprintf(ret_text, size, "%s%sseccomp%s", spaces ? "namespaces, " : "",
		       locked ? "landlock, " : "",
		       COOP_CONFINE_SANITIZED ? " (light: a build with sanitizers)" : "");
	return 0;
}
