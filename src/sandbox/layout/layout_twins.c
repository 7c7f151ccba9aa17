/* Hard links: the same file under other names. A cover hides one name, a read-only mount holds one
 * name; the others in the writable roots are treated likewise. */
#include <dirent.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/buf.h"
#include "sandbox/layout/layout_builder.h"
#include "sandbox/layout/layout_path.h"

#define SEALED_ENTRIES_MAX 4096u
#define ALL_SEALED_ENTRIES_MAX 65536u
#define ROOT_ENTRIES_MAX 200000u
#define MASKED_ENTRIES_MAX \
	64u /* of all credentials together: they are looked at for every process */
#define DEPTH_MAX 128
#define NAME_SIZE 96
#define INODE_BITS 65536u

struct twin {
	dev_t dev;
	ino_t ino;
	nlink_t names, known;
	enum coop_seal_kind kind;
	bool credential;      /* a name of it elsewhere is told, and no reason to refuse anything */
	bool firm;            /* as the seal */
	uint64_t path;        /* hash of the name: what is sealed twice is one name */
	char name[NAME_SIZE]; /* one of them, perhaps cut, for people */
};

struct twins {
	struct coop_builder *b;
	struct coop_buf list; /* struct twin */
	size_t budget;
	bool complete;
	bool credentials;               /* what is collected now are */
	bool firm;                      /* what is collected now is */
	bool by_inode;                  /* folders tell the inode of a file as lstat does */
	uint8_t inodes[INODE_BITS / 8]; /* which are worth a look; by their last bits */
};

typedef void (*visitor)(struct twins *twins, const char *root, const char *path,
			const struct stat *st, enum coop_seal_kind kind);

static bool worth_a_look(const struct twins *twins, const struct dirent *entry)
{
	unsigned bit = (unsigned)(entry->d_ino % INODE_BITS);

	if (entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN)
		return true;
	return entry->d_type == DT_REG &&
	       (!twins->by_inode || twins->inodes[bit / 8] & 1u << bit % 8);
}

/* Visits all files with more than one name, at path or below it. */
static void walk(struct twins *twins, const char *root, const char *path, enum coop_seal_kind kind,
		 visitor visit, int depth)
{
	char name[COOP_PATH_SIZE];
	struct stat st;

	if (twins->b->failed || lstat(path, &st) < 0)
		return;
	if (S_ISREG(st.st_mode) && st.st_nlink > 1)
		visit(twins, root, path, &st, kind);
	if (!S_ISDIR(st.st_mode))
		return;
	twins->complete &= depth < DEPTH_MAX;
	DIR *dir = depth < DEPTH_MAX ? opendir(path) : NULL;
	/* What we may not read the process may not either. */
	if (!dir)
		return;
	for (const struct dirent *entry; (entry = readdir(dir));) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		if (twins->budget == 0) {
			twins->complete = false;
			break;
		}
		twins->budget--;
		/* Most entries are passed over without another call. */
		if (worth_a_look(twins, entry) && coop_path_join(path, entry->d_name, name) == 0)
			walk(twins, root, name, kind, visit, depth + 1);
	}
	(void)closedir(dir);
}

static int compare_twins(const void *one, const void *other)
{
	const struct twin *a = one, *b = other;

	if (a->dev != b->dev)
		return a->dev < b->dev ? -1 : 1;
	return a->ino < b->ino ? -1 : a->ino > b->ino;
}

static int compare_names(const void *one, const void *other)
{
	const struct twin *a = one, *b = other;
	int order = compare_twins(one, other);

	return order ? order : a->path < b->path ? -1 : a->path > b->path;
}

static uint64_t hash(const char *text)
{
	uint64_t key = UINT64_C(0xcbf29ce484222325);

	for (; *text; text++)
		key = (key ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
	return key;
}

static struct twin *list_of(const struct twins *twins, size_t *ret_count)
{
	*ret_count = coop_buf_size(&twins->list) / sizeof(struct twin);
	return (struct twin *)(void *)coop_buf_front(&twins->list);
}

/* One name of a sealed file. Names in writable roots are counted when those are searched. */
static void collect(struct twins *twins, const char *root, const char *path, const struct stat *st,
		    enum coop_seal_kind kind)
{
	struct twin twin = {.dev = st->st_dev,
			    .ino = st->st_ino,
			    .names = st->st_nlink,
			    .known = coop_builder_zone(twins->b, path, NULL) != COOP_ZONE_WRITABLE,
			    .kind = kind,
			    .credential = twins->credentials,
			    .firm = twins->firm,
			    .path = hash(path)};

	(void)root;
	(void)snprintf(twin.name, sizeof twin.name, "%s", path);
	twins->inodes[st->st_ino % INODE_BITS / 8] |= (uint8_t)(1u << st->st_ino % 8);
	if (coop_buf_append(&twins->list, &twin, sizeof twin) < 0)
		coop_builder_no_memory(twins->b);
}

/* Several names of one file in what is sealed are one twin. */
static void unite(struct twins *twins)
{
	size_t count, kept = 0;
	struct twin *list = list_of(twins, &count);

	qsort(list, count, sizeof *list, compare_names);
	for (size_t i = 1; i < count; i++) {
		if (compare_twins(&list[kept], &list[i]) == 0) {
			if (list[kept].path != list[i].path)
				list[kept].known += list[i].known;
			list[kept].path = list[i].path;
			list[kept].credential &= list[i].credential;
			if (list[i].kind > list[kept].kind)
				list[kept].kind = list[i].kind;
		} else {
			list[++kept] = list[i];
		}
	}
	twins->list.tail = twins->list.head + (kept + 1) * sizeof *list;
}

static void find(struct twins *twins, const char *root, const char *path, const struct stat *st,
		 enum coop_seal_kind kind)
{
	struct twin key = {.dev = st->st_dev, .ino = st->st_ino};
	size_t count;
	struct twin *list = list_of(twins, &count);
	struct twin *twin = bsearch(&key, list, count, sizeof *list, compare_twins);

	(void)kind;
	if (!twin)
		return;
	twin->known++;
	if (coop_builder_sealed(twins->b, path, twin->kind) &&
	    !(twins->b->degraded && twin->kind == COOP_SEAL_READONLY))
		return;
	twins->b->firm = twin->firm;
	/* A home inside the root has a layer of its own, in which writing does no harm. */
	if (coop_builder_zone(twins->b, path, &root) == COOP_ZONE_WRITABLE)
		coop_layout_seal_in(twins->b, root, path, twin->kind, (struct coop_stand_in){0});
	else if (twin->kind == COOP_SEAL_COVER)
		coop_builder_seal(twins->b, path, COOP_SEAL_COVER, COOP_OP_OPTIONAL);
	twins->b->firm = false;
}

/* The keeper's own, and the folders of all agents: nobody but the user himself could have made
 * other names of that, and without mounts they are sealed for every process. */
static bool keepers(const struct coop_builder *b, const char *path)
{
	bool is = b->input->emptied && !strcmp(path, b->input->emptied);

	for (const char *const *p = b->input->hidden; p && *p; p++)
		is |= !strcmp(path, *p);
	return is;
}

/* Seals grow while they are looked at: those that were there at the start count. */
static void collect_sealed(struct twins *twins)
{
	const struct coop_buf *seals = &twins->b->seals;
	size_t count = coop_buf_size(seals) / sizeof(struct coop_seal),
	       left = ALL_SEALED_ENTRIES_MAX;

	for (size_t i = 0; i < count && !twins->b->failed; i++) {
		const struct coop_seal *seal =
			&((const struct coop_seal *)(const void *)coop_buf_front(seals))[i];
		if (seal->kind == COOP_SEAL_PIN || seal->flags & COOP_OP_UNLOOKED ||
		    coop_builder_missing(twins->b, seal->path))
			continue;
		/* Without mounts what is only protected can be written anyway. */
		if (twins->b->degraded && ((seal->kind == COOP_SEAL_READONLY && !seal->firm) ||
					   keepers(twins->b, seal->path)))
			continue;
		size_t most = left < SEALED_ENTRIES_MAX ? left : SEALED_ENTRIES_MAX;
		twins->budget = most;
		twins->complete = true;
		twins->credentials = seal->shallow;
		twins->firm = seal->firm;
		walk(twins, NULL, seal->path, seal->kind, collect, seal->shallow ? DEPTH_MAX : 0);
		left -= most - twins->budget;
		if (!twins->complete && !seal->shallow && (!left || seal->kind == COOP_SEAL_COVER))
			coop_builder_note(twins->b,
					  "hard links of what is in %.80s were not looked for",
					  seal->path);
	}
}

/* Credentials that the home's layer has not, that lie in a hidden home, or that Landlock alone
 * hides: files, and those that lie in a folder itself. */
static void collect_masked(struct twins *twins)
{
	const struct coop_builder *b = twins->b;
	char path[COOP_PATH_SIZE];

	if (!b->looked)
		return;
	enum coop_zone zone = coop_builder_zone(b, b->input->home, NULL);
	if (zone != COOP_ZONE_LAYER && zone != COOP_ZONE_PRIVATE && !b->degraded)
		return;
	twins->budget = MASKED_ENTRIES_MAX;
	twins->credentials = true;
	twins->firm = false;
	for (uint32_t i = 0; i < coop_credentials_count; i++) {
		if (b->credentials[i].state == COOP_FOUND_PLAIN &&
		    coop_path_join(b->input->home, coop_credentials[i], path) == 0)
			walk(twins, NULL, path, COOP_SEAL_COVER, collect, DEPTH_MAX - 1);
	}
}

/* Stacked and remote file systems may number their files otherwise in folders. */
static bool tells_inodes(const char *path)
{
	static const long kinds[] = {EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC,
				     TMPFS_MAGIC, F2FS_SUPER_MAGIC};
	struct statfs fs;

	if (statfs(path, &fs) < 0)
		return false;
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
		if ((long)fs.f_type == kinds[i])
			return true;
	}
	return false;
}

/* Whether it is searched with another of the roots. */
static bool inner(const struct coop_layout_root *roots, size_t count, const char *path)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(roots[i].path, path) != 0 && coop_path_below(path, roots[i].path))
			return true;
	}
	return false;
}

static void search_root(struct twins *twins, const char *path, enum coop_zone zone)
{
	const char *top;

	if (coop_builder_zone(twins->b, path, &top) != zone || strcmp(top, path) != 0)
		return;
	twins->by_inode = tells_inodes(path);
	walk(twins, path, path, COOP_SEAL_PIN, find, 0);
}

static void search_roots(struct twins *twins)
{
	const struct coop_layout_input *input = twins->b->input;

	twins->budget = ROOT_ENTRIES_MAX;
	twins->complete = true;
	for (size_t i = 0; i < input->writable_count; i++) {
		if (!inner(input->writable, input->writable_count, input->writable[i].path))
			search_root(twins, input->writable[i].path, COOP_ZONE_WRITABLE);
	}
	for (size_t i = 0; i < input->readable_count; i++) {
		const char *path = input->readable[i].path;
		if (!inner(input->readable, input->readable_count, path) &&
		    !inner(input->writable, input->writable_count, path))
			search_root(twins, path, COOP_ZONE_READABLE);
	}
}

void coop_layout_twins(struct coop_builder *b)
{
	struct twins twins = {.b = b};
	size_t count;

	if (b->failed)
		return;
	collect_sealed(&twins);
	collect_masked(&twins);
	if (coop_buf_size(&twins.list) && !b->failed) {
		unite(&twins);
		search_roots(&twins);
		const struct twin *list = list_of(&twins, &count);
		for (size_t i = 0; i < count; i++) {
			/* Names outside are read-only, so it is only reading that they may
			 * allow. */
			if (list[i].known < list[i].names && list[i].credential)
				(void)snprintf(b->out->links, sizeof b->out->links,
					       "hard links of %s may show it elsewhere",
					       list[i].name);
			else if (list[i].known < list[i].names &&
				 (list[i].kind == COOP_SEAL_COVER || !twins.complete))
				coop_builder_note(b, "hard links of %s may show it elsewhere",
						  list[i].name);
		}
	}
	coop_buf_clear(&twins.list);
}
