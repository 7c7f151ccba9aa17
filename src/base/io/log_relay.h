/* A log that its program never waits for. Lines go into a pipe; a thread of another process, which
 * outlives the program, carries them to where stderr leads: a file on a disk that stands still, or
 * a pipe that nobody reads, stops only that thread. Lines that find the pipe full are left out and
 * counted (coop_log). What the program has logged before it died, however it died, is carried. */
#ifndef COOP_BASE_LOG_RELAY_H
#define COOP_BASE_LOG_RELAY_H

#include <pthread.h>
#include <stdbool.h>

#define COOP_LOG_RELAY_END_MS 2000 /* for the last lines, where the file or its reader is slow */

struct coop_log_relay {
	int read_end, write_end; /* -1: not this process's */
	bool carried;
	pthread_t thread;
};

/* Before both processes part. 0 or -errno. */
int coop_log_relay_open(struct coop_log_relay *relay);

/* In the process that logs: from now on its stderr is the pipe. Should the carrier be gone, its
 * lines go to where stderr led before. */
void coop_log_relay_log(struct coop_log_relay *relay);

/* In the process that carries, whose stderr stays. Without a thread the lines are carried at the
 * end, as far as they fit into the pipe. */
void coop_log_relay_carry(struct coop_log_relay *relay);

/* Likewise, when all who had the pipe as their stderr are gone: carries the rest. */
void coop_log_relay_end(struct coop_log_relay *relay);

#endif
