#include "sandbox/layout/mountinfo.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io/textfile.h"
#include "base/mem.h"
#include "sandbox/layout/layout_path.h"

void coop_mountinfo_clear(struct coop_mountinfo *info)
{
	coop_buf_clear(&info->text);
	free(info->mounts);
	*info = (struct coop_mountinfo){0};
}

/* Space, tab, newline and backslash stand as \ooo. In place. */
static void unescape(char *text)
{
	char *to = text;

	for (const char *from = text; *from;) {
		if (from[0] == '\\' && from[1] >= '0' && from[1] <= '3' && from[2] >= '0' &&
		    from[2] <= '7' && from[3] >= '0' && from[3] <= '7') {
			*to++ = (char)((from[1] - '0') * 64 + (from[2] - '0') * 8 +
				       (from[3] - '0'));
			from += 4;
		} else {
			*to++ = *from++;
		}
	}
	*to = 0;
}

static char *next_word(char **line)
{
	return strsep(line, " ");
}

/* What stands behind the lone dash: before it there are as many words as the kernel likes. */
static const char *find_type(char *line)
{
	for (const char *word; (word = next_word(&line));) {
		if (!strcmp(word, "-")) {
			const char *type = next_word(&line);
			return type ? type : "";
		}
	}
	return "";
}

/* "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw": the third to the fifth word
 * count here, and the type. */
static bool parse_line(char *line, struct coop_mount *ret)
{
	unsigned major, minor;

	(void)next_word(&line);
	(void)next_word(&line);
	const char *dev = next_word(&line);
	char *root = next_word(&line), *point = next_word(&line);
	if (!dev || !root || !point || sscanf(dev, "%u:%u", &major, &minor) != 2)
		return false;
	unescape(root);
	unescape(point);
	*ret = (struct coop_mount){.dev = (uint64_t)major << 32 | minor,
				   .root = root,
				   .point = point,
				   .type = find_type(line)};
	/* Name spaces and the like have a root that is no path. */
	return *root == '/' && *point == '/';
}

static int parse(struct coop_mountinfo *info)
{
	char *text = (char *)coop_buf_front(&info->text);
	size_t lines = 0;

	for (const char *c = text; *c; c++)
		lines += *c == '\n';
	info->mounts = coop_mem_alloc((lines + 1) * sizeof *info->mounts);
	if (!info->mounts)
		return -ENOMEM;
	for (char *line; (line = strsep(&text, "\n"));)
		info->count += parse_line(line, &info->mounts[info->count]);
	return 0;
}

int coop_mountinfo_parse(struct coop_mountinfo *ret, const char *text, size_t size)
{
	if (coop_buf_append(&ret->text, text, size) < 0 || coop_buf_append(&ret->text, "", 1) < 0)
		return -ENOMEM;
	return parse(ret);
}

int coop_mountinfo_read(struct coop_mountinfo *ret)
{
	int r = coop_textfile_read("/proc/self/mountinfo", COOP_MOUNTINFO_MAX, &ret->text);

	return r < 0 ? r : parse(ret);
}

const struct coop_mount *coop_mountinfo_find(const struct coop_mountinfo *info, const char *path)
{
	const struct coop_mount *best = NULL;
	size_t best_size = 0;

	/* Of two at the same place the later one is seen. */
	for (size_t i = 0; i < info->count; i++) {
		size_t size = strlen(info->mounts[i].point);
		if (size >= best_size && coop_path_below(path, info->mounts[i].point)) {
			best = &info->mounts[i];
			best_size = size;
		}
	}
	return best;
}

/* `base` and what `path` has below `folder`. */
static bool move_path(const char *path, const char *folder, const char *base, char *ret)
{
	const char *rest = path + (folder[1] ? strlen(folder) : 0);
	const char *front = base[1] ? base : "";

	if (!strcmp(rest, "/"))
		rest = "";
	if (!*front && !*rest)
		rest = "/";
	int n = snprintf(ret, COOP_PATH_SIZE, "%s%s", front, rest);
	return n > 0 && (size_t)n < COOP_PATH_SIZE;
}

void coop_mountinfo_aliases(const struct coop_mountinfo *info, const char *path,
			    void (*tell)(void *context, const char *alias), void *context)
{
	const struct coop_mount *own = coop_mountinfo_find(info, path);
	char inner[COOP_PATH_SIZE], alias[COOP_PATH_SIZE];

	if (!own || !move_path(path, own->point, own->root, inner))
		return;
	for (size_t i = 0; i < info->count; i++) {
		const struct coop_mount *other = &info->mounts[i];
		if (other == own || other->dev != own->dev)
			continue;
		if (coop_path_below(inner, other->root)) {
			if (move_path(inner, other->root, other->point, alias) &&
			    strcmp(alias, path) != 0)
				tell(context, alias);
		} else if (coop_path_below(other->root, inner) &&
			   !coop_path_below(other->point, path)) {
			tell(context, other->point);
		}
	}
}
