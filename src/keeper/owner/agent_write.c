#include "base/json/jsonw.h"
#include "keeper/owner/agent.h"
#include "keeper/owner/agent_extras.h"
#include "keeper/owner/agent_settings.h"

/* What holds after all above has had its word, beside what was set for this agent alone. */
static void write_effective(const struct coop_agent *agent, struct coop_jsonw *w)
{
	coop_jsonw_begin(w, "effective");
	coop_jsonw_int(w, "max_running", coop_agent_effective_running(agent));
	coop_jsonw_int(w, "max_buffer_bytes", coop_agent_effective_buffer(agent));
	coop_jsonw_int(w, "max_finished", coop_agent_max_finished(agent));
	coop_jsonw_bool(w, "persistent", coop_agent_may_persist(agent));
	coop_jsonw_bool(w, "restricted", coop_agent_restricted(agent));
	coop_workspace_write(coop_agent_workspace(agent), w, "workspace");
	coop_jsonw_end(w);
}

void coop_agent_write(const struct coop_agent *agent, struct coop_jsonw *w, const char *name)
{
	coop_jsonw_begin(w, name);
	coop_jsonw_int(w, "id", agent->id);
	coop_jsonw_string(w, "principal", agent->principal->name);
	coop_jsonw_string(w, "path", agent->path);
	coop_jsonw_string(w, "name", agent->name);
	coop_jsonw_time(w, "created_at", agent->created_at);
	coop_agent_settings_write(&agent->settings, w, "settings");
	write_effective(agent, w);
	coop_jsonw_begin(w, "use");
	coop_jsonw_uint(w, "running", agent->live);
	coop_jsonw_uint(w, "finished", agent->finished);
	coop_jsonw_uint(w, "buffer_bytes", agent->buffer_bytes);
	coop_jsonw_uint(w, "unread_bytes", agent->unread_bytes);
	coop_jsonw_uint(w, "sessions", agent->session_count);
	coop_jsonw_end(w);
	coop_jsonw_uint(w, "tokens", agent->token_count);
	coop_agent_extras_write(agent, w);
	coop_jsonw_end(w);
}
