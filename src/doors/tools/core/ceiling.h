/* What a door was configured with, as the keeper's operation `ceiling` takes it. A door sends it on
 * each of its connections before anything else: then no tool and no route can forget it. */
#ifndef COOP_TOOLS_CEILING_H
#define COOP_TOOLS_CEILING_H

#include <jansson.h>
#include <stdbool.h>

#define COOP_CEILING_OP "ceiling"

struct coop_door_ceiling {
	const char *profile, *workspace; /* NULL: not said */
	bool no_workspace;               /* nothing may be changed */
};

/* Arguments of the operation, to be freed; NULL without memory. */
json_t *coop_door_ceiling_args(const struct coop_door_ceiling *ceiling);

#endif
