/* Tables that several operations share. */
#ifndef COOP_INTERFACE_FIELDS_H
#define COOP_INTERFACE_FIELDS_H

#include "interface/schema.h"

extern const struct coop_field coop_sandbox_fields[], coop_limits_fields[], coop_injection_fields[],
	coop_record_fields[], coop_hold_fields[];

/* What the database keeps of an agent's settings. */
extern const struct coop_field coop_fields_agent_stored[];

#endif
