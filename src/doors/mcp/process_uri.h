/* Addresses of what a process has to show: coop://process/{id} is its record,
 * coop://process/{id}/output what it wrote. */
#ifndef COOP_MCP_PROCESS_URI_H
#define COOP_MCP_PROCESS_URI_H

#include <stdbool.h>

#include "coop.h"

#define COOP_MCP_URI_RECORD "coop://process/{id}"
#define COOP_MCP_URI_OUTPUT "coop://process/{id}/output"
/* Room for either, with a NUL. */
#define COOP_MCP_URI_SIZE (COOP_ID_SIZE + 32)

struct coop_mcp_process_uri {
	char id[COOP_ID_SIZE];
	bool output; /* else the record */
};

/* Whether it is such an address. Only whole ids count: a tag or the beginning of an id may mean
 * another process tomorrow. */
bool coop_mcp_process_uri_read(const char *uri, struct coop_mcp_process_uri *ret);
void coop_mcp_process_uri_write(const char *id, bool output, char ret[COOP_MCP_URI_SIZE]);

#endif
