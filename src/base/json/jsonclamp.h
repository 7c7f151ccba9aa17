/* Numbers that a JSON parser refuses because they are too large. */
#ifndef COOP_BASE_JSONCLAMP_H
#define COOP_BASE_JSONCLAMP_H

#include <stddef.h>

/* Replaces, in place, every number that no 64-bit integer or double can hold by the largest that
 * can: whoever checks the value then refuses it by its name, as it would any other that is out of
 * range. Only for text that failed to parse for that reason: some that would just fit are replaced
 * too. */
void coop_jsonclamp(char *text, size_t size);

#endif
