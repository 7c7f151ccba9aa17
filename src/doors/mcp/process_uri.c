#include "doors/mcp/process_uri.h"

#include <stdio.h>
#include <string.h>

#define PREFIX "coop://process/"
#define OUTPUT "/output"

/* psh-<hex>-<n> */
static bool is_id(const char *text, size_t size)
{
	static const char digits[] = "0123456789abcdef-";

	if (size < 7 || size >= COOP_ID_SIZE || strncmp(text, "psh-", 4) != 0)
		return false;
	for (size_t i = 4; i < size; i++)
		if (!memchr(digits, text[i], sizeof digits - 1))
			return false;
	return true;
}

bool coop_mcp_process_uri_read(const char *uri, struct coop_mcp_process_uri *ret)
{
	if (!uri || strncmp(uri, PREFIX, strlen(PREFIX)) != 0)
		return false;
	const char *id = uri + strlen(PREFIX);
	size_t size = strcspn(id, "/");
	bool output = !strcmp(id + size, OUTPUT);

	if ((!output && id[size]) || !is_id(id, size))
		return false;
	memcpy(ret->id, id, size);
	ret->id[size] = 0;
	ret->output = output;
	return true;
}

void coop_mcp_process_uri_write(const char *id, bool output, char ret[COOP_MCP_URI_SIZE])
{
	(void)snprintf(ret, COOP_MCP_URI_SIZE, PREFIX "%s%s", id, output ? OUTPUT : "");
}
