#include "keeper/tree/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/mem.h"
#include "keeper/core/keeper.h"
#include "keeper/process/process.h"
#include "keeper/process/registry.h"
#include "keeper/start/launcher.h"
#include "keeper/start/slots.h"
#include "keeper/tree/orphans.h"

#define UNRESOLVED UINT64_MAX
#define PF_EXITING 4u /* the kernel's flag: has given up its memory, is not a zombie yet */
#define LOOK_SHARE_NS 20000000u /* looks closer together than this are one */

ssize_t coop_tree_read_file(pid_t pid, const char *file, char *ret_text, size_t size)
{
	char path[64];

	(void)snprintf(path, sizeof path, "/proc/%d/%s", pid, file);
	COOP_AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ssize_t n = read(fd, ret_text, size - 1);
	if (n < 0)
		return -errno;
	ret_text[n] = 0;
	return n;
}

/* Reads /proc/PID/stat. The name may hold anything, so fields are counted from its closing
 * parenthesis. */
int coop_tree_read(pid_t pid, struct coop_tree_entry *ret)
{
	/* Which fields are wanted, counted from the name; scanf would cost more than reading
	 * them. */
	enum {
		PARENT = 2,
		GROUP,
		SESSION,
		FLAGS = 7,
		CHILDREN_USER = 14,
		CHILDREN_SYSTEM,
		THREADS = 18,
		START = 20,
		PAGES = 22,
		COUNT
	};
	char text[1024];
	uint64_t field[COUNT] = {0};
	ssize_t n = coop_tree_read_file(pid, "stat", text, sizeof text);

	if (n < 0)
		return (int)n;
	char *at = strrchr(text, ')');
	if (!at || at[1] != ' ' || !at[2])
		return -EPROTO;
	char state = at[2];
	at += 3;
	for (int i = PARENT; i < COUNT; i++) {
		if (*at != ' ')
			return -EPROTO;
		field[i] = (uint64_t)strtoll(at, &at, 10);
	}
	/* A process whose first thread has exited while others run shows Z too, and is as alive as
	 * any. */
	bool headless = field[THREADS] > 1 && state == 'Z';
	*ret = (struct coop_tree_entry){
		.pid = pid,
		.owner = UNRESOLVED,
		.state = state,
		.dead = state == 'X' || (state == 'Z' && !headless),
		.parent = (pid_t)field[PARENT],
		.group = (pid_t)field[GROUP],
		.session = (pid_t)field[SESSION],
		.exiting = (field[FLAGS] & PF_EXITING) && !headless,
		.start_time = field[START],
		.memory_bytes = field[PAGES] * (uint64_t)sysconf(_SC_PAGESIZE),
		.cpu_ns = (field[CHILDREN_USER] + field[CHILDREN_SYSTEM]) *
			  (1000000000u / (uint64_t)sysconf(_SC_CLK_TCK)),
	};
	return 0;
}

/* The process's own CPU time in nanoseconds: /proc only counts in ticks. */
static uint64_t own_cpu(pid_t pid)
{
	/* The kernel's name for the CPU clock of a process; the C library would ask it first
	 * whether that exists. */
	clockid_t clock = (clockid_t)(~(unsigned)pid << 3 | 2);
	struct timespec used;

	if (clock_gettime(clock, &used) < 0)
		return 0;
	return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

struct coop_tree_entry *coop_tree_find(const struct coop_tree *tree, pid_t pid)
{
	return pid > 0 ? coop_map_get(&tree->index, (uint64_t)pid) : NULL;
}

/* What the entry itself shows, without asking its parents: its record's n, 0 for none, UNRESOLVED
 * if the parent decides. */
static uint64_t own_owner(const struct coop_keeper *keeper, const struct coop_tree *last,
			  const struct coop_tree_entry *entry, pid_t self)
{
	const struct coop_process *leader = coop_registry_by_pid(keeper, entry->pid);

	if (leader)
		return leader->n;
	if (entry->pid == self || coop_launcher_by_pid(keeper, entry->pid) || entry->parent == 0)
		return 0;
	return entry->parent == self ? coop_orphans_owner(keeper, last, entry) : UNRESOLVED;
}

static void resolve(const struct coop_keeper *keeper, const struct coop_tree *last,
		    struct coop_tree *tree)
{
	/* In our own session are the launcher and children that are being started: no strays. */
	pid_t self = getpid(), session = getsid(0);

	for (size_t i = 0; i < tree->count; i++) {
		struct coop_tree_entry *entry = &tree->entries[i], *top = entry;
		uint64_t owner;
		/* Up until somebody knows; a table that changes while it is read could hold a loop,
		 * hence the bound. */
		for (size_t steps = 0;; steps++) {
			owner = top->owner != UNRESOLVED ? top->owner
							 : own_owner(keeper, last, top, self);
			struct coop_tree_entry *parent = coop_tree_find(tree, top->parent);
			if (owner != UNRESOLVED || !parent || steps > tree->count)
				break;
			top = parent;
		}
		owner = owner == UNRESOLVED ? 0 : owner;
		/* Everything on the way there has the same owner. */
		for (struct coop_tree_entry *at = entry; at && at->owner == UNRESOLVED;
		     at = coop_tree_find(tree, at->parent)) {
			at->owner = owner;
			if (at == top)
				break;
		}
		if (!entry->owner && entry->parent == self && !entry->dead &&
		    entry->session != session && !coop_slots_has(keeper, entry->pid) &&
		    !coop_orphans_prepared(keeper, entry->pid))
			tree->strays++;
		if (entry->owner)
			entry->cpu_ns += own_cpu(entry->pid);
		const struct coop_process *rooted = coop_registry_by_pid(keeper, entry->pid);
		entry->custodian = rooted && coop_process_boxed(rooted);
	}
}

static int append(struct coop_tree *tree, const struct coop_tree_entry *entry)
{
	if (tree->count == tree->capacity) {
		size_t capacity = tree->capacity ? tree->capacity * 2 : 512;
		void *grown = coop_mem_realloc(tree->entries, capacity * sizeof *entry);
		if (!grown)
			return -ENOMEM;
		tree->entries = grown;
		tree->capacity = capacity;
	}
	tree->entries[tree->count++] = *entry;
	return 0;
}

static int scan(struct coop_tree *tree)
{
	DIR *proc = opendir("/proc");
	const struct dirent *item;
	struct coop_tree_entry entry;
	int r = proc ? 0 : -errno;

	while (r == 0 && (item = readdir(proc))) {
		if (*item->d_name < '1' || *item->d_name > '9')
			continue;
		if (coop_tree_read(atoi(item->d_name), &entry) == 0)
			r = append(tree, &entry);
	}
	if (proc)
		(void)closedir(proc);
	for (size_t i = 0; r == 0 && i < tree->count; i++)
		r = coop_map_put(&tree->index, (uint64_t)tree->entries[i].pid, &tree->entries[i]);
	return r;
}

/* Adds up what each record's processes use, once for all who ask. */
static int add_up(struct coop_tree *tree)
{
	size_t used = 0;

	tree->sums = coop_mem_zalloc(tree->count * sizeof *tree->sums);
	if (!tree->sums)
		return -ENOMEM;
	for (size_t i = 0; i < tree->count; i++) {
		const struct coop_tree_entry *entry = &tree->entries[i];
		if (!entry->owner || entry->dead || entry->custodian)
			continue;
		struct coop_tree_sum *sum = coop_map_get(&tree->sum_of, entry->owner);
		if (!sum) {
			sum = &tree->sums[used++];
			if (coop_map_put(&tree->sum_of, entry->owner, sum) < 0)
				return -ENOMEM;
		}
		sum->cpu_ns += entry->cpu_ns;
		sum->memory_bytes += entry->memory_bytes;
		sum->pids++;
	}
	return 0;
}

struct coop_tree_sum coop_tree_sum(const struct coop_keeper *keeper,
				   const struct coop_process *process)
{
	const struct coop_tree_sum *sum = coop_map_get(&coop_tree_of(keeper)->sum_of, process->n);

	return sum ? *sum : (struct coop_tree_sum){0};
}

static void clear(struct coop_tree *tree)
{
	free(tree->entries);
	free(tree->sums);
	coop_map_clear(&tree->sum_of);
	coop_map_clear(&tree->index);
}

int coop_tree_look(struct coop_keeper *keeper)
{
	struct coop_tree *tree = coop_tree_of(keeper), fresh = *tree;
	uint64_t began = coop_clock_now();

	fresh.entries = NULL;
	fresh.count = fresh.capacity = 0;
	fresh.index = fresh.sum_of = (struct coop_map){0};
	fresh.sums = NULL;
	fresh.strays = 0;
	fresh.taken = began;
	int r = scan(&fresh);
	if (r < 0) {
		clear(&fresh);
		return r;
	}
	resolve(keeper, tree, &fresh);
	r = add_up(&fresh);
	if (r < 0) {
		clear(&fresh);
		return r;
	}
	fresh.cost = coop_clock_now() - began;
	clear(tree);
	*tree = fresh;
	return 0;
}

struct coop_tree *coop_tree_new(void)
{
	return coop_mem_zalloc(sizeof(struct coop_tree));
}

unsigned coop_tree_strays(const struct coop_keeper *keeper)
{
	return coop_tree_of(keeper)->strays;
}

uint64_t coop_tree_taken(const struct coop_keeper *keeper)
{
	return coop_tree_of(keeper)->taken;
}

void coop_tree_unsweep(struct coop_keeper *keeper)
{
	coop_tree_of(keeper)->swept = 0;
}

int coop_tree_look_lately(struct coop_keeper *keeper)
{
	uint64_t share = LOOK_SHARE_NS > coop_tree_of(keeper)->cost * 4
				 ? LOOK_SHARE_NS
				 : coop_tree_of(keeper)->cost * 4;

	if (coop_tree_of(keeper)->taken && coop_clock_now() - coop_tree_of(keeper)->taken < share)
		return 0;
	return coop_tree_look(keeper);
}

int coop_tree_look_this_turn(struct coop_keeper *keeper)
{
	return coop_tree_of(keeper)->taken > coop_tree_of(keeper)->turn ? 0
									: coop_tree_look(keeper);
}

void coop_tree_turn_over(struct coop_keeper *keeper)
{
	coop_tree_of(keeper)->turn = coop_clock_now();
}

void coop_tree_forget(struct coop_keeper *keeper, pid_t pid)
{
	if (coop_tree_find(coop_tree_of(keeper), pid))
		coop_tree_of(keeper)->taken = 0;
}

void coop_tree_each(const struct coop_keeper *keeper, const struct coop_process *process,
		    void (*call)(void *user, const struct coop_tree_entry *entry), void *user)
{
	for (size_t i = 0; i < coop_tree_of(keeper)->count; i++) {
		const struct coop_tree_entry *entry = &coop_tree_of(keeper)->entries[i];
		if (entry->owner == process->n && !entry->dead && !entry->custodian)
			call(user, entry);
	}
}

size_t coop_tree_count(const struct coop_keeper *keeper, const struct coop_process *process)
{
	return coop_tree_sum(keeper, process).pids;
}

int coop_tree_signal(const struct coop_tree_entry *entry, int number)
{
	struct coop_tree_entry now;
	COOP_AUTO_FD int fd = (int)syscall(SYS_pidfd_open, entry->pid, 0);

	if (fd < 0)
		return -errno;
	/* The descriptor names one process for ever; this looks that it is the one that was
	 * meant. */
	if (coop_tree_read(entry->pid, &now) < 0 || now.start_time != entry->start_time)
		return -ESRCH;
	return syscall(SYS_pidfd_send_signal, fd, number, NULL, 0) < 0 ? -errno : 0;
}

void coop_tree_free(struct coop_tree *tree)
{
	clear(tree);
	coop_map_clear(&tree->orphaned);
	if (tree->children_fd > 0)
		(void)close(tree->children_fd);
	free(tree);
}
