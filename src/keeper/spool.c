#include "keeper/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/paths.h"
#include "keeper/follow.h"
#include "keeper/keeper.h"
#include "keeper/kill.h"
#include "keeper/process.h"

#define FILES 4 /* [0] everything in order of arrival, [1-3] by stream number */

struct coop_spool {
	unsigned refs;      /* the process's, and one for each job under way */
	char *paths[FILES]; /* [0] is NULL where one stream is everything; they do not change */
	uint64_t bytes;     /* on disk or on their way, of all files */
};

/* One piece of work for the helper thread. It runs them one after another, so files grow in order of arrival. */
struct job {
	uv_work_t work;
	struct coop_process *process; /* a reference */
	struct coop_spool *spool;     /* likewise: a record may give it up meanwhile */
	struct coop_stream *stream;
	unsigned file; /* that is read */
	uint64_t position;
	size_t size;
	int error;
	bool writes;
	coop_spool_got got;
	void *user;
	uint8_t bytes[];
};

static void drop(struct coop_spool *spool)
{
	if (--spool->refs)
		return;
	for (int i = 0; i < FILES; i++)
		free(spool->paths[i]);
	free(spool);
}

void coop_spool_clean(struct coop_keeper *keeper)
{
	char dir[4200];

	if (!*keeper->state_dir)
		return;
	(void)snprintf(dir, sizeof dir, "%s/spool", keeper->state_dir);
	coop_paths_remove_all(dir);
}

void coop_spool_remove(struct coop_keeper *keeper)
{
	if (*keeper->spool_dir)
		coop_paths_remove_all(keeper->spool_dir);
	keeper->spool_dir[0] = 0;
}

static int make_dir(struct coop_keeper *keeper)
{
	uint64_t random[2];
	char parent[4200];

	if (*keeper->spool_dir)
		return 0;
	if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
		return -EIO;
	if (*keeper->state_dir)
		(void)snprintf(parent, sizeof parent, "%s/spool", keeper->state_dir);
	else
		(void)snprintf(parent, sizeof parent, "/tmp/coop-private-%016llx",
			       (unsigned long long)random[1]);
	int r = coop_paths_make_dir(parent);
	if (r < 0)
		return r;
	if (*keeper->state_dir) {
		size_t used = strlen(parent);
		(void)snprintf(parent + used, sizeof parent - used, "/%016llx%016llx",
			       (unsigned long long)random[0], (unsigned long long)random[1]);
		if (strlen(parent) >= sizeof keeper->spool_dir)
			return -ENAMETOOLONG;
		if (mkdir(parent, 0700) < 0)
			return -errno;
	}
	(void)snprintf(keeper->spool_dir, sizeof keeper->spool_dir, "%s", parent);
	return 0;
}

static int make_file(struct coop_process *process, unsigned which, const char *suffix)
{
	char path[4224];

	(void)snprintf(path, sizeof path, "%s/%llu.%s", process->keeper->spool_dir,
		       (unsigned long long)process->n, suffix);
	COOP_AUTO_FD int fd =
		open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	process->spool->paths[which] = coop_mem_strdup(path);
	if (process->spool->paths[which])
		return 0;
	(void)unlink(path);
	return -ENOMEM;
}

int coop_spool_open(struct coop_process *process, struct coop_err *err)
{
	int r = make_dir(process->keeper);

	if (r == 0 && !(process->spool = coop_mem_zalloc(sizeof *process->spool)))
		r = -ENOMEM;
	if (r == 0)
		process->spool->refs = 1;
	for (int i = 0; r == 0 && i < process->stream_count; i++)
		r = make_file(process, process->streams[i].number,
			      coop_stream_name(process->streams[i].number));
	if (r == 0 && process->stream_count == 2)
		r = make_file(process, 0, "output");
	if (r == 0)
		return 0;
	(void)coop_err_set(err, COOP_SPAWN_FAILED,
			   "the spool files cannot be made in the state folder: %s", strerror(-r));
	coop_err_detail(err, "step", "spool");
	coop_err_detail(err, "errno", coop_err_errno_name(-r));
	return r;
}

const char *coop_spool_path(const struct coop_process *process, unsigned stream)
{
	if (!process->spool)
		return NULL;
	if (stream == 0 && process->stream_count == 1)
		stream = process->streams[0].number;
	return process->spool->paths[stream];
}

bool coop_spool_pending(const struct coop_stream *stream)
{
	return stream->overflow == COOP_OVERFLOW_SPOOL && stream->spooled < stream->fed;
}

static int write_whole(const char *path, const uint8_t *bytes, size_t size)
{
	COOP_AUTO_FD int fd = open(path, O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	while (size) {
		ssize_t n = write(fd, bytes, size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		bytes += n;
		size -= (size_t)n;
	}
	return 0;
}

static void work(uv_work_t *request)
{
	struct job *job = request->data;

	const char *own = job->spool->paths[job->stream->number];

	if (job->writes) {
		job->error = write_whole(own, job->bytes, job->size);
		if (job->error == 0 && job->spool->paths[0])
			job->error = write_whole(job->spool->paths[0], job->bytes, job->size);
		return;
	}
	COOP_AUTO_FD int fd = open(job->spool->paths[job->file], O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	size_t have = 0;
	ssize_t n = fd < 0 ? -1 : 1;
	while (n > 0 && have < job->size) {
		n = pread(fd, job->bytes + have, job->size - have, (off_t)(job->position + have));
		if (n > 0)
			have += (size_t)n;
	}
	job->size = have;
}

static void stop_spool(struct coop_stream *stream, int error)
{
	struct coop_process *process = stream->process;

	if (stream->spool_stopped)
		return;
	stream->spool_stopped = true;
	/* The files of a keeper that leaves are gone already. */
	if (error && !process->keeper->finished)
		coop_log(COOP_LOG_WARN, "spool stopped id=%s stream=%s error=%s", process->id,
			 coop_stream_name(stream->number), coop_err_errno_name(error));
	if (process->quota_kills && coop_process_live(process)) {
		struct coop_kill_order order = {
			.cause = COOP_CAUSE_OUTPUT_QUOTA,
			.evidence = {.limit = "spool_stream_bytes",
				     .value = process->keeper->conf.settings.spool_stream_bytes},
		};
		(void)coop_kill_begin(
			process, &order); /* without memory it goes on: the ring stays bounded */
	}
}

static void wrote(struct job *job)
{
	struct coop_stream *stream = job->stream;

	stream->spool_jobs--;
	if (job->error == 0 && stream->spooled == job->position)
		stream->spooled += job->size;
	else
		stop_spool(stream, -job->error);
	/* After a fault what was fed is not going to be on disk: it holds nothing up any more. */
	if (stream->spool_stopped && job->error)
		stream->fed = stream->spooled;
	coop_stream_resume(stream);
	coop_follow_wake(job->process);
}

static void after_work(uv_work_t *request, int status)
{
	struct job *job = request->data;

	(void)status; /* nothing here is ever cancelled */
	if (job->writes)
		wrote(job);
	else
		job->got(job->user, job->bytes, job->size);
	job->process->keeper->disk_jobs--;
	drop(job->spool);
	coop_process_unref(job->process);
	free(job);
}

static struct job *new_job(struct coop_stream *stream, uint64_t position, size_t size)
{
	struct job *job = coop_mem_alloc(sizeof *job + size);

	if (!job)
		return NULL;
	*job = (struct job){
		.process = coop_process_ref(stream->process),
		.spool = stream->process->spool,
		.stream = stream,
		.file = stream->number,
		.position = position,
		.size = size,
	};
	job->work.data = job;
	job->spool->refs++;
	return job;
}

static int queue(struct job *job)
{
	job->process->keeper->disk_jobs++;
	return uv_queue_work(&job->process->keeper->loop, &job->work, work, after_work);
}

/* How much of the new bytes the bounds still take. */
static size_t grant(const struct coop_stream *stream, size_t size, unsigned copies)
{
	const struct coop_keeper *keeper = stream->process->keeper;
	uint64_t used = stream->process->agent->principal->spool_bytes;
	uint64_t own = (uint64_t)keeper->conf.settings.spool_stream_bytes;
	uint64_t total = (uint64_t)keeper->conf.settings.spool_total_bytes;
	uint64_t left = own > stream->fed ? own - stream->fed : 0;
	uint64_t left_of_all = total > used ? (total - used) / copies : 0;

	if (left_of_all < left)
		left = left_of_all;
	return left < size ? (size_t)left : size;
}

void coop_spool_feed(struct coop_stream *stream)
{
	struct coop_process *process = stream->process;
	unsigned copies = process->stream_count == 2 ? 2 : 1;
	struct iovec views[2];

	if (!process->spool || stream->spool_stopped)
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
	process->spool->bytes += size * copies;
	process->keeper->spool_bytes += size * copies;
	process->agent->principal->spool_bytes += size * copies;
	(void)queue(job); /* fails only without a work function */
	if (size < fresh)
		stop_spool(stream, 0);
}

int coop_spool_fetch(struct coop_stream *stream, uint64_t position, size_t size, coop_spool_got got,
		     void *user)
{
	struct job *job = new_job(stream, position, size);

	if (!job)
		return -ENOMEM;
	job->got = got;
	job->user = user;
	return queue(job);
}

int coop_spool_fetch_all(struct coop_process *process, uint64_t position, size_t size,
			 coop_spool_got got, void *user)
{
	struct job *job = new_job(&process->streams[0], position, size);

	if (!job)
		return -ENOMEM;
	job->file = 0;
	job->got = got;
	job->user = user;
	return queue(job);
}

void coop_spool_free(struct coop_process *process)
{
	struct coop_spool *spool = process->spool;

	if (!spool)
		return;
	for (int i = 0; i < FILES; i++) {
		if (spool->paths[i])
			(void)unlink(spool->paths[i]);
	}
	process->keeper->spool_bytes -= spool->bytes;
	process->agent->principal->spool_bytes -= spool->bytes;
	process->spool = NULL;
	drop(spool);
}
