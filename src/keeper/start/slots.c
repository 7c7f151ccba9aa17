#include "keeper/start/slots.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io/log.h"
#include "base/mem.h"
#include "keeper/conf/conf.h"
#include "keeper/confine/confine.h"
#include "keeper/confine/net.h"
#include "keeper/core/keeper.h"
#include "keeper/core/life.h"
#include "keeper/host/host.h"
#include "keeper/launch/launcher.h"
#include "keeper/process/process.h"
#include "keeper/process/wire.h"

#define MS 1000000u
#define FIRST_TARGET 4u
#define POOLS_MAX 8u
#define FAILURES_MAX 5u
#define IDLE_NS (10000u * (uint64_t)MS) /* a kind that nobody asks for so long is let go */
#define PRESSED_NS (10000u * (uint64_t)MS)
#define LOOK_NS (1000u * (uint64_t)MS)
/* Making one takes as long as a short command: it is done after that has ended, which mostly is
 * before this. */
#define REFILL_MS 5u
#define REST_MS 1u /* whoever waited for the end goes on first */
/* Below this much memory left there are none. */
#define MEMORY_SHORT_KB (256u << 10)
#define SLOT_BYTES (350u << 10) /* measured: mostly the kernel's own */

struct coop_slots {
	struct coop_link pools; /* the one used last is the first */
	unsigned pool_count, slot_count;
	uint64_t filled, taken, failed, dropped;
	unsigned failures; /* in a row */
	bool off;          /* too many failed */
	bool memory_short;
	uint64_t pressed_until; /* the kernel refused a process: none are made until then */
	uint64_t looked_at;     /* when memory was looked at */
	uv_timer_t timer;       /* refills a moment later, and lets go of what is not used */
	int mounts_fd;          /* tells of changes of the host's mounts; -1: none */
	uv_poll_t mounts;
};

struct coop_pool {
	struct coop_keeper *keeper;
	struct coop_link in_all;
	struct coop_buf message; /* the plan that fills one: what makes the kind */
	struct coop_launcher *launcher;
	struct coop_net *net; /* a use of it; NULL: none */
	struct coop_link slots;
	unsigned count, target;
	uint64_t used_at;
};

static void free_slot(struct coop_slot *slot)
{
	struct coop_slots *slots = coop_slots_of(slot->pool->keeper);

	coop_list_remove(&slot->in_pool);
	if (!slot->answered)
		coop_list_remove(&slot->launch.in_launcher);
	slot->pool->count--;
	slots->slot_count--;
	free(slot);
}

/* Its first process sees the end of the channel and leaves; it is reaped as anybody. */
static void drop_slot(struct coop_slot *slot)
{
	coop_slots_of(slot->pool->keeper)->dropped++;
	coop_wire_close(slot->wire);
	if (slot->answered && slot->pid)
		(void)kill(slot->pid, SIGKILL); /* our unreaped child */
	free_slot(slot);
}

/* With its use of a network, which would else be kept for nobody. */
static void drop_pool(struct coop_pool *pool)
{
	while (!coop_list_empty(&pool->slots))
		drop_slot(COOP_LIST_ITEM(pool->slots.next, struct coop_slot, in_pool));
	coop_list_remove(&pool->in_all);
	coop_slots_of(pool->keeper)->pool_count--;
	coop_net_drop(pool->net);
	coop_buf_clear(&pool->message);
	free(pool);
}

/* A host on which they fail gets none at all: commands start without, and the log says so once. */
static void failed(struct coop_slot *slot)
{
	struct coop_slots *slots = coop_slots_of(slot->pool->keeper);

	slots->failed++;
	if (++slots->failures >= FAILURES_MAX && !slots->off) {
		slots->off = true;
		coop_log(COOP_LOG_WARN, "prepared sandboxes fail: there are none from now on");
	}
	drop_slot(slot);
}

static void on_message(struct coop_wire *wire, const struct coop_plan_status *message, pid_t sender)
{
	struct coop_slot *slot = wire->user;

	(void)sender;
	if (message->event == COOP_PLAN_READY) {
		slot->ready = true;
		coop_slots_of(slot->pool->keeper)->failures = 0;
	} else if (message->event == COOP_PLAN_FAILED) {
		failed(slot);
	}
}

static void on_end(struct coop_wire *wire)
{
	failed(wire->user);
}

static void answered(struct coop_launch *launch, pid_t pid)
{
	struct coop_slot *slot = COOP_LIST_ITEM(launch, struct coop_slot, launch);

	coop_list_remove(&launch->in_launcher);
	slot->answered = true;
	slot->pid = pid;
}

static void refused(struct coop_launch *launch, int error, enum coop_plan_step step)
{
	struct coop_slot *slot = COOP_LIST_ITEM(launch, struct coop_slot, launch);

	(void)error;
	(void)step;
	answered(launch, 0);
	failed(slot);
}

static const struct coop_launch_calls launch_calls = {.answered = answered, .refused = refused};

/* One line of /proc/meminfo; looked at now and then. */
static bool memory_short(struct coop_slots *slots, uint64_t now)
{
	char text[512];

	if (slots->looked_at && now - slots->looked_at < LOOK_NS)
		return slots->memory_short;
	slots->looked_at = now;
	int fd = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	if (fd >= 0)
		(void)close(fd);
	text[n > 0 ? n : 0] = 0;
	const char *at = strstr(text, "MemAvailable:");
	slots->memory_short = at && strtoull(at + 13, NULL, 10) < MEMORY_SHORT_KB;
	return slots->memory_short;
}

/* Without memory or descriptors there is one slot less, and nobody has to know. */
static void fill(struct coop_pool *pool)
{
	struct coop_keeper *keeper = pool->keeper;
	struct coop_slot *slot = coop_mem_zalloc(sizeof *slot);
	int theirs = -1, error = 0;

	if (!slot)
		return;
	slot->pool = pool;
	slot->launch.calls = &launch_calls;
	slot->wire = coop_wire_new(keeper, &theirs, &error);
	if (!slot->wire) {
		free(slot);
		return;
	}
	slot->wire->user = slot;
	slot->wire->on_message = on_message;
	slot->wire->on_end = on_end;
	/* The first three and the folder are nobody's: a plan always has them. */
	int fds[] = {coop_place_of(keeper)->null_fd, coop_place_of(keeper)->null_fd,
		     coop_place_of(keeper)->null_fd, theirs,
		     coop_place_of(keeper)->null_fd, pool->net ? pool->net->fd : -1};
	int r = coop_launcher_fill(pool->launcher, &pool->message, fds, pool->net ? 6 : 5,
				   &slot->launch);
	(void)close(theirs);
	if (r < 0) {
		coop_wire_close(slot->wire);
		free(slot);
		return;
	}
	coop_list_add(&pool->slots, &slot->in_pool);
	pool->count++;
	coop_slots_of(keeper)->slot_count++;
	coop_slots_of(keeper)->filled++;
}

/* Two agents may have the same plan: whose control group a slot is in depends on who makes it. */
static struct coop_pool *find(struct coop_keeper *keeper, const struct coop_launcher_class *class,
			      const struct coop_buf *message)
{
	COOP_LIST_EACH(&coop_slots_of(keeper)->pools, link)
	{
		struct coop_pool *pool = COOP_LIST_ITEM(link, struct coop_pool, in_all);
		if (pool->launcher->class.cell == class->cell &&
		    coop_buf_size(&pool->message) == coop_buf_size(message) &&
		    !memcmp(coop_buf_front(&pool->message), coop_buf_front(message),
			    coop_buf_size(message)))
			return pool;
	}
	return NULL;
}

static struct coop_pool *new_pool(struct coop_process *process, const struct coop_buf *message)
{
	struct coop_keeper *keeper = process->keeper;
	struct coop_pool *pool = coop_mem_zalloc(sizeof *pool);
	struct coop_net *net = process->confine->net;

	/* A network that is nobody's session's is not shared, not even with a slot. */
	if (!pool || (net && !net->home) ||
	    coop_buf_append(&pool->message, coop_buf_front(message), coop_buf_size(message)) < 0) {
		free(pool);
		return NULL;
	}
	if (coop_slots_of(keeper)->pool_count >= POOLS_MAX)
		drop_pool(COOP_LIST_ITEM(coop_slots_of(keeper)->pools.prev, struct coop_pool,
					 in_all));
	pool->keeper = keeper;
	pool->target = FIRST_TARGET;
	pool->launcher = coop_launcher_get(keeper, &process->confine->launcher);
	coop_list_init(&pool->slots);
	if (net && net->home)
		pool->net = coop_net_take(keeper, net->home, net->uid);
	coop_list_add(&coop_slots_of(keeper)->pools, &pool->in_all);
	coop_slots_of(keeper)->pool_count++;
	return pool;
}

/* The kind of slot that the process needs; NULL: it can have none. */
static struct coop_pool *pool_of(struct coop_process *process, const struct coop_buf *fill)
{
	struct coop_pool *pool = find(process->keeper, &process->confine->launcher, fill);

	return pool ? pool : new_pool(process, fill);
}

bool coop_slots_fit(const struct coop_process *process)
{
	const struct coop_confine *confine = process->confine;

	return confine->init && confine->kind == COOP_CONFINE_NAMESPACES && !confine->grouped &&
	       /* Found by path after the old root is gone: not possible. */
	       (confine->policy.root == COOP_ROOT_HOST ||
		coop_host_of(process->keeper)->root_keeper);
}

/* Whether there may be any now. */
static bool wanted(const struct coop_keeper *keeper)
{
	return coop_conf_of(keeper)->profiles.slots > 0 && !coop_slots_of(keeper)->off &&
	       !coop_life_stopping(keeper) &&
	       coop_clock_now() >= coop_slots_of(keeper)->pressed_until;
}

static void on_timer(uv_timer_t *timer)
{
	struct coop_keeper *keeper = timer->data;
	uint64_t now = coop_clock_now();
	bool stop = memory_short(coop_slots_of(keeper), now) || coop_slots_of(keeper)->off ||
		    coop_life_stopping(keeper);
	bool again = false;

	COOP_LIST_EACH(&coop_slots_of(keeper)->pools, link)
	{
		struct coop_pool *pool = COOP_LIST_ITEM(link, struct coop_pool, in_all);
		if (stop || now - pool->used_at > IDLE_NS) {
			drop_pool(pool);
			continue;
		}
		/* Never ahead of a command that waits, and one after the other. */
		while (pool->count < pool->target && coop_launcher_idle(pool->launcher) &&
		       (!pool->net || pool->net->fd >= 0)) {
			unsigned before = pool->count;
			fill(pool);
			if (pool->count == before)
				break;
		}
		again = again || pool->count < pool->target;
	}
	if (!coop_list_empty(&coop_slots_of(keeper)->pools))
		(void)uv_timer_start(timer, on_timer, again ? REFILL_MS : IDLE_NS / MS, 0);
}

/* The earlier time wins: a command that has ended is a better moment than the one that was set at
 * its start. */
static void schedule(struct coop_keeper *keeper, uint64_t ms)
{
	uv_timer_t *timer = &coop_slots_of(keeper)->timer;

	if (!uv_is_active((uv_handle_t *)timer) || uv_timer_get_due_in(timer) > ms)
		(void)uv_timer_start(timer, on_timer, ms, 0);
}

/* Both words are in: the launcher's, which gives the pid, and its own. */
static struct coop_slot *ready_slot(const struct coop_pool *pool)
{
	COOP_LIST_EACH(&pool->slots, link)
	{
		struct coop_slot *slot = COOP_LIST_ITEM(link, struct coop_slot, in_pool);
		if (slot->ready && slot->answered)
			return slot;
	}
	return NULL;
}

bool coop_slots_take(struct coop_process *process, const struct coop_buf *fill,
		     struct coop_wire **ret_wire, pid_t *ret_pid)
{
	struct coop_keeper *keeper = process->keeper;
	struct coop_pool *pool = wanted(keeper) ? pool_of(process, fill) : NULL;

	if (!pool)
		return false;
	/* The one used last comes first. */
	coop_list_remove(&pool->in_all);
	coop_list_push(&coop_slots_of(keeper)->pools, &pool->in_all);
	pool->used_at = coop_clock_now();
	struct coop_slot *slot = ready_slot(pool);
	if (!slot) {
		/* A burst: more are wanted. */
		if (pool->target < (unsigned)coop_conf_of(keeper)->profiles.slots)
			pool->target++;
		schedule(keeper, REFILL_MS);
		return false;
	}
	*ret_wire = slot->wire;
	*ret_pid = slot->pid;
	free_slot(slot);
	coop_slots_of(keeper)->taken++;
	schedule(keeper, REFILL_MS);
	return true;
}

void coop_slots_rest(struct coop_keeper *keeper)
{
	if (!coop_list_empty(&coop_slots_of(keeper)->pools))
		schedule(keeper, REST_MS);
}

static struct coop_slot *by_pid(const struct coop_keeper *keeper, pid_t pid)
{
	COOP_LIST_EACH(&coop_slots_of(keeper)->pools, pool_link)
	{
		const struct coop_pool *pool = COOP_LIST_ITEM(pool_link, struct coop_pool, in_all);
		for (struct coop_link *at = pool->slots.next; at != &pool->slots; at = at->next) {
			struct coop_slot *slot = COOP_LIST_ITEM(at, struct coop_slot, in_pool);
			if (slot->pid == pid)
				return slot;
		}
	}
	return NULL;
}

bool coop_slots_has(const struct coop_keeper *keeper, pid_t pid)
{
	return by_pid(keeper, pid);
}

void coop_slots_died(struct coop_keeper *keeper, pid_t pid)
{
	struct coop_slot *slot = by_pid(keeper, pid);

	if (!slot)
		return;
	slot->pid = 0; /* reaped: nobody's any more */
	failed(slot);
}

void coop_slots_stopped(struct coop_keeper *keeper, pid_t pid)
{
	struct coop_slot *slot = by_pid(keeper, pid);

	if (slot)
		drop_slot(slot);
}

void coop_slots_drop_net(const struct coop_net *net)
{
	struct coop_keeper *keeper = net->keeper;

	COOP_LIST_EACH(&coop_slots_of(keeper)->pools, link)
	{
		struct coop_pool *pool = COOP_LIST_ITEM(link, struct coop_pool, in_all);
		if (pool->net == net)
			drop_pool(pool);
	}
}

void coop_slots_drop_launcher(struct coop_keeper *keeper, const struct coop_launcher *launcher)
{
	COOP_LIST_EACH(&coop_slots_of(keeper)->pools, link)
	{
		struct coop_pool *pool = COOP_LIST_ITEM(link, struct coop_pool, in_all);
		if (pool->launcher == launcher)
			drop_pool(pool);
	}
}

/* All go: the keeper is leaving, or the host has changed. */
static void drop_all(struct coop_keeper *keeper)
{
	while (coop_slots_of(keeper)->pools.next && !coop_list_empty(&coop_slots_of(keeper)->pools))
		drop_pool(COOP_LIST_ITEM(coop_slots_of(keeper)->pools.next, struct coop_pool,
					 in_all));
}

void coop_slots_pressed(struct coop_keeper *keeper)
{
	coop_slots_of(keeper)->pressed_until = coop_clock_now() + PRESSED_NS;
	drop_all(keeper);
	coop_nets_drop_idle(keeper);
}

/* Something was mounted or unmounted: what was prepared shows the host as it was before. */
static void on_mounts(uv_poll_t *poll, int status, int events)
{
	(void)status;
	(void)events;
	drop_all(poll->data);
}

struct coop_slots *coop_slots_new(struct coop_keeper *keeper)
{
	struct coop_slots *slots = coop_mem_zalloc(sizeof *slots);

	if (!slots)
		return NULL;
	coop_list_init(&slots->pools);
	(void)uv_timer_init(coop_loop_of(keeper), &slots->timer);
	slots->timer.data = keeper;
	slots->mounts_fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	if (slots->mounts_fd < 0 ||
	    uv_poll_init(coop_loop_of(keeper), &slots->mounts, slots->mounts_fd) < 0 ||
	    uv_poll_start(&slots->mounts, UV_PRIORITIZED, on_mounts) < 0)
		slots->off = true; /* a change would go unnoticed */
	slots->mounts.data = keeper;
	return slots;
}

void coop_slots_free(struct coop_keeper *keeper)
{
	drop_all(keeper);
	(void)uv_timer_stop(&coop_slots_of(keeper)->timer);
	(void)uv_poll_stop(&coop_slots_of(keeper)->mounts);
	if (coop_slots_of(keeper)->mounts_fd >= 0)
		(void)close(coop_slots_of(keeper)->mounts_fd);
}

void coop_slots_write(const struct coop_keeper *keeper, struct coop_jsonw *w, const char *name)
{
	const struct coop_slots *slots = coop_slots_of(keeper);

	coop_jsonw_begin(w, name);
	coop_jsonw_bool(w, "enabled", coop_conf_of(keeper)->profiles.slots > 0 && !slots->off);
	coop_jsonw_uint(w, "idle", slots->slot_count);
	coop_jsonw_uint(w, "kinds", slots->pool_count);
	coop_jsonw_uint(w, "memory_bytes", (uint64_t)slots->slot_count * SLOT_BYTES);
	coop_jsonw_uint(w, "filled", slots->filled);
	coop_jsonw_uint(w, "taken", slots->taken);
	coop_jsonw_uint(w, "failed", slots->failed);
	coop_jsonw_end(w);
}
