/* What the conformance suite asks a server for by name. In builds for tests only (option
 * conformance_fixtures), and there only with --conformance-fixtures; in all others nothing of it is
 * compiled. */
#ifndef COOP_MCP_FIXTURES_H
#define COOP_MCP_FIXTURES_H

#include "base/json/jsonw.h"
#include "doors/mcp/mcp.h"

#ifdef COOP_MCP_FIXTURES

/* A row of getopt's, for the programs that take it. */
#define COOP_MCP_FIXTURES_OPTION {"conformance-fixtures", 0, NULL, 'F'},

/* Whether the request was about a fixture and has been answered. One that asks for a task is turned
 * into a run_command, and goes on as such. */
bool coop_mcp_fixture_take(struct coop_mcp_request *request, const char *method);
/* Adds them to the list of tools. */
void coop_mcp_fixture_list(const struct coop_mcp *mcp, struct coop_jsonw *w);

#else

#define COOP_MCP_FIXTURES_OPTION

static inline bool coop_mcp_fixture_take(struct coop_mcp_request *request, const char *method)
{
	(void)request;
	(void)method;
	return false;
}

static inline void coop_mcp_fixture_list(const struct coop_mcp *mcp, struct coop_jsonw *w)
{
	(void)mcp;
	(void)w;
}

#endif

#endif
