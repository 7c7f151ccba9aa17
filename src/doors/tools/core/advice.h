/* Errors as a model is told them: what happened, and what to call next. The next step follows from
 * the code, in one place. */
#ifndef COOP_TOOLS_ADVICE_H
#define COOP_TOOLS_ADVICE_H

#include <jansson.h>

#include "coop.h"
#include "doors/tools/core/tool.h"
#include "interface/err.h"

/* The next right step after an error of that code. */
const char *coop_advice_of(const char *code);

/* {"code", "message", "advice", "details"?}; NULL without memory. */
json_t *coop_advice_error(const struct coop_error *error);
/* Takes over what the check of arguments found; unknown ones are told together with those that the
 * tool has. */
void coop_advice_take(struct coop_error *error, const struct coop_err *err,
		      const struct coop_tool *tool);

#endif
