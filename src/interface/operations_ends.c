/* Operations that end processes, or make them stand still. */
#include "interface/choices.h"
#include "interface/field_rows.h"
#include "interface/fields.h"
#include "interface/operations.h"

OPERATION(signal, USE, "send one signal",
	  ARGS(ID, ARG_SIGNAL("name (SIGTERM, term) or number", .required = true),
	       ENUM("target", coop_choices_target,
		    "group (default), process, tree, or foreground: what runs in its terminal")),
	  RESULT(ALWAYS("sent", BOOL), ALWAYS("signal", INT), ALWAYS("signal_name", STRING),
		 MAYBE_NULL("group", INT), ALWAYS("state", STRING)));

static const struct coop_field frozen_result[] = {ALWAYS("id", STRING), ALWAYS("frozen", BOOL),
						  END};

OPERATION(freeze, USE, "stop every process of the tree until it is thawed", .waits = true, ARGS(ID),
	  .result = frozen_result);

OPERATION(thaw, USE, "let a frozen tree go on", .waits = true, ARGS(ID), .result = frozen_result);

static const struct coop_field receipt_result[] = {KILL_PROOF, ALWAYS("status", STRING),
						   OF("process", OBJECT, coop_record_fields), END};

OPERATION(kill, USE, "kill the whole tree and prove it", .waits = true, ARGS(ID),
	  .result = receipt_result);

OPERATION(stop, USE, "SIGTERM, grace, then kill", .waits = true,
	  ARGS(ID, ARG_GRACE("between SIGTERM and the kill; default 5000")),
	  .result = receipt_result);
