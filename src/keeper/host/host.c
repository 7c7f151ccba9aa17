#include "keeper/host/host.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io/log.h"
#include "base/mem.h"
#include "keeper/conf/conf.h"
#include "keeper/core/keeper.h"
#include "keeper/host/views.h"
#include "keeper/launch/launcher.h"
#include "sandbox/layout/idmap.h"

/* "coop" as a number: nobody's, in no range that anybody gives out. Where a container has no such
 * id, the second is tried. */
#define OWN_ID 1668247408u
#define SMALL_ID 64123u

/* Whether this user namespace has that id at all. */
static bool exists(const char *map, uint32_t id)
{
	unsigned inside, outside, count;
	FILE *file = fopen(map, "re");
	bool found = false;

	while (file && !found && fscanf(file, "%u %u %u", &inside, &outside, &count) == 3)
		found = id >= inside && id - inside < count;
	if (file)
		(void)fclose(file);
	return found;
}

static bool usable(uint32_t uid, uint32_t gid)
{
	return uid && gid && exists("/proc/self/uid_map", uid) && exists("/proc/self/gid_map", gid);
}

/* A name or a number; 0 is nobody's. */
static bool named(const char *user, struct coop_launcher_class *ret)
{
	char *end;
	unsigned long number = strtoul(user, &end, 10);
	const struct passwd *entry = getpwnam(user);

	if (entry) {
		ret->uid = entry->pw_uid;
		ret->gid = entry->pw_gid;
	} else if (*user && !*end && number < UINT32_MAX) {
		ret->uid = ret->gid = (uint32_t)number;
	} else {
		return false;
	}
	return usable(ret->uid, ret->gid);
}

static const char *choose(const struct coop_keeper *keeper, struct coop_launcher_class *ret)
{
	const char *user = coop_conf_of(keeper)->profiles.user;

	if (user && named(user, ret))
		return "as configured";
	if (user)
		coop_log(COOP_LOG_WARN,
			 "[sandbox] user is not to be had, another is chosen user=%s", user);
	if (named("coop", ret))
		return "the user coop";
	ret->uid = ret->gid = usable(OWN_ID, OWN_ID) ? OWN_ID : SMALL_ID;
	return usable(ret->uid, ret->gid) ? "a number of nobody's" : NULL;
}

/* Whom root is outside of this user namespace. */
static uint32_t root_outside(void)
{
	unsigned inside = 1, outside = 0, count;
	FILE *file = fopen("/proc/self/uid_map", "re");

	while (file && inside && fscanf(file, "%u %u %u", &inside, &outside, &count) == 3)
		;
	if (file)
		(void)fclose(file);
	return outside;
}

static void nothing_works(struct coop_host *host, int error)
{
	for (int i = 0; i < COOP_FACILITY_COUNT; i++)
		host->error[i] = error;
}

struct coop_keeper_host *coop_keeper_host_new(void)
{
	return coop_mem_zalloc(sizeof(struct coop_keeper_host));
}

void coop_keeper_host_init(struct coop_keeper *keeper)
{
	struct coop_keeper_host *host = coop_host_of(keeper);
	struct coop_launcher_class class = {.uid = geteuid(), .gid = getegid()};

	host->root_keeper = geteuid() == 0;
	host->whose = "the keeper's own";
	if (host->root_keeper) {
		const char *whose = choose(keeper, &class);
		class.other_ids = whose != NULL;
		/* A namespace with root alone in it: whoever that is outside, its commands are,
		 * too. */
		if (!whose) {
			class.uid = class.gid = OWN_ID; /* inside */
			host->root_keeper = false;
			host->outer_root = root_outside() == 0;
		} else {
			host->whose = whose;
		}
	}
	int r = coop_launchers_probe(keeper, &class, &host->can);
	if (r < 0)
		nothing_works(&host->can, -r);
	host->probe_error = -r;
	host->can.uid = class.uid;
	host->can.gid = class.gid;
	host->can.error[COOP_CAN_IDMAP] =
		host->root_keeper
			? -coop_idmap_probe(&coop_views_of(keeper)->idmaps, class.uid, class.gid)
			: 0;
	host->probed = r == 0;
	for (int i = 0; i < COOP_FACILITY_COUNT; i++) {
		if (host->can.error[i])
			coop_log(COOP_LOG_INFO, "not to be had on this host: %s: %s",
				 coop_facility_name((enum coop_facility)i),
				 coop_err_errno_name(host->can.error[i]));
	}
}
