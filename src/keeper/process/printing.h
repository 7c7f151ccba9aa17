/* What a process prints, and its life: bytes restart its idle clock, the end of its streams lets
 * its end be told, a full spool may end it. */
#ifndef COOP_KEEPER_PRINTING_H
#define COOP_KEEPER_PRINTING_H

struct coop_output_owner;

/* The output of each process belongs to it. */
extern const struct coop_output_owner coop_printing;

#endif
