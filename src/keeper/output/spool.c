#include "keeper/output/spool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <uv.h>

#include "base/io/paths.h"
#include "base/mem.h"
#include "keeper/conf/conf.h"
#include "keeper/core/keeper.h"
#include "keeper/core/life.h"
#include "keeper/link/job.h"
#include "keeper/output/output.h"
#include "keeper/output/ring.h"
#include "records/spool_files.h"

struct coop_spools {
	char dir[4096]; /* chosen at start; in private mode "" until the first spool */
	uint64_t bytes; /* on disk or on their way */
};

struct coop_spool {
	unsigned refs; /* the process's, and one for each job under way */
	struct coop_spool_files files;
	uint64_t bytes; /* on disk or on their way, of all files */
	uv_work_t removal;
	struct coop_keeper *keeper;
};

/* One piece of work for the helper thread. It runs them one after another, so files grow in order
 * of arrival. */
struct job {
	uv_work_t work;
	struct coop_output *output; /* held */
	struct coop_spool *spool;   /* likewise: a record may give it up meanwhile */
	struct coop_outlet *stream;
	unsigned file; /* that is read */
	uint64_t position;
	size_t size;
	int error;
	bool writes;
	coop_spool_got got;
	void *user;
	uint8_t bytes[];
};

/* On the loop's thread alone, so that the count needs no lock. */
static void drop(struct coop_spool *spool)
{
	if (--spool->refs)
		return;
	coop_spool_files_clear(&spool->files);
	free(spool);
}

static void remove_files(uv_work_t *work)
{
	const struct coop_spool *spool = work->data;

	coop_spool_files_remove(&spool->files);
}

static void removed(uv_work_t *work, int status)
{
	struct coop_spool *spool = work->data;

	(void)status; /* nothing here is ever cancelled */
	coop_life_disk_end(spool->keeper);
	drop(spool);
}

/* By the helper thread, behind all writes that were queued before. */
void coop_spool_discard(struct coop_spool *spool)
{
	if (!spool)
		return;
	spool->removal.data = spool;
	coop_life_disk_begin(spool->keeper);
	(void)uv_queue_work(coop_loop_of(spool->keeper), &spool->removal, remove_files, removed);
}

struct coop_spools *coop_spools_new(void)
{
	return coop_mem_zalloc(sizeof(struct coop_spools));
}

const char *coop_spool_dir(const struct coop_keeper *keeper)
{
	return coop_spools_of(keeper)->dir;
}

uint64_t coop_spool_bytes(const struct coop_keeper *keeper)
{
	return coop_spools_of(keeper)->bytes;
}

/* A random name below: what an earlier keeper left, or somebody put there, is not in it. */
int coop_spool_clean(struct coop_keeper *keeper)
{
	struct coop_spools *spools = coop_spools_of(keeper);
	uint64_t random[2];
	char dir[4200];

	if (!*coop_place_of(keeper)->state_dir)
		return 0;
	(void)snprintf(dir, sizeof dir, "%s/spool", coop_place_of(keeper)->state_dir);
	coop_paths_remove_all(dir);
	if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
		return -EIO;
	int n = snprintf(spools->dir, sizeof spools->dir, "%s/%016llx%016llx", dir,
			 (unsigned long long)random[0], (unsigned long long)random[1]);
	return n < 0 || (size_t)n >= sizeof spools->dir ? -ENAMETOOLONG : 0;
}

void coop_spool_remove(struct coop_keeper *keeper)
{
	struct coop_spools *spools = coop_spools_of(keeper);

	if (*spools->dir)
		coop_paths_remove_all(spools->dir);
	spools->dir[0] = 0;
}

/* One without a state folder serves one client alone, and makes its folder when that wants it. */
static int private_folder(struct coop_keeper *keeper)
{
	uint64_t random;
	char folder[64];
	struct coop_spools *spools = coop_spools_of(keeper);

	if (*spools->dir)
		return 0;
	if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
		return -EIO;
	(void)snprintf(folder, sizeof folder, "/tmp/coop-private-%016llx",
		       (unsigned long long)random);
	int r = coop_paths_make_dir(folder);
	if (r == 0)
		(void)snprintf(spools->dir, sizeof spools->dir, "%s", folder);
	return r;
}

/* Names the files that the process needs. */
static int name_files(const struct coop_output *output, struct coop_spool *spool)
{
	unsigned streams = output->count == 2 ? 1 : 0;

	for (int i = 0; i < output->count; i++)
		streams |= 1u << output->streams[i].number;
	int r = private_folder(spool->keeper);
	return r < 0 ? r
		     : coop_spool_files_name(&spool->files, coop_spools_of(spool->keeper)->dir,
					     streams);
}

/* The files of a process that is to be started. */
struct making {
	struct coop_job job;
	struct coop_spool *spool;
	coop_spool_made made;
};

static void make(struct coop_job *job)
{
	const struct making *making = (struct making *)job;

	job->result =
		coop_spool_files_make(&making->spool->files, coop_spools_of(job->keeper)->dir);
}

static void cannot(struct coop_err *err, int error)
{
	(void)coop_err_set(err, COOP_SPAWN_FAILED,
			   "the spool files cannot be made in the state folder: %s",
			   strerror(-error));
	coop_err_detail(err, "step", "spool");
	coop_err_detail(err, "errno", coop_err_errno_name(-error));
}

/* Whoever asked may be gone: then nobody will use the files. */
static void made(struct coop_job *job)
{
	struct making *making = (struct making *)job;
	struct coop_request *request = coop_job_release(job);
	struct coop_spool *spool = making->spool;

	if (job->result < 0) {
		cannot(&job->err, job->result);
		drop(spool);
		spool = NULL;
	}
	if (request)
		making->made(request, spool, &job->err);
	else
		coop_spool_discard(spool);
	free(making);
}

int coop_spool_make(const struct coop_output *output, struct coop_request *request,
		    coop_spool_made then, struct coop_err *err)
{
	struct coop_keeper *keeper = output->keeper;
	struct making *making = coop_mem_zalloc(sizeof *making);
	struct coop_spool *spool = coop_mem_zalloc(sizeof *spool);
	int r = -ENOMEM;

	if (making && spool) {
		*spool = (struct coop_spool){.refs = 1, .keeper = keeper};
		r = name_files(output, spool);
	}
	if (r < 0) {
		free(making);
		free(spool);
		cannot(err, r);
		return r;
	}
	making->spool = spool;
	making->made = then;
	making->job.request = request;
	making->job.run = make;
	making->job.done = made;
	coop_job_begin(keeper, &making->job);
	return 0;
}

const char *coop_spool_path(const struct coop_output *output, unsigned stream)
{
	if (!output->spool)
		return NULL;
	if (stream == 0 && output->count == 1)
		stream = output->streams[0].number;
	return output->spool->files.paths[stream];
}

bool coop_spool_pending(const struct coop_outlet *stream)
{
	return stream->overflow == COOP_OVERFLOW_SPOOL && stream->spooled < stream->fed;
}

static void work(uv_work_t *request)
{
	struct job *job = request->data;
	char *const *paths = job->spool->files.paths;

	if (!job->writes) {
		job->size = coop_spool_files_read(paths[job->file], job->position, job->bytes,
						  job->size);
		return;
	}
	job->error = coop_spool_files_append(paths[job->stream->number], job->bytes, job->size);
	if (job->error == 0 && paths[0])
		job->error = coop_spool_files_append(paths[0], job->bytes, job->size);
}

static void stop_spool(struct coop_outlet *stream, int error)
{
	if (stream->spool_stopped)
		return;
	stream->spool_stopped = true;
	stream->output->owner->spool_stopped(stream, error);
}

/* Only what lies on disk without a hole counts as spooled: a write behind one that failed is of no
 * use to a reader. */
static void wrote(struct job *job)
{
	struct coop_outlet *stream = job->stream;

	stream->spool_jobs--;
	if (job->error == 0 && stream->spooled == job->position)
		stream->spooled += job->size;
	else
		stop_spool(stream, -job->error);
	/* After a fault what was fed is not going to be on disk: it holds nothing up any more. */
	if (stream->spool_stopped && job->error)
		stream->fed = stream->spooled;
	coop_stream_resume(stream);
	job->output->owner->changed(job->output);
}

static void after_work(uv_work_t *request, int status)
{
	struct job *job = request->data;

	(void)status; /* nothing here is ever cancelled */
	if (job->writes)
		wrote(job);
	else
		job->got(job->user, job->bytes, job->size);
	coop_life_disk_end(job->output->keeper);
	drop(job->spool);
	job->output->owner->release(job->output);
	free(job);
}

/* The bytes stand behind the job: one piece of memory, which the helper thread reads without the
 * loop. */
static struct job *new_job(struct coop_outlet *stream, uint64_t position, size_t size)
{
	struct job *job = coop_mem_alloc(sizeof *job + size);

	if (!job)
		return NULL;
	*job = (struct job){
		.output = stream->output,
		.spool = stream->output->spool,
		.stream = stream,
		.file = stream->number,
		.position = position,
		.size = size,
	};
	job->work.data = job;
	job->spool->refs++;
	job->output->owner->hold(job->output);
	return job;
}

static int queue(struct job *job)
{
	coop_life_disk_begin(job->output->keeper);
	return uv_queue_work(coop_loop_of(job->output->keeper), &job->work, work, after_work);
}

/* How much of the new bytes the bounds still take. */
static size_t grant(const struct coop_outlet *stream, size_t size, unsigned copies)
{
	const struct coop_keeper *keeper = stream->output->keeper;
	uint64_t used = *stream->output->spool_account;
	uint64_t own = (uint64_t)coop_conf_of(keeper)->settings.spool_stream_bytes;
	uint64_t total = (uint64_t)coop_conf_of(keeper)->settings.spool_total_bytes;
	uint64_t left = own > stream->fed ? own - stream->fed : 0;
	uint64_t left_of_all = total > used ? (total - used) / copies : 0;

	if (left_of_all < left)
		left = left_of_all;
	return left < size ? (size_t)left : size;
}

void coop_spool_feed(struct coop_outlet *stream)
{
	struct coop_output *output = stream->output;
	unsigned copies = output->count == 2 ? 2 : 1;
	struct iovec views[2];

	if (!output->spool || stream->spool_stopped)
		return;
	size_t fresh = (size_t)(stream->ring.end - stream->fed),
	       size = grant(stream, fresh, copies), at = 0;
	struct job *job = size ? new_job(stream, stream->fed, size) : NULL;
	if (!job) {
		stop_spool(stream, size ? ENOMEM : 0);
		return;
	}
	int count = coop_ring_view(&stream->ring, stream->fed, size, views);
	for (int i = 0; i < count; at += views[i++].iov_len)
		memcpy(job->bytes + at, views[i].iov_base, views[i].iov_len);
	job->writes = true;
	stream->spool_jobs++;
	stream->fed += size;
	output->spool->bytes += size * copies;
	coop_spools_of(output->keeper)->bytes += size * copies;
	*output->spool_account += size * copies;
	(void)queue(job); /* fails only without a work function */
	if (size < fresh)
		stop_spool(stream, 0);
}

int coop_spool_fetch(struct coop_outlet *stream, uint64_t position, size_t size, coop_spool_got got,
		     void *user)
{
	struct job *job = new_job(stream, position, size);

	if (!job)
		return -ENOMEM;
	job->got = got;
	job->user = user;
	return queue(job);
}

int coop_spool_fetch_all(struct coop_output *output, uint64_t position, size_t size,
			 coop_spool_got got, void *user)
{
	struct job *job = new_job(&output->streams[0], position, size);

	if (!job)
		return -ENOMEM;
	job->file = 0;
	job->got = got;
	job->user = user;
	return queue(job);
}

void coop_spool_free(struct coop_output *output)
{
	struct coop_spool *spool = output->spool;

	if (!spool)
		return;
	/* The disk has the room before anything that comes later is written to it. */
	coop_spools_of(output->keeper)->bytes -= spool->bytes;
	*output->spool_account -= spool->bytes;
	output->spool = NULL;
	coop_spool_discard(spool);
}
