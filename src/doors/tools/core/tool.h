/* One tool: what a model sees of it, and what carries it out. The table (table.h) lists them all;
 * the command line, MCP and HTTP offer it. */
#ifndef COOP_TOOLS_TOOL_H
#define COOP_TOOLS_TOOL_H

#include "interface/schema.h"

struct coop_tool_call;

/* What a tool does to the world; MCP's four annotations follow from it. */
enum coop_tool_kind {
	COOP_TOOL_LOOK,   /* changes nothing */
	COOP_TOOL_MOVE,   /* changes nothing but the caller's own reading position */
	COOP_TOOL_START,  /* starts something, or writes to it */
	COOP_TOOL_ADJUST, /* changes it, and may be undone */
	COOP_TOOL_END,    /* ends it */
};

/* Which lists show it. */
enum { COOP_TOOLS_DEFAULT = 1, COOP_TOOLS_HARN = 2, COOP_TOOLS_ALL = 3 };

struct coop_tool {
	const char *name, *title;
	/* for a model: what it does, when to use it, what to call next. Short: all lists are
	 * paid for by every conversation */
	const char *description;
	enum coop_tool_kind kind;
	unsigned sets;
	/* Arguments (checked before `run`: nothing unknown, no wrong type) and what results may
	 * have. Output fields need no docs and are never required, as errors have the same
	 * schema. */
	const struct coop_field *input, *output;
	/* The same tool in harn's words, shown where only that set is, and meant where the
	 * arguments are of that form. NULL: it has one form. */
	const struct coop_tool *harn;
	bool waits;         /* its answer may take a while, though it only looks */
	bool checks_itself; /* `run` checks its arguments */
	/* Carries it out, in a fiber: what it calls (call.h) may suspend it, and other calls run
	 * meanwhile. 0: call->result is the answer (and call->failed says whether that is a
	 * negative one). Negative: call->error says why; call->failed then says that the call was
	 * right and only the answer is no. */
	int (*run)(struct coop_tool_call *call);
};

#endif
