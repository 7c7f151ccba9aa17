#include "keeper/host/scouts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <uv.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/mem.h"
#include "keeper/core/keeper.h"
#include "keeper/host/host.h"
#include "keeper/host/views.h"
#include "keeper/link/intake.h"
#include "keeper/link/operation.h"
#include "keeper/link/request.h"
#include "sandbox/layout/host_sockets.h"
#include "sandbox/layout/silence.h"

#define STACK_BYTES (128u << 10)
#define FIELD_SIZE 64u

struct stop {
	char *path;
	char field[FIELD_SIZE];
	char *found; /* of a socket: PATH_MAX bytes for where it leads, "" if it is none */
	bool silent; /* its file system can be */
	bool cold;   /* of a socket: it cannot */
};

/* The loop's until it is queued, and again once it is done; in between the thread reads it and
 * writes `at` (under the lock) and what it has found. */
struct coop_errand {
	struct coop_link link;        /* in the queue, or among those that are done */
	struct coop_request *request; /* the loop's alone; NULL: it went meanwhile */
	struct stop *stops;
	size_t count, room, sockets; /* which come first */
	size_t at;                   /* which it is about to look at; count: it is back */
	bool queued;
	unsigned generation;                                  /* of the mounts when it was sent */
	void (*then)(struct coop_keeper *keeper, void *user); /* the keeper's own; else NULL */
	void *user;
};

struct scout {
	struct coop_errand *errand; /* NULL: it waits for one */
	uint64_t began;             /* monotonic */
};

struct coop_scouts {
	struct coop_keeper *keeper;
	struct coop_silence silence;
	uv_async_t back;
	pthread_mutex_t lock; /* of all that follows */
	pthread_cond_t work;
	struct coop_link queue, done;
	struct scout scouts[COOP_SCOUTS_MAX];
	unsigned count, idle, queued;
	unsigned away; /* the keeper's own errands; the loop's alone */
	bool over;     /* the loop is gone */
};

/* One of the threads, which never ends. */
struct self {
	struct coop_scouts *scouts;
	struct scout *scout;
};

struct coop_silence *coop_silence_of(const struct coop_keeper *keeper)
{
	return &coop_host_of(keeper)->scouts->silence;
}

struct coop_errand *coop_errand_new(void)
{
	return coop_mem_zalloc(sizeof(struct coop_errand));
}

/* Not while a thread has it: the errand is the loop's again when it is back. */
void coop_errand_free(struct coop_errand *errand)
{
	if (!errand)
		return;
	for (size_t i = 0; i < errand->count; i++) {
		free(errand->stops[i].path);
		free(errand->stops[i].found);
	}
	free(errand->stops);
	free(errand);
}

/* Bounded: a request could name thousands, and each may take its time. */
static int add(struct coop_errand *errand, struct stop *stop, const char *path)
{
	if (errand->count == COOP_SCOUTS_PATHS_MAX)
		return -E2BIG;
	if (errand->count == errand->room) {
		size_t room = errand->room ? 2 * errand->room : 8;
		struct stop *grown = coop_mem_realloc(errand->stops, room * sizeof *grown);
		if (!grown)
			return -ENOMEM;
		errand->stops = grown;
		errand->room = room;
	}
	stop->path = coop_mem_strdup(path);
	if (!stop->path)
		return -ENOMEM;
	errand->stops[errand->count++] = *stop;
	return 0;
}

int coop_errand_add(struct coop_errand *errand, const char *field, const char *path, bool silent)
{
	struct stop stop = {.silent = silent};

	(void)snprintf(stop.field, sizeof stop.field, "%s", field);
	return add(errand, &stop, path);
}

int coop_errand_add_socket(struct coop_errand *errand, const char *name, bool cold)
{
	struct stop stop = {.found = coop_mem_zalloc(PATH_MAX), .cold = cold};
	int r = stop.found ? add(errand, &stop, name) : -ENOMEM;

	if (r < 0)
		free(stop.found);
	errand->sockets += r == 0;
	return r;
}

/* All that the loop will do there, once. What is wrong with the path it finds out for itself. */
static void look(const char *path)
{
	struct statfs fs;
	struct stat status;
	char entries[1024];

	/* Without a descriptor first: there may be none left. */
	if (stat(path, &status) < 0 || !S_ISDIR(status.st_mode))
		return;
	COOP_AUTO_FD int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
	if (folder < 0)
		return;
	(void)!fstatfs(folder, &fs);
	(void)!fstatat(folder, ".git", &status, AT_SYMLINK_NOFOLLOW);
	(void)!syscall(SYS_getdents64, folder, entries, sizeof entries);
}

/* A name may be older than what is there now, or mean something in another view. */
static void look_at_socket(struct stop *stop)
{
	struct stat status;

	if (!realpath(stop->path, stop->found) || lstat(stop->found, &status) < 0 ||
	    !S_ISSOCK(status.st_mode))
		*stop->found = 0;
}

/* With the lock held, but while it looks. */
static void carry_out(struct coop_scouts *scouts, struct coop_errand *errand)
{
	while (errand->at < errand->count) {
		struct stop *stop = &errand->stops[errand->at];
		(void)pthread_mutex_unlock(&scouts->lock);
		if (stop->found)
			look_at_socket(stop);
		else
			look(stop->path);
		(void)pthread_mutex_lock(&scouts->lock);
		/* The next may look at sockets now. */
		if (++errand->at == errand->sockets)
			(void)pthread_cond_broadcast(&scouts->work);
	}
}

static bool at_a_socket(const struct coop_errand *errand)
{
	return errand && errand->at < errand->sockets;
}

/* The first that may be begun, taken out of the queue; NULL: none. Sockets are every start's
 * business, and the keeper's own errands come with every end: one thread at a time is at either of
 * them, so that they never take all. */
static struct coop_errand *next_errand(struct coop_scouts *scouts)
{
	bool sockets = false, own = false;

	for (unsigned i = 0; i < scouts->count; i++) {
		const struct coop_errand *errand = scouts->scouts[i].errand;
		sockets |= at_a_socket(errand);
		own |= errand && errand->then;
	}
	COOP_LIST_EACH(&scouts->queue, link)
	{
		struct coop_errand *errand = COOP_LIST_ITEM(link, struct coop_errand, link);
		if ((sockets && errand->sockets) || (own && errand->then))
			continue;
		coop_list_remove(link);
		errand->queued = false;
		scouts->queued--;
		return errand;
	}
	return NULL;
}

static void *scout_main(void *user)
{
	struct self *self = user;
	struct coop_scouts *scouts = self->scouts;
	struct scout *scout = self->scout;
	struct coop_errand *errand;

	free(self);
	(void)pthread_mutex_lock(&scouts->lock);
	for (;;) {
		/* Whoever ends the scouts has seen that this one is idle: it stays so. */
		while (scouts->over || !(errand = next_errand(scouts)))
			(void)pthread_cond_wait(&scouts->work, &scouts->lock);
		scouts->idle--;
		*scout = (struct scout){errand, coop_clock_now()};
		carry_out(scouts, errand);
		scout->errand = NULL;
		scouts->idle++;
		coop_list_add(&scouts->done, &errand->link);
		if (!scouts->over)
			(void)uv_async_send(&scouts->back);
	}
	return NULL;
}

/* One more, if there may be. Signals are the loop's business. */
static void add_scout(struct coop_scouts *scouts)
{
	struct self *self = coop_mem_alloc(sizeof *self);
	pthread_attr_t how;
	pthread_t thread;
	sigset_t all, before;

	if (!self || pthread_attr_init(&how) != 0) {
		free(self);
		return;
	}
	*self = (struct self){scouts, &scouts->scouts[scouts->count]};
	(void)pthread_attr_setstacksize(&how, STACK_BYTES);
	(void)pthread_attr_setdetachstate(&how, PTHREAD_CREATE_DETACHED);
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	if (pthread_create(&thread, &how, scout_main, self) == 0) {
		scouts->count++;
		scouts->idle++;
	} else {
		free(self);
	}
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	(void)pthread_attr_destroy(&how);
}

/* Whether a thread is past the time that a file system has to answer in. */
static bool is_stuck(const struct scout *scout, uint64_t now)
{
	return scout->errand && now - scout->began >= COOP_SCOUTS_DEADLINE_MS * UINT64_C(1000000);
}

static bool all_stuck(const struct coop_scouts *scouts)
{
	uint64_t now = coop_clock_now();
	unsigned stuck = 0;

	for (unsigned i = 0; i < scouts->count; i++)
		stuck += is_stuck(&scouts->scouts[i], now);
	return stuck == COOP_SCOUTS_MAX;
}

/* The request stands by itself again. */
static struct coop_request *release(struct coop_errand *errand)
{
	struct coop_request *request = errand->request;

	errand->request = NULL;
	if (request) {
		request->state = NULL;
		request->on_drop = NULL;
		request->on_timeout = NULL;
		coop_request_timer_stop(request);
	}
	return request;
}

static void refuse(struct coop_request *request, const struct coop_err *err)
{
	if (request->op->refused)
		request->op->refused(request, err);
	coop_request_fail(request, err);
}

static void tell_sockets(const struct coop_errand *errand, struct coop_host_sockets *sockets)
{
	for (size_t i = 0; i < errand->sockets; i++) {
		const struct stop *stop = &errand->stops[i];
		if (stop->cold)
			coop_host_sockets_learn(sockets, errand->generation, stop->path,
						stop->found);
		else if (*stop->found)
			coop_host_sockets_lend(sockets, stop->found);
	}
}

static void carry_on(struct coop_scouts *scouts, struct coop_errand *errand)
{
	struct coop_request *request = release(errand);
	struct coop_host_sockets *sockets = &coop_views_of(scouts->keeper)->sockets;

	if (!request)
		return;
	tell_sockets(errand, sockets);
	request->looked_up = true;
	request->programs_looked_up = coop_buf_size(&request->programs);
	request->sockets_looked_up = errand->sockets > 0;
	coop_intake_again(request);
	coop_host_sockets_take_back(sockets);
}

/* Nobody can connect to a socket that does not answer either. What else there was to look up has
 * not been. */
static void go_without_sockets(struct coop_errand *errand)
{
	struct coop_request *request = release(errand);

	request->sockets_missed = true;
	request->programs_looked_up = 0;
	coop_intake_again(request);
}

static void on_back(uv_async_t *async)
{
	struct coop_scouts *scouts = async->data;

	(void)pthread_mutex_lock(&scouts->lock);
	while (!coop_list_empty(&scouts->done)) {
		struct coop_errand *errand =
			COOP_LIST_ITEM(scouts->done.next, struct coop_errand, link);
		coop_list_remove(&errand->link);
		(void)pthread_mutex_unlock(&scouts->lock);
		if (errand->then) {
			scouts->away--;
			errand->then(scouts->keeper, errand->user);
		} else {
			carry_on(scouts, errand);
		}
		coop_errand_free(errand);
		(void)pthread_mutex_lock(&scouts->lock);
	}
	(void)pthread_mutex_unlock(&scouts->lock);
}

static void tell_late(const struct stop *stop, bool busy, struct coop_err *err)
{
	if (busy)
		(void)coop_err_field(err, COOP_UNAVAILABLE, stop->field,
				     "%s %.300s cannot be looked up: all %u lookups that there may "
				     "be wait for a file system that does not answer",
				     stop->field, stop->path, COOP_SCOUTS_MAX);
	else
		(void)coop_err_field(err, COOP_UNAVAILABLE, stop->field,
				     "%s %.300s: its file system does not answer", stop->field,
				     stop->path);
}

/* The errand goes unless a thread has it: that one gives it back when it can. Under the lock. */
static bool call_off(struct coop_scouts *scouts, struct coop_errand *errand)
{
	if (!errand->queued)
		return false;
	coop_list_remove(&errand->link);
	scouts->queued--;
	return true;
}

static void on_drop(struct coop_request *request)
{
	struct coop_errand *errand = request->state;
	struct coop_scouts *scouts = coop_host_of(request->keeper)->scouts;

	(void)release(errand);
	(void)pthread_mutex_lock(&scouts->lock);
	bool ours = call_off(scouts, errand);
	(void)pthread_mutex_unlock(&scouts->lock);
	if (ours)
		coop_errand_free(errand);
}

static void on_timeout(struct coop_request *request)
{
	struct coop_errand *errand = request->state;
	struct coop_scouts *scouts = coop_host_of(request->keeper)->scouts;
	struct coop_err err = {0};

	(void)pthread_mutex_lock(&scouts->lock);
	bool busy = errand->queued, ours = call_off(scouts, errand);
	size_t at = errand->at;
	(void)pthread_mutex_unlock(&scouts->lock);
	if (at < errand->sockets) {
		go_without_sockets(errand);
	} else if (at < errand->count) {
		tell_late(&errand->stops[at], busy, &err);
		refuse(release(errand), &err);
	} else {
		carry_on(scouts, errand); /* it has just come back */
	}
	if (ours)
		coop_errand_free(errand);
}

static bool asks_the_silent(const struct coop_errand *errand)
{
	for (size_t i = 0; i < errand->count; i++) {
		if (errand->stops[i].silent)
			return true;
	}
	return errand->sockets > 0;
}

/* With the lock held. */
static bool enqueue(struct coop_scouts *scouts, struct coop_errand *errand)
{
	/* A disk of this host's own does not wait behind file systems that may not answer. */
	if (!errand->then && scouts->idle <= scouts->queued && scouts->count == COOP_SCOUTS_MAX &&
	    !asks_the_silent(errand))
		return false;
	/* Where no one waits for it, it can wait until a thread is free again. */
	if (scouts->queued >= COOP_SCOUTS_QUEUE_MAX || (!errand->then && all_stuck(scouts)))
		return false;
	if (scouts->idle <= scouts->queued && scouts->count < COOP_SCOUTS_MAX)
		add_scout(scouts);
	if (!scouts->count)
		return false;
	coop_list_add(&scouts->queue, &errand->link);
	errand->queued = true;
	scouts->queued++;
	(void)pthread_cond_signal(&scouts->work);
	return true;
}

/* No thread is to be had. A disk of this host's own is not refused for that. */
static void go_on_alone(struct coop_scouts *scouts, struct coop_errand *errand)
{
	struct coop_err err = {0};
	size_t i = 0;

	while (i < errand->count && !errand->stops[i].silent)
		i++;
	if (errand->sockets) {
		go_without_sockets(errand);
	} else if (i < errand->count) {
		tell_late(&errand->stops[i], true, &err);
		refuse(release(errand), &err);
	} else {
		carry_on(scouts, errand);
	}
	coop_errand_free(errand);
}

void coop_scouts_send(struct coop_scouts *scouts, struct coop_errand *errand,
		      struct coop_request *request)
{
	if (coop_request_timer(request, COOP_SCOUTS_DEADLINE_MS) < 0) {
		coop_errand_free(errand);
		coop_request_no_memory(request);
		return;
	}
	errand->request = request;
	errand->generation = coop_silence_of(scouts->keeper)->generation;
	request->state = errand;
	request->on_drop = on_drop;
	request->on_timeout = on_timeout;
	(void)pthread_mutex_lock(&scouts->lock);
	bool sent = enqueue(scouts, errand);
	(void)pthread_mutex_unlock(&scouts->lock);
	if (!sent)
		go_on_alone(scouts, errand);
}

bool coop_scouts_send_alone(struct coop_scouts *scouts, struct coop_errand *errand,
			    void (*then)(struct coop_keeper *keeper, void *user), void *user)
{
	errand->then = then;
	errand->user = user;
	(void)pthread_mutex_lock(&scouts->lock);
	bool sent = !scouts->over && enqueue(scouts, errand);
	(void)pthread_mutex_unlock(&scouts->lock);
	scouts->away += sent;
	return sent;
}

bool coop_scouts_away(struct coop_scouts *scouts)
{
	return scouts->away > 0;
}

bool coop_scouts_miss_sockets(struct coop_scouts *scouts)
{
	uint64_t now = coop_clock_now();
	bool missed = false;

	(void)pthread_mutex_lock(&scouts->lock);
	for (unsigned i = 0; i < scouts->count; i++)
		missed |=
			is_stuck(&scouts->scouts[i], now) && at_a_socket(scouts->scouts[i].errand);
	(void)pthread_mutex_unlock(&scouts->lock);
	return missed;
}

struct coop_scouts *coop_scouts_new(struct coop_keeper *keeper)
{
	struct coop_scouts *scouts = coop_mem_zalloc(sizeof *scouts);

	if (!scouts)
		return NULL;
	scouts->keeper = keeper;
	coop_list_init(&scouts->queue);
	coop_list_init(&scouts->done);
	scouts->back.data = scouts;
	if (uv_async_init(coop_loop_of(keeper), &scouts->back, on_back) < 0) {
		free(scouts);
		return NULL;
	}
	(void)pthread_mutex_init(&scouts->lock, NULL);
	(void)pthread_cond_init(&scouts->work, NULL);
	return scouts;
}

bool coop_scouts_end(struct coop_scouts *scouts)
{
	(void)pthread_mutex_lock(&scouts->lock);
	scouts->over = true;
	bool idle = scouts->idle == scouts->count;
	(void)pthread_mutex_unlock(&scouts->lock);
	/* Threads that wait for work look at it: it stays until the process ends. */
	return idle;
}
