#include "sandbox/layout/host_sockets.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/unix_diag.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io/sock_diag.h"
#include "base/io/textfile.h"
#include "base/mem.h"
#include "sandbox/layout/silence.h"

#define TABLE "/proc/net/unix"
#define TABLE_MAX (8u << 20)
#define MANY 256u /* reading so many takes longer than a start may */
#define KEPT_NS 250000000u
#define KNOWN_NS UINT64_C(5000000000)
#define FIELDS_BEFORE_PATH 7

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Connections of a server carry its path, too: each is looked at once. Returns how many are
 * left. */
static size_t drop_repeated(char **paths, size_t count)
{
	size_t kept = 0;

	if (count)
		qsort(paths, count, sizeof *paths, by_text);
	for (size_t i = 0; i < count; i++) {
		if (!kept || strcmp(paths[kept - 1], paths[i]) != 0)
			paths[kept++] = paths[i];
	}
	return kept;
}

/* Where the path leads, if that is a socket: 0 with the path, or -errno as of coop_silence_resolve.
 * A name may be older than what is there now, or mean something in another view. */
static int resolve(const struct coop_silence *silence, const char *path, char **ret)
{
	char real[COOP_PATH_SIZE];
	struct stat status;
	int r = coop_silence_resolve(silence, path, real);

	if (r < 0)
		return r;
	if (lstat(real, &status) < 0 || !S_ISSOCK(status.st_mode))
		return -ENOENT;
	*ret = coop_mem_strdup(real);
	return *ret ? 0 : -ENOMEM;
}

/* Whether the names are those of the last time. */
static bool same(const struct coop_host_sockets *sockets, char *const *names, size_t count)
{
	const char *known = (const char *)coop_buf_front(&sockets->names);
	size_t left = coop_buf_size(&sockets->names);

	for (size_t i = 0; i < count; i++) {
		size_t size = strlen(names[i]) + 1;
		if (size > left || memcmp(known, names[i], size) != 0)
			return false;
		known += size;
		left -= size;
	}
	return !left && sockets->paths;
}

static void forget(struct coop_host_sockets *sockets)
{
	for (size_t i = 0; i < sockets->count; i++)
		free(sockets->paths[i]);
	free(sockets->paths);
	sockets->paths = NULL;
	sockets->count = 0;
	while (sockets->cold_count)
		free(sockets->cold[--sockets->cold_count]);
	free(sockets->cold);
	sockets->cold = NULL;
	coop_buf_consume(&sockets->names, coop_buf_size(&sockets->names));
	coop_buf_consume(&sockets->unseen, coop_buf_size(&sockets->unseen));
}

/* 0 or -ENOMEM, with the list as it was. */
static int add_copy(char ***list, size_t *count, const char *text)
{
	char **grown = coop_mem_realloc(*list, (*count + 1) * sizeof *grown);
	char *copy = coop_mem_strdup(text);

	if (grown)
		*list = grown;
	if (grown && copy)
		(*list)[(*count)++] = copy;
	else
		free(copy);
	return grown && copy ? 0 : -ENOMEM;
}

/* Where a name leads, or to whom it is left. 0 or -ENOMEM. `paths` has room for it. */
static int resolve_name(struct coop_host_sockets *sockets, const struct coop_silence *silence,
			const char *name, char **paths)
{
	char *real = NULL;
	int r = resolve(silence, name, &real);

	if (r == 0)
		paths[sockets->count++] = real;
	else if (r == -EREMOTE)
		r = coop_buf_append(&sockets->unseen, name, strlen(name) + 1);
	else if (r == -EAGAIN)
		r = add_copy(&sockets->cold, &sockets->cold_count, name);
	return r == -ENOMEM ? r : 0;
}

/* Takes the list over. What cannot be kept for want of memory is looked for again the next time. */
static void resolve_all(struct coop_host_sockets *sockets, const struct coop_silence *silence,
			char **names, size_t count)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < count; i++)
		r = coop_buf_append(&sockets->names, names[i], strlen(names[i]) + 1);
	for (size_t i = 0; i < count; i++) {
		if (resolve_name(sockets, silence, names[i], names) < 0)
			r = -ENOMEM;
	}
	names[sockets->count] = NULL;
	sockets->paths = names;
	sockets->generation = silence->generation;
	sockets->resolved_at = r == 0 ? coop_clock_now() : 0;
}

/* What stands behind the fields of a line; NULL: the socket has no name. */
static char *path_of(char *line)
{
	for (int i = 0; i < FIELDS_BEFORE_PATH; i++) {
		line += strspn(line, " ");
		line += strcspn(line, " \n");
	}
	return *line == ' ' && line[1] == '/' ? line + 1 : NULL;
}

static int read_table(struct coop_buf *ret)
{
	struct coop_buf table = {0};
	size_t count = 0;
	char *end;

	int r = coop_textfile_read(TABLE, TABLE_MAX, &table);
	/* As much as there is room for. */
	if (r == -EFBIG)
		r = 0;
	for (char *line = (char *)coop_buf_front(&table);
	     r == 0 && count < COOP_HOST_SOCKETS_MAX && (end = strchr(line, '\n'));
	     line = end + 1) {
		char *path = path_of(line);
		if (!path)
			continue;
		*end = 0;
		count++;
		r = coop_buf_append(ret, path, (size_t)(end - path) + 1);
	}
	coop_buf_clear(&table);
	return r;
}

static void stop_asking(struct coop_host_sockets *sockets)
{
	if (sockets->opened)
		(void)close(sockets->fd);
	sockets->opened = false;
}

struct finding {
	struct coop_buf *names;
	size_t left; /* that may yet be appended */
};

/* Without a slash in front a name is abstract, or relative to who knows where. */
static int take_name(struct finding *finding, const char *name, size_t size)
{
	if (!size || *name != '/' || !finding->left)
		return 0;
	finding->left--;
	int r = coop_buf_append(finding->names, name, strnlen(name, size));
	return r < 0 ? r : coop_buf_append(finding->names, "", 1);
}

/* A fixed part and attributes, of which one is the name. */
static int take_socket(void *user, const void *told, size_t size)
{
	const char *bytes = told;
	const struct rtattr *part;

	for (size_t at = NLMSG_ALIGN(sizeof(struct unix_diag_msg)); at + sizeof *part <= size;
	     at += RTA_ALIGN(part->rta_len)) {
		part = (const void *)(bytes + at);
		if (part->rta_len < sizeof *part || part->rta_len > size - at)
			return -EPROTO;
		if (part->rta_type == UNIX_DIAG_NAME)
			return take_name(user, bytes + at + sizeof *part,
					 part->rta_len - sizeof *part);
	}
	return 0;
}

static int ask_kernel(struct coop_host_sockets *sockets)
{
	/* In every state: a bound datagram socket counts as connected once anybody connected to
	 * it. */
	const struct unix_diag_req question = {
		.sdiag_family = AF_UNIX, .udiag_states = UINT32_MAX, .udiag_show = UDIAG_SHOW_NAME};
	struct finding finding = {&sockets->found, COOP_HOST_SOCKETS_MAX};
	int r = 0;

	if (!sockets->opened) {
		r = coop_sock_diag_open();
		sockets->opened = r >= 0;
		sockets->fd = r;
	}
	if (sockets->opened)
		r = coop_sock_diag_ask(sockets->fd, &question, sizeof question, take_socket,
				       &finding);
	if (r < 0)
		stop_asking(sockets);
	return r;
}

/* Whether that may be otherwise the next time. */
static bool passes(int error)
{
	return error == -ENOMEM || error == -ENOBUFS || error == -EMFILE || error == -ENFILE ||
	       error == -EINTR;
}

static void forget_found(struct coop_host_sockets *sockets)
{
	coop_buf_consume(&sockets->found, coop_buf_size(&sockets->found));
}

/* The table is text with a line for every socket, nameless ones too, and a name with a line break
 * is cut in it: where there are many, reading it takes eight times as long. */
static int find(struct coop_host_sockets *sockets)
{
	forget_found(sockets);
	int r = sockets->unanswered ? -EOPNOTSUPP : ask_kernel(sockets);
	if (r == 0)
		return 0;
	sockets->unanswered = !passes(r);
	forget_found(sockets);
	return read_table(&sockets->found);
}

/* The names that were found, each once; they stay where they are. NULL: no memory. */
static char **list_found(const struct coop_host_sockets *sockets, size_t *ret_count)
{
	char *text = (char *)coop_buf_front(&sockets->found);
	size_t size = coop_buf_size(&sockets->found), count = 0;

	for (size_t at = 0; at < size; at += strlen(text + at) + 1)
		count++;
	char **names = coop_mem_alloc((count + 1) * sizeof *names);
	if (!names)
		return NULL;
	count = 0;
	for (size_t at = 0; at < size; at += strlen(text + at) + 1)
		names[count++] = text + at;
	*ret_count = drop_repeated(names, count);
	return names;
}

static void refresh(struct coop_host_sockets *sockets, const struct coop_silence *silence)
{
	uint64_t now = coop_clock_now();
	bool moved = sockets->generation != silence->generation;
	size_t count;

	if (sockets->count > MANY && now - sockets->read_at < KEPT_NS && !moved)
		return;
	sockets->read_at = now;
	char **names = find(sockets) < 0 ? NULL : list_found(sockets, &count);
	if (!names) {
		/* By other mounts they may lead elsewhere. */
		if (moved)
			forget(sockets);
		return;
	}
	/* Where they lead is mostly known already, and takes longer to find out than all the
	 * rest. */
	if (same(sockets, names, count) && now - sockets->resolved_at < KNOWN_NS && !moved) {
		free(names);
	} else {
		forget(sockets);
		resolve_all(sockets, silence, names, count);
	}
}

/* With those that are lent. */
static const char *const *list_all(struct coop_host_sockets *sockets)
{
	size_t count = 0;

	free(sockets->all);
	sockets->all =
		coop_mem_alloc((sockets->count + sockets->lent_count + 1) * sizeof *sockets->all);
	if (!sockets->all)
		return (const char *const *)sockets->paths;
	for (size_t i = 0; i < sockets->count; i++)
		sockets->all[count++] = sockets->paths[i];
	for (size_t i = 0; i < sockets->lent_count; i++)
		sockets->all[count++] = sockets->lent[i];
	sockets->all[count] = NULL;
	return sockets->all;
}

const char *const *coop_host_sockets_list(struct coop_host_sockets *sockets,
					  const struct coop_silence *silence)
{
	refresh(sockets, silence);
	return sockets->lent_count ? list_all(sockets) : (const char *const *)sockets->paths;
}

void coop_host_sockets_lend(struct coop_host_sockets *sockets, const char *path)
{
	(void)add_copy(&sockets->lent, &sockets->lent_count, path);
}

static bool has_path(const struct coop_host_sockets *sockets, const char *path)
{
	for (size_t i = 0; i < sockets->count; i++) {
		if (!strcmp(sockets->paths[i], path))
			return true;
	}
	return false;
}

/* The name is cold no more. False: it was not. */
static bool warm(struct coop_host_sockets *sockets, const char *name)
{
	for (size_t i = 0; i < sockets->cold_count; i++) {
		if (!strcmp(sockets->cold[i], name)) {
			free(sockets->cold[i]);
			sockets->cold[i] = sockets->cold[--sockets->cold_count];
			return true;
		}
	}
	return false;
}

void coop_host_sockets_learn(struct coop_host_sockets *sockets, unsigned generation,
			     const char *name, const char *path)
{
	COOP_AUTO_FREE char *copy = *path ? coop_mem_strdup(path) : NULL;
	bool kept = (copy || !*path) && generation == sockets->generation && warm(sockets, name);

	if (!*path || has_path(sockets, path))
		return;
	if (kept) {
		/* The list has room for as many paths as there are names. */
		sockets->paths[sockets->count++] = COOP_TAKE_PTR(copy);
		sockets->paths[sockets->count] = NULL;
	} else {
		coop_host_sockets_lend(sockets, path);
	}
}

void coop_host_sockets_take_back(struct coop_host_sockets *sockets)
{
	while (sockets->lent_count)
		free(sockets->lent[--sockets->lent_count]);
	free(sockets->lent);
	free(sockets->all);
	sockets->lent = NULL;
	sockets->all = NULL;
}

void coop_host_sockets_clear(struct coop_host_sockets *sockets)
{
	forget(sockets);
	coop_buf_clear(&sockets->names);
	coop_buf_clear(&sockets->unseen);
	coop_buf_clear(&sockets->found);
	stop_asking(sockets);
}
