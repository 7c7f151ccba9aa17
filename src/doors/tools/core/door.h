/* What coop-tool and coop-mcp have in common: the options that say how what they start is confined,
 * and the way to the keeper. */
#ifndef COOP_TOOLS_DOOR_H
#define COOP_TOOLS_DOOR_H

#include "doors/tools/core/call.h"
#include "doors/tools/core/keeper_link.h"

struct coop_door {
	/* From the command line; NULL: not said. */
	const char *profile, *workspace, *cwd, *session;
	struct coop_keeper_link_options link_options;

	uv_loop_t loop;
	struct coop_keeper_link *link;
	struct coop_tool_setup setup;
};

/* Options for getopt_long(): what every door takes. COOP_DOOR_OPTION_FIRST and above are theirs. */
enum { COOP_DOOR_OPTION_FIRST = 1000 };
#define COOP_DOOR_OPTIONS                                           \
	{"profile", 1, NULL, COOP_DOOR_OPTION_FIRST},               \
		{"workspace", 1, NULL, COOP_DOOR_OPTION_FIRST + 1}, \
		{"cwd", 1, NULL, COOP_DOOR_OPTION_FIRST + 2},       \
		{"session", 1, NULL, COOP_DOOR_OPTION_FIRST + 3},   \
		{"agent", 1, NULL, COOP_DOOR_OPTION_FIRST + 4},     \
		{"private", 0, NULL, COOP_DOOR_OPTION_FIRST + 5},   \
	{                                                           \
		"no-workspace", 0, NULL, COOP_DOOR_OPTION_FIRST + 6 \
	}

/* Takes one option; false: it is not one of these. */
bool coop_door_take(struct coop_door *door, int option, const char *value);

/* Connects (and starts a keeper if need be), makes the setup. 0, or negative with the error
 * filled. */
int coop_door_open(struct coop_door *door, struct coop_error *error);
/* Ends the connections and runs the loop until nothing is left on it. A keeper that does not answer
 * is not waited for: the program ends here then, with `code`. */
void coop_door_close(struct coop_door *door, int code);

#endif
