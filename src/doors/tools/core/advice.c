#include "doors/tools/core/advice.h"

#include <stdio.h>
#include <string.h>

#include "doors/tools/core/call.h"

/* The next right step after each code. */
static const struct {
	const char *code, *advice;
} advices[] = {
	{"invalid_input", "Correct the named argument and call again."},
	{"no_such_process",
	 "Call list_processes with include_finished true to see the ids that exist for you."},
	{"not_owner", "It belongs to an agent below you: you can look, wait and read, but not "
		      "change it. Ask its owner."},
	{"not_running",
	 "It has ended already. Call wait_for_process or read_process_output for its result."},
	{"exists", "Choose another name, or use the process that has it: call list_processes."},
	{"quota", "A limit is reached. Call list_processes, end what is not needed with "
		  "stop_process or release_process, then try again."},
	{"registry_full", "Too many processes run. Call list_processes, end what is not needed "
			  "with stop_process, then try again."},
	{"too_large", "Send less: split the input into several calls, or put it into a file."},
	{"closed", "Its stdin takes no more: it has ended, or was started without. Start it with "
		   "wait false and open_stdin true, or in a shell (open_shell)."},
	{"boundary_escape",
	 "The path leads outside of what you may use. Stay below the workspace."},
	{"capability_denied", "You may not set this. Leave it out."},
	{"permission_denied", "It is not allowed here, and trying again does not help. Do it "
			      "another way, or tell the user."},
	{"cancelled", "The call was cancelled. Call list_processes to see what is left."},
	{"persist_unsupported", "You may not start persistent processes. Leave the lease out."},
	{"sandbox_unavailable",
	 "This host cannot confine it as required. Tell the user; `coop doctor` explains."},
	{"spawn_failed", "Nothing was started. Check the program's name and path (run_command with "
			 "\"ls\" or \"which\")."},
	{"unavailable", "The keeper cannot do it now. Try again in a moment."},
	{"unreachable",
	 "The keeper could not be reached. Try again; if it stays so, tell the user."},
	{"internal",
	 "This is a fault of coop or a want of memory. Try again once, then tell the user."},
};

const char *coop_advice_of(const char *code)
{
	for (size_t i = 0; i < sizeof advices / sizeof advices[0]; i++)
		if (strcmp(advices[i].code, code) == 0)
			return advices[i].advice;
	return "Read the message, change what it names, and call again.";
}

json_t *coop_advice_error(const struct coop_error *error)
{
	json_t *details = json_loads(error->details, 0, NULL);
	/* A message that was too long may have been cut within a character. */
	json_t *message = coop_tool_text(error->message, strlen(error->message));
	json_t *value = json_pack("{s:s, s:o, s:s}", "code", error->code, "message", message,
				  "advice", coop_advice_of(error->code));

	if (value && details && json_object_size(details))
		(void)json_object_set(value, "details", details);
	json_decref(details);
	return value;
}

void coop_advice_take(struct coop_error *error, const struct coop_err *err,
		      const struct coop_tool *tool)
{
	size_t used;

	(void)snprintf(error->code, sizeof error->code, "%s", coop_err_name(err->code));
	(void)snprintf(error->message, sizeof error->message, "%s", err->message);
	(void)snprintf(error->details, sizeof error->details, "{%s}", err->details);
	if (strncmp(err->message, "there is no argument", 20) != 0)
		return;
	used = strlen(error->message);
	(void)snprintf(error->message + used, sizeof error->message - used, "; %s has %s",
		       tool->name, tool->input->name ? "" : "none");
	for (const struct coop_field *field = tool->input; field->name; field++) {
		used = strlen(error->message);
		(void)snprintf(error->message + used, sizeof error->message - used, "%s%s",
			       field == tool->input ? "" : ", ", field->name);
	}
}
