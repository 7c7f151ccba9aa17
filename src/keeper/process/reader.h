/* Named readers: how far somebody has read in an output, kept with the process so that the next
 * reader of that name goes on there, over whichever connection it comes. */
#ifndef COOP_KEEPER_READER_H
#define COOP_KEEPER_READER_H

#include <stdint.h>

#include "keeper/process/kinds.h"

/* Of a process; beyond, the one that was not used for longest goes. */
#define COOP_READERS_MAX 64u

struct coop_agent;
struct coop_process;

void coop_readers_init(struct coop_readers *readers);
void coop_readers_clear(struct coop_readers *readers);

/* Where the agent's reader of that name is in a stream (0: all of them together, by event). 0 for
 * one that was never moved. */
uint64_t coop_reader_position(struct coop_process *process, const struct coop_agent *agent,
			      const char *name, unsigned stream);

/* Puts it there. 0 or -ENOMEM: nothing has changed. */
int coop_reader_move(struct coop_process *process, const struct coop_agent *agent, const char *name,
		     unsigned stream, uint64_t position);

#endif
