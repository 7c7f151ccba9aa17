#include "records/backlog.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/mem.h"

#define LANE ((uint64_t)COOP_BACKLOG_BYTES)
#define HEAD_BYTES 4096u /* what stands before the lanes: a page */
#define ALIGN 16u
#define STEP 65536u                        /* of memory that is reserved */
#define REST UINT32_MAX                    /* no entry: the next one is at the lane's beginning */
#define MAGIC UINT64_C(0x31676f6c6b636162) /* "backlog1" */

/* Before each entry. Lanes are a multiple of its size, so there is always room for one. */
struct mark {
	uint32_t size;
	uint32_t unused;
	uint64_t number;
};

/* What the next keeper finds. Entries are complete before `tail` says so. */
struct head {
	uint64_t magic;
	uint64_t lane_bytes;
	struct {
		_Atomic uint64_t front, tail;
	} lanes[COOP_LANE_COUNT];
};

struct coop_backlog {
	struct head *head;
	uint8_t *lanes[COOP_LANE_COUNT];
	char *path; /* "" for memory without a name */
	int fd;
	/* So many bytes at a lane's beginning are there. A page that a full tmpfs cannot give when
	 * it is touched would be the keeper's death. */
	uint64_t reserved[COOP_LANE_COUNT];
};

/* Behind what is the caller's. */
#define MAPPED_AT ((off_t)COOP_BACKLOG_APART)
#define MAPPED ((size_t)(HEAD_BYTES + COOP_LANE_COUNT * LANE))
#define FILE_BYTES (MAPPED_AT + (off_t)MAPPED)

static uint64_t front_of(const struct coop_backlog *backlog, enum coop_lane lane)
{
	return atomic_load(&backlog->head->lanes[lane].front);
}

uint64_t coop_backlog_end(const struct coop_backlog *backlog, enum coop_lane lane)
{
	return atomic_load(&backlog->head->lanes[lane].tail);
}

size_t coop_backlog_waiting(const struct coop_backlog *backlog, enum coop_lane lane)
{
	return (size_t)(coop_backlog_end(backlog, lane) - front_of(backlog, lane));
}

const char *coop_backlog_path(const struct coop_backlog *backlog)
{
	return backlog ? backlog->path : "";
}

/* What a keeper of this version, or nobody, could have left there. */
static bool is_sound(const struct head *head)
{
	if (head->magic != MAGIC || head->lane_bytes != LANE)
		return false;
	for (enum coop_lane i = 0; i < COOP_LANE_COUNT; i++) {
		uint64_t front = atomic_load(&head->lanes[i].front);
		uint64_t tail = atomic_load(&head->lanes[i].tail);
		if (front > tail || tail - front > LANE || front % ALIGN || tail % ALIGN ||
		    tail > UINT64_MAX - 4 * LANE)
			return false;
	}
	return true;
}

/* Room for the lane's first `end` bytes. 0 or -ENOBUFS. */
static int reserve(struct coop_backlog *backlog, enum coop_lane lane, uint64_t end)
{
	uint64_t have = backlog->reserved[lane];
	uint64_t want = (end + STEP - 1) / STEP * STEP;
	off_t begin = MAPPED_AT + (off_t)(HEAD_BYTES + (uint64_t)lane * LANE + have);

	if (end <= have)
		return 0;
	if (fallocate(backlog->fd, 0, begin, (off_t)(want - have)) < 0)
		return -ENOBUFS;
	backlog->reserved[lane] = want;
	return 0;
}

static void begin_anew(struct head *head)
{
	for (enum coop_lane i = 0; i < COOP_LANE_COUNT; i++) {
		/* Never 0, which asks for the first entry. */
		atomic_store(&head->lanes[i].front, LANE);
		atomic_store(&head->lanes[i].tail, LANE);
	}
	head->lane_bytes = LANE;
	head->magic = MAGIC;
}

/* A file of ours on a tmpfs: an fd, or -errno. -ENOTSUP: the folder is on a disk. */
static int open_file(const char *path)
{
	struct statfs fs;
	struct stat st;
	COOP_AUTO_FD int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0 || fstatfs(fd, &fs) < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (fs.f_type != TMPFS_MAGIC) {
		(void)unlink(path);
		return -ENOTSUP;
	}
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_nlink != 1)
		return -EPERM;
	if ((st.st_mode & 0777) != 0600 && fchmod(fd, 0600) < 0)
		return -errno;
	/* One of another size is none of ours. */
	if (st.st_size != 0 && st.st_size != FILE_BYTES && ftruncate(fd, 0) < 0)
		return -errno;
	return COOP_TAKE_FD(fd);
}

/* A file of the right size is left as it is. */
static struct head *map(int fd)
{
	if (fd < 0 || ftruncate(fd, FILE_BYTES) < 0 || fallocate(fd, 0, MAPPED_AT, HEAD_BYTES) < 0)
		return NULL;
	void *memory = mmap(NULL, MAPPED, PROT_READ | PROT_WRITE, MAP_SHARED, fd, MAPPED_AT);

	return memory == MAP_FAILED ? NULL : memory;
}

static void drop(struct coop_backlog *backlog)
{
	if (backlog->head)
		(void)munmap(backlog->head, MAPPED);
	if (backlog->fd >= 0)
		(void)close(backlog->fd);
	free(backlog->path);
	free(backlog);
}

int coop_backlog_open(const char *socket, struct coop_backlog **ret)
{
	char path[4200] = "";
	struct coop_backlog *backlog = coop_mem_zalloc(sizeof *backlog);

	if (!backlog)
		return -ENOMEM;
	if (socket)
		(void)snprintf(path, sizeof path, "%s.backlog", socket);
	backlog->fd = socket ? open_file(path) : -ENOTSUP;
	backlog->path = coop_mem_strdup(backlog->fd < 0 ? "" : path);
	if (backlog->fd < 0)
		backlog->fd = memfd_create("coop-backlog", MFD_CLOEXEC);
	backlog->head = backlog->path ? map(backlog->fd) : NULL;
	if (!backlog->head) {
		drop(backlog);
		return -ENOMEM;
	}
	for (enum coop_lane i = 0; i < COOP_LANE_COUNT; i++)
		backlog->lanes[i] = (uint8_t *)backlog->head + HEAD_BYTES + (size_t)i * LANE;
	if (!is_sound(backlog->head))
		begin_anew(backlog->head);
	/* What its marks speak of may be missing all the same. */
	for (enum coop_lane i = 0; i < COOP_LANE_COUNT; i++) {
		if (coop_backlog_waiting(backlog, i) && reserve(backlog, i, LANE) < 0) {
			drop(backlog);
			return -ENOSPC;
		}
	}
	*ret = backlog;
	return 0;
}

int coop_backlog_apart(const struct coop_backlog *backlog)
{
	return backlog->fd;
}

static bool is_empty(const struct coop_backlog *backlog)
{
	for (enum coop_lane i = 0; i < COOP_LANE_COUNT; i++) {
		if (coop_backlog_waiting(backlog, i))
			return false;
	}
	return true;
}

void coop_backlog_close(struct coop_backlog *backlog)
{
	if (!backlog)
		return;
	if (*backlog->path && is_empty(backlog))
		(void)unlink(backlog->path);
	drop(backlog);
}

static uint8_t *place_of(const struct coop_backlog *backlog, enum coop_lane lane, uint64_t position)
{
	return backlog->lanes[lane] + position % LANE;
}

static uint64_t weight(size_t size)
{
	return sizeof(struct mark) + (size + ALIGN - 1) / ALIGN * ALIGN;
}

int coop_backlog_put(struct coop_backlog *backlog, enum coop_lane lane, uint64_t number,
		     const void *bytes, size_t size, size_t spare)
{
	uint64_t tail = coop_backlog_end(backlog, lane), front = front_of(backlog, lane);
	const struct mark rest = {.size = REST};
	struct mark mark = {.size = (uint32_t)size, .number = number};

	if (size >= LANE / 2)
		return -ENOBUFS;
	/* An empty lane begins at its beginning: few pages are ever touched. */
	if (front == tail && tail % LANE) {
		front = tail = tail + (LANE - tail % LANE);
		atomic_store(&backlog->head->lanes[lane].tail, tail);
		atomic_store(&backlog->head->lanes[lane].front, front);
	}
	/* Entries are in one piece. */
	uint64_t left = LANE - tail % LANE, skipped = weight(size) > left ? left : 0;
	if (tail - front + skipped + weight(size) + spare > LANE)
		return -ENOBUFS;
	if (reserve(backlog, lane, skipped ? LANE : tail % LANE + weight(size)) < 0)
		return -ENOBUFS;
	if (skipped)
		memcpy(place_of(backlog, lane, tail), &rest, sizeof rest);
	tail += skipped;
	memcpy(place_of(backlog, lane, tail), &mark, sizeof mark);
	memcpy(place_of(backlog, lane, tail) + sizeof mark, bytes, size);
	atomic_store(&backlog->head->lanes[lane].tail, tail + weight(size));
	return 0;
}

void coop_backlog_advance(struct coop_backlog *backlog, enum coop_lane lane, uint64_t position)
{
	if (position > front_of(backlog, lane) && position <= coop_backlog_end(backlog, lane))
		atomic_store(&backlog->head->lanes[lane].front, position);
}

int coop_backlog_next(const struct coop_backlog *backlog, enum coop_lane lane, uint64_t *at,
		      uint64_t end, struct coop_backlog_entry *ret)
{
	uint64_t position = *at ? *at : front_of(backlog, lane);
	struct mark mark;

	if (position >= end)
		return 0;
	memcpy(&mark, place_of(backlog, lane, position), sizeof mark);
	if (mark.size == REST) {
		position += LANE - position % LANE;
		if (position >= end)
			return position > end ? -EBADMSG : 0;
		memcpy(&mark, place_of(backlog, lane, position), sizeof mark);
	}
	if (mark.size >= LANE / 2 || weight(mark.size) > LANE - position % LANE ||
	    weight(mark.size) > end - position)
		return -EBADMSG;
	*ret = (struct coop_backlog_entry){
		.number = mark.number,
		.bytes = place_of(backlog, lane, position) + sizeof mark,
		.size = mark.size,
		.end = position + weight(mark.size),
	};
	*at = ret->end;
	return 1;
}
