/* The other programs of coop, found as git finds its own. */
#ifndef COOP_CLI_SIBLING_H
#define COOP_CLI_SIBLING_H

#include <stdbool.h>

/* Replaces this program by coop-NAME with these arguments (argv[0] is set here; the list ends with
 * NULL): the one beside this program, else in ../libexec/coop, else in PATH. Returns only if there
 * is none: -ENOENT, or why it could not be run. */
int cli_sibling_exec(const char *name, char **argv);

#endif
