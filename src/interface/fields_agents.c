#include "interface/field_rows.h"
#include "interface/fields.h"

const struct coop_field coop_results_check[] = {
	ALWAYS("status", STRING),         MAYBE_NULL("exit_code", INT),
	MAYBE_NULL("pid", INT),           ALWAYS("stderr", STRING),
	MAYBE_NULL("error", STRING),      ALWAYS("request", OBJECT),
	ALWAYS("command_policy", OBJECT), END,
};

const struct coop_field coop_results_cancel[] = {ALWAYS("cancelled", STRINGS),
						 ALWAYS("survivors", INT), END};

static const struct coop_field session_fields[] = {
	ALWAYS("id", STRING),         MAYBE_NULL("label", STRING),
	ALWAYS("agent", STRING),      ALWAYS("agent_path", STRING),
	ALWAYS("created_at", STRING), MAYBE_NULL("expires_at", STRING),
	ALWAYS("processes", INT),     END,
};

const struct coop_field coop_results_session[] = {OF("session", OBJECT, session_fields), END};
const struct coop_field coop_results_sessions[] = {OF("sessions", OBJECTS, session_fields), END};

const struct coop_field coop_results_ended[] = {ALWAYS("ended", INT), ALWAYS("survivors", INT),
						END};

const struct coop_field coop_results_login[] = {
	ALWAYS("principal", STRING),
	ALWAYS("agent", STRING),
	ALWAYS("operator", BOOL),
	END,
};

const struct coop_field coop_results_ceiling[] = {
	MAYBE_NULL("sandbox", OBJECT),
	MAYBE_NULL("limits", OBJECT),
	END,
};

static const struct coop_field agent_fields[] = {
	ALWAYS("id", INT),
	ALWAYS("principal", STRING),
	ALWAYS("path", STRING),
	ALWAYS("name", STRING),
	ALWAYS("created_at", STRING),
	ALWAYS("settings", OBJECT),
	ALWAYS("effective", OBJECT),
	ALWAYS("use", OBJECT),
	ALWAYS("tokens", INT),
	ALWAYS("env_names", STRINGS),
	ALWAYS("metadata", MAP),
	MAYBE_NULL("expires_at", STRING),
	MAYBE_NULL("folder", STRING),
	END,
};

const struct coop_field coop_results_agent[] = {OF("agent", OBJECT, agent_fields), END};
const struct coop_field coop_results_agents[] = {OF("agents", OBJECTS, agent_fields),
						 ALWAYS("more", BOOL), END};

const struct coop_field coop_results_removed[] = {ALWAYS("agents", INT), ALWAYS("ended", INT),
						  ALWAYS("survivors", INT), END};

const struct coop_field coop_results_token[] = {
	ALWAYS("token", STRING),
	ALWAYS("id", INT),
	ALWAYS("agent", STRING),
	MAYBE_NULL("expires_at", STRING),
	END,
};

static const struct coop_field token_fields[] = {
	ALWAYS("id", INT),
	ALWAYS("agent", STRING),
	MAYBE_NULL("label", STRING),
	ALWAYS("created_at", STRING),
	MAYBE_NULL("expires_at", STRING),
	END,
};

const struct coop_field coop_results_tokens[] = {OF("tokens", OBJECTS, token_fields), END};

const struct coop_field coop_results_revoked[] = {ALWAYS("revoked", BOOL), END};

const struct coop_field coop_results_history[] = {
	{.name = "processes", .type = COOP_FIELD_OBJECTS, .required = true},
	ALWAYS("more", BOOL),
	END,
};

const struct coop_field coop_results_audit_tail[] = {
	{.name = "lines", .type = COOP_FIELD_OBJECTS, .required = true},
	END,
};

const struct coop_field coop_results_audit_verify[] = {
	ALWAYS("good", BOOL),    ALWAYS("lines", INT),        ALWAYS("files", INT),
	ALWAYS("first", INT),    ALWAYS("last", INT),         MAYBE_NULL("file", STRING),
	MAYBE_NULL("line", INT), MAYBE_NULL("fault", STRING), END,
};

const struct coop_field coop_results_reload[] = {MAYBE_NULL("path", STRING), END};
