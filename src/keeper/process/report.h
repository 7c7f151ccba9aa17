/* What the kernel, and a child over its wire, report of a process: its program runs, has ended, all
 * of it is gone; or it could not be started. */
#ifndef COOP_KEEPER_REPORT_H
#define COOP_KEEPER_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

struct coop_observer;
struct coop_process;
struct coop_wire;

/* CPU time of a reaped process and of the children that it reaped. */
uint64_t coop_report_cpu_ns(const struct rusage *usage);

/* The program has been executed: clocks start. */
void coop_report_executed(struct coop_process *process);

/* The kernel reported the leader's end; status as of waitpid. */
void coop_report_ended(struct coop_process *process, int wait_status, const struct rusage *usage);

/* The first process told of the program's end, and whether anybody else is left. */
void coop_report_program_ended(struct coop_process *process, int wait_status,
			       const struct rusage *usage, bool alone);

/* The first process of its namespace has a wire to us: from now on it is the process's own, and
 * what comes over it is heard here. */
void coop_report_listen(struct coop_process *process, struct coop_wire *wire);

/* Our own child has been reaped: with a namespace nobody is left. */
void coop_report_root_reaped(struct coop_process *process);

/* A spawn that failed leaves a finished record (record_failure). */
void coop_report_failed(struct coop_process *process, int exit_code);

/* The kernel has shown that nobody of its tree is left. */
void coop_report_emptied(struct coop_process *process);

/* It takes too long. */
extern const struct coop_observer coop_report_observer;

#endif
