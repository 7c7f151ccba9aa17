#include "keeper/confine/folders.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "keeper/core/keeper.h"
#include "keeper/host/host.h"
#include "keeper/host/scouts.h"
#include "keeper/host/views.h"
#include "keeper/link/job.h"
#include "sandbox/layout/ghosts.h"
#include "sandbox/layout/silence.h"

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

/* The last descriptor of a removed folder has the disk free it: that may take its time. */
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
	size_t count = coop_ghosts_removed(coop_views_of(keeper)->ghosts, fds);
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

struct farewell {
	struct coop_ghost *list;
	size_t count;
};

static void drop_now(struct coop_keeper *keeper, struct coop_ghost *list, size_t count)
{
	coop_ghosts_drop(coop_views_of(keeper)->ghosts, list, count);
	coop_folders_free(keeper);
	coop_ghosts_free_list(list, count);
}

static void drop_later(struct coop_keeper *keeper, void *user)
{
	struct farewell *farewell = user;

	drop_now(keeper, farewell->list, farewell->count);
	free(farewell);
}

/* What of them may not answer, to be asked about; NULL: nothing. */
static int ask_about(const struct coop_keeper *keeper, const struct coop_ghost *list, size_t count,
		     struct coop_errand **ret)
{
	struct coop_errand *errand = NULL;
	int r = 0;

	for (size_t i = 0; i < count && r == 0; i++) {
		if (!coop_silence_holds(coop_silence_of(keeper), list[i].path))
			continue;
		if (!errand)
			errand = coop_errand_new();
		r = errand ? coop_errand_add(errand, "", list[i].path, true) : -ENOMEM;
	}
	/* So many are on few mounts: the others will answer as well. */
	if (r == -ENOMEM) {
		coop_errand_free(errand);
		return r;
	}
	*ret = errand;
	return 0;
}

void coop_folders_drop(struct coop_keeper *keeper, struct coop_ghost *list, size_t count)
{
	struct coop_errand *errand = NULL;

	if (!count) {
		coop_ghosts_free_list(list, count);
		return;
	}
	coop_silence_refresh(coop_silence_of(keeper));
	int r = ask_about(keeper, list, count, &errand);
	if (r == 0 && !errand) {
		drop_now(keeper, list, count);
		return;
	}
	struct farewell *farewell = r < 0 ? NULL : coop_mem_alloc(sizeof *farewell);
	if (farewell) {
		*farewell = (struct farewell){list, count};
		if (coop_scouts_send_alone(coop_host_of(keeper)->scouts, errand, drop_later,
					   farewell))
			return;
	}
	free(farewell);
	if (r == 0)
		coop_errand_free(errand);
	coop_ghosts_free_list(list, count);
}
