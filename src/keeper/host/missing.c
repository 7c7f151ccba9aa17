#include "keeper/host/missing.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "keeper/core/keeper.h"
#include "keeper/host/host.h"
#include "keeper/host/scouts.h"
#include "keeper/host/views.h"
#include "keeper/link/request.h"
#include "sandbox/layout/silence.h"

bool coop_missing_sockets(const struct coop_request *request)
{
	struct coop_keeper *keeper = request->keeper;

	return (coop_buf_size(&coop_views_of(keeper)->sockets.unseen) ||
		coop_views_of(keeper)->sockets.cold_count) &&
	       !request->sockets_looked_up && !request->sockets_missed &&
	       !coop_scouts_miss_sockets(coop_host_of(keeper)->scouts);
}

bool coop_missing_programs(const struct coop_request *request)
{
	return request->programs_lost ||
	       coop_buf_size(&request->programs) > request->programs_looked_up;
}

static bool has_program(const struct coop_request *request, const char *path)
{
	const char *known = (const char *)coop_buf_front(&request->programs);
	size_t size = coop_buf_size(&request->programs);

	for (size_t at = 0; at < size; at += strlen(known + at) + 1) {
		if (!strcmp(known + at, path))
			return true;
	}
	return false;
}

bool coop_missing_program(struct coop_request *request, const char *path)
{
	/* What is only not at hand is looked for here: there are many such names along a PATH. */
	if (coop_silence_ask(coop_silence_of(request->keeper), path) != -EREMOTE)
		return true;
	if (has_program(request, path))
		return !coop_missing_programs(request);
	if (coop_buf_append(&request->programs, path, strlen(path) + 1) < 0)
		request->programs_lost = true;
	return false;
}
