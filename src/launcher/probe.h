/* Finds out what this host can do, each thing by doing it in a child. */
#ifndef COOP_LAUNCHER_PROBE_H
#define COOP_LAUNCHER_PROBE_H

#include "sandbox/child/payload.h"

/* Sends one struct coop_host over the socket, and exits. */
_Noreturn void coop_probe(const struct coop_filters *filters);

#endif
