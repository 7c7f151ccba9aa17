#include "sandbox/capabilities.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int coop_capabilities_clear(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[2] = {{0}};

	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	return syscall(SYS_capset, &header, none) < 0 ? -errno : 0;
}

int coop_capabilities_drop(void)
{
	/* Up to the first that this kernel does not know. Who may not empty the set has nothing to gain from it once no_new_privs holds. */
	for (unsigned long number = 0; prctl(PR_CAPBSET_DROP, number, 0, 0, 0) >= 0; number++)
		;
	if (errno != EINVAL && errno != EPERM)
		return -errno;
	return coop_capabilities_clear();
}
