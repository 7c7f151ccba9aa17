/* Whether a process waits for input, by what the kernel says: the system call that a thread of its
 * tree is blocked in, and the file behind that call's descriptor. */
#ifndef COOP_KEEPER_BLOCKED_H
#define COOP_KEEPER_BLOCKED_H

struct coop_process;

enum coop_known { COOP_NO, COOP_YES, COOP_UNKNOWN };

/* Blocked reading its stdin pipe or terminal. */
enum coop_known coop_blocked_on_stdin(const struct coop_process *process);

/* The terminal reads whole lines without echoing them: a password prompt. Unknown where a program
 * does its own echo. */
enum coop_known coop_blocked_echo_off(const struct coop_process *process);

#endif
