#include "keeper/folders.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "keeper/job.h"
#include "keeper/keeper.h"
#include "sandbox/ghosts.h"

struct work {
	struct coop_job job;
	size_t count;
	int fds[COOP_GHOSTS_REMOVED_MAX];
};

static void close_all(const int *fds, size_t count)
{
	for (size_t i = 0; i < count; i++)
		(void)close(fds[i]);
}

static void run(struct coop_job *job)
{
	const struct work *work = (const struct work *)job;

	close_all(work->fds, work->count);
}

static void done(struct coop_job *job)
{
	free(job);
}

void coop_folders_free(struct coop_keeper *keeper)
{
	int fds[COOP_GHOSTS_REMOVED_MAX];
	size_t count = coop_ghosts_removed(keeper->ghosts, fds);
	struct work *work = count ? coop_mem_zalloc(sizeof *work) : NULL;

	if (!work) {
		close_all(fds, count);
		return;
	}
	work->count = count;
	memcpy(work->fds, fds, count * sizeof *fds);
	work->job.run = run;
	work->job.done = done;
	coop_job_begin(keeper, &work->job);
}
