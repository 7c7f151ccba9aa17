#include "sandbox/child/capabilities.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/prctl.h>

#include "sandbox/child/call.h"

int coop_capabilities_clear(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[2] = {{0}};

	(void)coop_raw_call(SYS_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	return (int)coop_raw_call(SYS_capset, (long)&header, (long)none, 0, 0, 0);
}

int coop_capabilities_drop(void)
{
	long number = 0, r;

	/* Up to the first that this kernel does not know. Who may not empty the set has nothing to
	 * gain from it once no_new_privs holds. */
	while ((r = coop_raw_call(SYS_prctl, PR_CAPBSET_DROP, number, 0, 0, 0)) >= 0)
		number++;
	return r != -EINVAL && r != -EPERM ? (int)r : coop_capabilities_clear();
}
