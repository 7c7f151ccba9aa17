#include "keeper/ops/op_look.h"

#include "base/json/jsonw.h"
#include "interface/choices.h"
#include "interface/err.h"
#include "keeper/core/keeper.h"
#include "keeper/core/meters.h"
#include "keeper/link/connection.h"
#include "keeper/link/connections.h"
#include "keeper/link/request.h"
#include "keeper/ops/notices.h"
#include "keeper/ops/op_doctor.h"
#include "keeper/ops/resources.h"
#include "keeper/owner/agent.h"
#include "keeper/process/cause.h"
#include "keeper/process/phase.h"
#include "keeper/process/process.h"
#include "keeper/process/registry.h"

_Static_assert(COOP_CAUSE_COUNT <= COOP_METERS_CAUSES, "a cause would have no meter");

static void write_processes(const struct coop_keeper *keeper, struct coop_jsonw *w)
{
	uint64_t counts[COOP_STATE_SIGNALED + 1] = {0};

	COOP_LIST_EACH(coop_registry_all(keeper), link)
	{
		const struct coop_process *process =
			COOP_LIST_ITEM(link, struct coop_process, in.all);
		if (!coop_process_receipt(process))
			counts[coop_process_state(process)]++;
	}
	coop_jsonw_begin(w, "processes");
	for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
		coop_jsonw_uint(w, coop_choices_state[i], counts[i]);
	coop_jsonw_end(w);
}

static void write_meters(const struct coop_meters *meters, struct coop_jsonw *w)
{
	coop_jsonw_uint(w, "starts", meters->starts);
	coop_jsonw_uint(w, "start_failures", meters->start_failures);
	coop_jsonw_begin(w, "ends");
	for (enum coop_cause cause = COOP_CAUSE_SELF_EXIT; cause < COOP_CAUSE_COUNT; cause++)
		coop_jsonw_uint(w, coop_cause_name(cause), meters->ends[cause]);
	coop_jsonw_end(w);
	coop_histogram_write(&meters->spawn, w, "spawn_seconds");
	coop_histogram_write(&meters->exit, w, "exit_seconds");
	coop_jsonw_begin(w, "bytes");
	coop_jsonw_uint(w, "captured", meters->captured);
	coop_jsonw_uint(w, "dropped", meters->dropped);
	coop_jsonw_uint(w, "sent", meters->sent);
	coop_jsonw_end(w);
	coop_jsonw_uint(w, "gaps", meters->gaps);
}

void coop_op_metrics(struct coop_request *request)
{
	struct coop_keeper *keeper = request->keeper;
	struct coop_err err;
	struct coop_jsonw w;

	if (!coop_agent_is_main(request->conn->agent)) {
		(void)coop_err_set(&err, COOP_PERMISSION_DENIED,
				   "metrics are for main of the user whose keeper it is");
		coop_request_fail(request, &err);
		return;
	}
	coop_request_result(request, &w);
	coop_jsonw_time(&w, "started_at", coop_place_of(keeper)->started_at);
	write_processes(keeper, &w);
	write_meters(coop_meters_of(keeper), &w);
	coop_jsonw_uint(&w, "subscribers",
			coop_meters_of(keeper)->followers + coop_notices_count(keeper));
	coop_doctor_write_states(keeper, &w, "protections");
	coop_jsonw_begin(&w, "memory");
	coop_jsonw_uint(&w, "rss_bytes", coop_resources_rss());
	coop_jsonw_uint(&w, "buffer_bytes", coop_resources_buffers(keeper));
	coop_jsonw_end(&w);
	coop_resources_write_fds(&w, "fds");
	coop_jsonw_uint(&w, "connections", coop_connections_count(keeper));
	coop_jsonw_uint(&w, "connections_waiting",
			coop_connections_of(keeper)->admission.nobody_count);
	coop_jsonw_uint(&w, "connections_refused", coop_connections_of(keeper)->admission.refused);
	coop_jsonw_uint(&w, "connections_cut", coop_connections_of(keeper)->admission.cut);
	coop_request_end(request, &w);
}
