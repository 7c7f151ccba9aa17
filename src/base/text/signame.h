/* Names of signals: SIGKILL, SIGRTMIN+3. One naming, used everywhere. */
#ifndef COOP_BASE_SIGNAME_H
#define COOP_BASE_SIGNAME_H

#include <stddef.h>

#define COOP_SIGNAME_TEXT 16

/* Writes the name of a signal number of this system. */
void coop_signame_format(int number, char ret_text[COOP_SIGNAME_TEXT]);

/* Takes a name in any letter case, with or without SIG (also RTMIN+n, RTMAX-n), or a decimal
 * number. Returns the number, or -EINVAL (0 and numbers out of range included). */
int coop_signame_parse(const char *text);

#endif
