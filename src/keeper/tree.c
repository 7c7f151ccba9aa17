#include "keeper/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
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
#include "keeper/keeper.h"
#include "keeper/process.h"

#define UNRESOLVED UINT64_MAX
#define PF_EXITING 4u /* the kernel's flag: has given up its memory, is not a zombie yet */
#define SWEEP_AGE_NS 100000000u
#define SWEEP_SHORT_NS 2000000u  /* for a count that somebody wants to see */
#define SWEEP_LONG_NS 100000000u /* before something is declared to be over */
#define LOOK_SHARE_NS 20000000u  /* looks closer together than this are one */

static ssize_t read_proc(pid_t pid, const char *file, char *ret_text, size_t size)
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

/* Reads /proc/PID/stat. The name may hold anything, so fields are counted from its closing parenthesis. */
static int read_stat(pid_t pid, struct coop_tree_entry *ret)
{
	char text[1024];
	long long children_user, children_system, pages;
	unsigned long long start;
	unsigned flags;
	struct coop_tree_entry entry = {.pid = pid, .owner = UNRESOLVED};
	ssize_t n = read_proc(pid, "stat", text, sizeof text);

	if (n < 0)
		return (int)n;
	const char *fields = strrchr(text, ')');
	if (!fields || sscanf(fields + 1,
			      " %c %d %d %d %*d %*d %u %*u %*u %*u %*u %*u %*u %lld %lld %*d %*d "
			      "%*d %*d %llu %*u %lld",
			      &entry.state, &entry.parent, &entry.group, &entry.session, &flags,
			      &children_user, &children_system, &start, &pages) != 9)
		return -EPROTO;
	entry.start_time = start;
	entry.exiting = flags & PF_EXITING;
	entry.memory_bytes = (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
	entry.cpu_ns = (uint64_t)(children_user + children_system) *
		       (1000000000u / (uint64_t)sysconf(_SC_CLK_TCK));
	*ret = entry;
	return 0;
}

static bool dead(const struct coop_tree_entry *entry)
{
	return entry->state == 'Z' || entry->state == 'X';
}

/* The process's own CPU time in nanoseconds: /proc only counts in ticks. */
static uint64_t own_cpu(pid_t pid)
{
	clockid_t clock;
	struct timespec used;

	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &used) < 0)
		return 0;
	return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

static struct coop_tree_entry *find(const struct coop_tree *tree, pid_t pid)
{
	return pid > 0 ? coop_map_get(&tree->index, (uint64_t)pid) : NULL;
}

/* The record whose leader has, or had, that pid as its session or group. The number is not reused while one of them lives. */
static uint64_t by_session(const struct coop_keeper *keeper, pid_t session)
{
	const struct coop_process *process =
		session > 0 ? coop_map_get(&keeper->registry.by_session, (uint64_t)session) : NULL;

	return process ? process->n : 0;
}

static uint64_t known_number(const struct coop_keeper *keeper, const char *digits)
{
	uint64_t n = strtoull(digits, NULL, 10);

	return n && coop_map_get(&keeper->registry.by_n, n) ? n : 0;
}

/* Reads the variable wherever it stands: a shell in between may have put the environment into another order. */
static uint64_t by_environment(const struct coop_keeper *keeper, pid_t pid)
{
	static const char name[] = "\0COOP_PROCESS=";
	const size_t name_size = sizeof name - 1, number_size = 24;
	char path[64], text[16384 + 64] = "";
	size_t kept = 1; /* as if a variable had ended before the first */
	ssize_t n;

	(void)snprintf(path, sizeof path, "/proc/%d/environ", pid);
	COOP_AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && (n = read(fd, text + kept, sizeof text - 1 - kept)) > 0) {
		size_t size = kept + (size_t)n;
		text[size] = 0;
		const char *at = memmem(text, size, name, name_size);
		/* A number that the piece's end may have cut is looked at again with the next piece. */
		if (at && (size_t)(text + size - at) > name_size + number_size)
			return known_number(keeper, at + name_size);
		kept = size < name_size + number_size ? size : name_size + number_size;
		memmove(text, text + size - kept, kept);
	}
	const char *at = memmem(text, kept, name, name_size);
	text[kept] = 0;
	return at ? known_number(keeper, at + name_size) : 0;
}

static uint64_t owner_of_orphan(const struct coop_keeper *keeper, const struct coop_tree *last,
				const struct coop_tree_entry *entry)
{
	const struct coop_tree_entry *seen = find(last, entry->pid);
	uint64_t n;

	if (seen && seen->start_time == entry->start_time && seen->owner)
		return seen->owner;
	n = by_session(keeper, entry->session);
	if (!n)
		n = by_session(keeper, entry->group);
	return n ? n : by_environment(keeper, entry->pid);
}

/* What the entry itself shows, without asking its parents: its record's n, 0 for none, UNRESOLVED if the parent decides. */
static uint64_t own_owner(const struct coop_keeper *keeper, const struct coop_tree *last,
			  const struct coop_tree_entry *entry, pid_t self)
{
	const struct coop_process *leader = coop_registry_by_pid(keeper, entry->pid);

	if (leader)
		return leader->n;
	if (entry->pid == self || entry->pid == keeper->launcher.pid || entry->parent == 0)
		return 0;
	return entry->parent == self ? owner_of_orphan(keeper, last, entry) : UNRESOLVED;
}

static void resolve(const struct coop_keeper *keeper, const struct coop_tree *last,
		    struct coop_tree *tree)
{
	pid_t self = getpid();

	for (size_t i = 0; i < tree->count; i++) {
		struct coop_tree_entry *entry = &tree->entries[i], *top = entry;
		uint64_t owner;
		/* Up until somebody knows; a table that changes while it is read could hold a loop, hence the bound. */
		for (size_t steps = 0;; steps++) {
			owner = top->owner != UNRESOLVED ? top->owner
							 : own_owner(keeper, last, top, self);
			struct coop_tree_entry *parent = find(tree, top->parent);
			if (owner != UNRESOLVED || !parent || steps > tree->count)
				break;
			top = parent;
		}
		owner = owner == UNRESOLVED ? 0 : owner;
		/* Everything on the way there has the same owner. */
		for (struct coop_tree_entry *at = entry; at && at->owner == UNRESOLVED;
		     at = find(tree, at->parent)) {
			at->owner = owner;
			if (at == top)
				break;
		}
		if (!entry->owner && entry->parent == self && entry->pid != keeper->launcher.pid &&
		    !dead(entry))
			tree->strays++;
		if (entry->owner)
			entry->cpu_ns += own_cpu(entry->pid);
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
		if (read_stat(atoi(item->d_name), &entry) == 0)
			r = append(tree, &entry);
	}
	if (proc)
		(void)closedir(proc);
	for (size_t i = 0; r == 0 && i < tree->count; i++)
		r = coop_map_put(&tree->index, (uint64_t)tree->entries[i].pid, &tree->entries[i]);
	return r;
}

static void clear(struct coop_tree *tree)
{
	free(tree->entries);
	coop_map_clear(&tree->index);
}

int coop_tree_look(struct coop_keeper *keeper)
{
	struct coop_tree fresh = keeper->tree;
	uint64_t began = coop_clock_now();

	fresh.entries = NULL;
	fresh.count = fresh.capacity = 0;
	fresh.index = (struct coop_map){0};
	fresh.strays = 0;
	fresh.taken = began;
	int r = scan(&fresh);
	if (r < 0) {
		clear(&fresh);
		return r;
	}
	resolve(keeper, &keeper->tree, &fresh);
	fresh.cost = coop_clock_now() - began;
	clear(&keeper->tree);
	keeper->tree = fresh;
	return 0;
}

int coop_tree_look_lately(struct coop_keeper *keeper)
{
	uint64_t share =
		LOOK_SHARE_NS > keeper->tree.cost * 4 ? LOOK_SHARE_NS : keeper->tree.cost * 4;

	if (keeper->tree.taken && coop_clock_now() - keeper->tree.taken < share)
		return 0;
	return coop_tree_look(keeper);
}

void coop_tree_each(const struct coop_keeper *keeper, const struct coop_process *process,
		    void (*call)(void *user, const struct coop_tree_entry *entry), void *user)
{
	for (size_t i = 0; i < keeper->tree.count; i++) {
		const struct coop_tree_entry *entry = &keeper->tree.entries[i];
		if (entry->owner == process->n && !dead(entry))
			call(user, entry);
	}
}

static void count_one(void *user, const struct coop_tree_entry *entry)
{
	(void)entry;
	++*(size_t *)user;
}

size_t coop_tree_count(const struct coop_keeper *keeper, const struct coop_process *process)
{
	size_t count = 0;

	coop_tree_each(keeper, process, count_one, &count);
	return count;
}

int coop_tree_signal(const struct coop_tree_entry *entry, int number)
{
	struct coop_tree_entry now;
	COOP_AUTO_FD int fd = (int)syscall(SYS_pidfd_open, entry->pid, 0);

	if (fd < 0)
		return -errno;
	/* The descriptor names one process for ever; this looks that it is the one that was meant. */
	if (read_stat(entry->pid, &now) < 0 || now.start_time != entry->start_time)
		return -ESRCH;
	return syscall(SYS_pidfd_send_signal, fd, number, NULL, 0) < 0 ? -errno : 0;
}

/* One pass over the keeper's children that are neither leaders nor the launcher. */
struct pass {
	struct coop_keeper *keeper;
	coop_tree_call call;
	void *user;
	int count;
	int dead; /* so many at the front of the list are dead, and stay so: the next pass need not look at them */
	bool unsure; /* somebody was met on its way out: neither its owner nor its children could be seen */
};

static void meet(struct pass *pass, const struct pass *last, pid_t pid)
{
	struct coop_tree_entry entry, again;

	if (pass->count++ < last->dead) {
		pass->dead++;
		return;
	}
	if (read_stat(pid, &entry) < 0 || dead(&entry)) {
		pass->dead += pass->dead == pass->count - 1;
		return;
	}
	/* Still in our own session: a child that is being started, and no orphan of anybody. */
	if (entry.session == getsid(0)) {
		pass->count--;
		return;
	}
	entry.owner = owner_of_orphan(pass->keeper, &pass->keeper->tree, &entry);
	/* Without an owner, and exiting by now: that may be why its environment showed nothing. */
	if (!entry.owner && (read_stat(pid, &again) < 0 || dead(&again) || again.exiting))
		pass->unsure = true;
	else
		pass->call(pass->user, &entry);
}

/* 0, or -errno where the kernel does not list children. The list is read at every exit, so its file stays open. */
static int make_pass(struct pass *pass, const struct pass *last)
{
	struct coop_tree *tree = &pass->keeper->tree;
	char path[64], text[4097];
	size_t kept = 0;
	off_t offset = 0;
	ssize_t n;

	if (tree->children_fd <= 0) {
		(void)snprintf(path, sizeof path, "/proc/self/task/%d/children", getpid());
		tree->children_fd = open(path, O_RDONLY | O_CLOEXEC);
	}
	if (tree->children_fd < 0)
		return -errno;
	while ((n = pread(tree->children_fd, text + kept, sizeof text - 1 - kept, offset)) > 0) {
		char *at = text, *space;
		offset += n;
		text[kept + (size_t)n] = 0;
		while ((space = strchr(at, ' '))) {
			pid_t pid = (pid_t)strtol(at, NULL, 10);
			if (pid != pass->keeper->launcher.pid &&
			    !coop_registry_by_pid(pass->keeper, pid))
				meet(pass, last, pid);
			at = space + 1;
		}
		kept = strlen(at);
		memmove(text, at, kept);
	}
	return 0;
}

/* Nobody is reaped meanwhile, so the list only grows. Whoever it names may fork and die before it is looked at; its child then
 * comes to the list's end, once its parent is a zombie. So nobody was missed when two passes in a row met nobody on its way
 * out and the second list is as long as the first. */
int coop_tree_orphans(struct coop_keeper *keeper, uint64_t limit_ns, coop_tree_call call,
		      void *user)
{
	uint64_t began = coop_clock_now();
	struct pass last = {.count = -1};

	do {
		struct pass pass = {.keeper = keeper, .call = call, .user = user};
		int r = make_pass(&pass, &last);
		if (r < 0)
			return r;
		if (pass.count == 0 || (pass.count == last.count && !pass.unsure && !last.unsure))
			return 0;
		if (pass.unsure)
			(void)sched_yield();
		last = pass;
	} while (coop_clock_now() - began < limit_ns);
	return 1;
}

static void note_owner(void *user, const struct coop_tree_entry *entry)
{
	struct coop_tree *tree = user;

	/* Without memory for it the sweep does not count as complete. */
	if (entry->owner && coop_map_put(&tree->orphaned, entry->owner, tree) < 0)
		tree->swept_whole = false;
}

/* Notes which records have orphans, for all of them at once. */
static void sweep(struct coop_keeper *keeper, uint64_t limit_ns)
{
	struct coop_tree *tree = &keeper->tree;

	coop_map_clear(&tree->orphaned);
	tree->swept = coop_clock_now();
	tree->swept_whole = true;
	int r = coop_tree_orphans(keeper, limit_ns, note_owner, tree);
	if (r == 1)
		tree->swept_whole = false;
	if (r >= 0 || coop_tree_look(keeper) < 0)
		return;
	for (size_t i = 0; i < tree->count; i++) {
		if (tree->entries[i].parent == getpid() && !dead(&tree->entries[i]))
			note_owner(tree, &tree->entries[i]);
	}
}

bool coop_tree_has_orphans(struct coop_keeper *keeper, struct coop_process *process,
			   enum coop_care care)
{
	const struct coop_tree *tree = &keeper->tree;
	uint64_t age = coop_clock_now() - tree->swept;

	if (process->pid == 0 || process->childless)
		return false;
	/* Only what lived when the leader died can be left of it, and the topmost of that are children of ours now. So a sweep
	 * after the end that found none settles it for ever; one that found some is good for a while. */
	if (tree->swept <= process->end.ended || age > SWEEP_AGE_NS ||
	    (care == COOP_THOROUGH && !tree->swept_whole))
		sweep(keeper, care == COOP_THOROUGH ? SWEEP_LONG_NS : SWEEP_SHORT_NS);
	if (coop_map_get(&tree->orphaned, process->n))
		return true;
	process->childless = tree->swept_whole;
	return false;
}

bool coop_tree_may_have_orphans(struct coop_keeper *keeper, struct coop_process *process)
{
	return coop_tree_has_orphans(keeper, process, COOP_QUICK) ||
	       (process->pid && !process->childless);
}

uint64_t coop_tree_owner_of_dead(struct coop_keeper *keeper, pid_t pid)
{
	struct coop_tree_entry entry;

	return read_stat(pid, &entry) < 0 ? 0 : owner_of_orphan(keeper, &keeper->tree, &entry);
}

void coop_tree_free(struct coop_keeper *keeper)
{
	clear(&keeper->tree);
	coop_map_clear(&keeper->tree.orphaned);
	if (keeper->tree.children_fd > 0)
		(void)close(keeper->tree.children_fd);
	keeper->tree = (struct coop_tree){0};
}
