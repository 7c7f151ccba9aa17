/* MCP over a pair of pipes: one message a line. */
#ifndef COOP_MCP_ON_STDIO_H
#define COOP_MCP_ON_STDIO_H

#include <uv.h>

#include "doors/mcp/mcp.h"

struct coop_mcp_stdio;

/* Serves `mcp` on two descriptors until the client closes its end, then calls `ended`. Lines beyond
 * `line_max` bytes are refused. NULL without memory. */
struct coop_mcp_stdio *coop_mcp_stdio_new(uv_loop_t *loop, struct coop_mcp *mcp, int in, int out,
					  size_t line_max, void (*ended)(void *context),
					  void *context);
/* Takes no more, gives what is being answered a moment, then calls `ended`. */
void coop_mcp_stdio_finish(struct coop_mcp_stdio *stdio);
/* Drops everything; freed in a later turn of the loop. */
void coop_mcp_stdio_close(struct coop_mcp_stdio *stdio);

#endif
