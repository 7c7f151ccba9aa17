/* Shell patterns (* ? [..] \x) over whole texts, where * also takes slashes. */
#ifndef COOP_BASE_GLOB_H
#define COOP_BASE_GLOB_H

#include <stdbool.h>
#include <stddef.h>

/* Whether the text has a character that makes it a pattern. */
bool coop_glob_special(const char *text);

/* Whether all of `text` fits. The work is at most the product of both lengths; `budget` (steps,
 * shared between calls; NULL: unlimited) is counted down, and a match that runs out of it counts as
 * found: who pays for a rule that is too dear is the one who is judged by it. */
bool coop_glob_match(const char *pattern, const char *text, size_t *budget);

#endif
