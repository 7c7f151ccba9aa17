/* Processes as resources: what the files about them share. */
#ifndef COOP_MCP_RESOURCES_H
#define COOP_MCP_RESOURCES_H

#include "doors/mcp/mcp.h"
#include "doors/mcp/process_uri.h"

/* Processes on one page of resources/list; each has two resources. */
#define COOP_MCP_PAGE 50
/* Bytes of output that one resources/read brings at most: the latest ones. */
#define COOP_MCP_OUTPUT_MAX (1u << 20)
/* A result about a process that has ended may be kept that long: what it left behind may still
 * write. */
#define COOP_MCP_ENDED_TTL_MS 5000

/* There is no such thing, or none that the caller may see: the same to it. */
void coop_mcp_resource_missing(struct coop_mcp_request *request, const char *uri);
/* What the keeper refused, as the answer to a request about a resource. */
void coop_mcp_resource_refused(struct coop_mcp_request *request, const char *uri,
			       const struct coop_error *error);
/* Answers resources/read of a process's output (resource_output.c). `record` is borrowed. */
void coop_mcp_resource_output(struct coop_mcp_request *request, const char *uri,
			      const json_t *record);

#endif
