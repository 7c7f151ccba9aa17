/* Takes from the gateway all that it does not need to speak with clients, before it reads their
 * first byte. It has read its files and opened its sockets by then; connections to the keeper come
 * from the broker. */
#ifndef COOP_HTTP_CONFINE_H
#define COOP_HTTP_CONFINE_H

#include <stddef.h>

/* Room for the text in every case. */
#define COOP_CONFINE_TEXT 128

/* What holds afterwards, for good:
 * - no privileges: no_new_privs, no capabilities, as root also another user (65534) without groups;
 * no core dumps, no tracing by others;
 * - a filter of system calls (seccomp): what is allowed stands in confine_calls.c. No program is
 * executed, nothing is opened, connected or bound, no thread or process is started;
 * - where the host gives them: namespaces of its own, with an empty read-only folder as its root
 * and a network without interfaces (sockets that are open stay what they are), and Landlock without
 * any right. Called once, with a single thread. 0, with words for what holds ("namespaces,
 * landlock, seccomp"); or a negative errno: then the process must not go on. A build with
 * sanitizers keeps its files and has a lighter filter, which the words say: reports have to be
 * written. */
int coop_confine(char *ret_text, size_t size);

#endif
