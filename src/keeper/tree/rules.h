/* What becomes of a process's tree by rule: its limits of time, what on_exit asks for, how long its
 * record is kept. */
#ifndef COOP_KEEPER_RULES_H
#define COOP_KEEPER_RULES_H

struct coop_conn_watch;
struct coop_observer;

extern const struct coop_observer coop_tree_observer;
extern const struct coop_conn_watch coop_tree_watch;

#endif
