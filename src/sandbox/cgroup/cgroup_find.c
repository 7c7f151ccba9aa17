#include "sandbox/cgroup/cgroup_find.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/mem.h"

/* A piece of the text. */
struct span {
	const char *at;
	size_t size;
};

/* One line of mountinfo: "31 23 0:28 ROOT POINT OPTIONS OPTIONAL… - TYPE SOURCE SUPER". */
struct mount {
	struct span root, point, options, type, super;
};

const char *coop_controller_name(enum coop_controller controller)
{
	static const char *const names[COOP_CG_COUNT] = {
		[COOP_CG_MEMORY] = "memory",
		[COOP_CG_CPU] = "cpu",
		[COOP_CG_PIDS] = "pids",
		[COOP_CG_FREEZER] = "freezer",
	};

	return names[controller];
}

bool coop_cgroup_listed(const char *list, size_t size, const char *separators, const char *word)
{
	size_t length = strlen(word);

	for (size_t i = 0; i < size;) {
		size_t end = i;
		while (end < size && !strchr(separators, list[end]))
			end++;
		if (end - i == length && !memcmp(list + i, word, length))
			return true;
		i = end + 1;
	}
	return false;
}

/* Takes the next line off the front of *text. */
static bool next_line(const char **text, struct span *ret)
{
	if (!**text)
		return false;
	ret->at = *text;
	ret->size = strcspn(*text, "\n");
	*text += ret->size + ((*text)[ret->size] == '\n');
	return true;
}

static bool next_word(struct span *line, struct span *ret)
{
	while (line->size && *line->at == ' ') {
		line->at++;
		line->size--;
	}
	const char *blank = memchr(line->at, ' ', line->size);
	ret->at = line->at;
	ret->size = blank ? (size_t)(blank - line->at) : line->size;
	line->at += ret->size;
	line->size -= ret->size;
	return ret->size > 0;
}

static bool is(struct span span, const char *text)
{
	return span.size == strlen(text) && !memcmp(span.at, text, span.size);
}

static bool parse_mount(struct span line, struct mount *ret)
{
	struct span word;

	for (int i = 0; i < 3; i++) {
		if (!next_word(&line, &word))
			return false;
	}
	if (!next_word(&line, &ret->root) || !next_word(&line, &ret->point) ||
	    !next_word(&line, &ret->options))
		return false;
	do {
		if (!next_word(&line, &word))
			return false;
	} while (!is(word, "-"));
	/* The source is whatever the one who mounted it wrote there, nothing included. */
	if (!next_word(&line, &ret->type) || !next_word(&line, &word))
		return false;
	if (!next_word(&line, &ret->super))
		ret->super = word;
	return true;
}

/* The byte that \ooo at `text` stands for; 0: it is none. */
static int octal(const char *text, size_t size)
{
	if (size < 4 || *text != '\\' || strspn(text + 1, "01234567") < 3 || text[1] > '3')
		return 0;
	return (text[1] - '0') << 6 | (text[2] - '0') << 3 | (text[3] - '0');
}

/* The kernel writes blanks, newlines and backslashes in paths that way. */
static size_t unescape(struct span from, char *to)
{
	size_t size = 0;

	for (size_t i = 0; i < from.size; i++) {
		int byte = octal(from.at + i, from.size - i);
		to[size++] = byte ? (char)byte : from.at[i];
		i += byte ? 3 : 0;
	}
	to[size] = 0;
	return size;
}

/* The own group's path in the hierarchy of `controller`; with NULL in that of version 2.
 * "4:memory:/a", "1:cpu,cpuacct:/", "0::/a". */
static bool own_path(const char *text, const char *controller, struct span *ret)
{
	struct span line;

	while (next_line(&text, &line)) {
		const char *names = memchr(line.at, ':', line.size);
		if (!names)
			continue;
		names++;
		const char *path = memchr(names, ':', line.size - (size_t)(names - line.at));
		if (!path)
			continue;
		size_t size = (size_t)(path - names);
		if (controller ? !coop_cgroup_listed(names, size, ",", controller) : size != 0)
			continue;
		ret->at = path + 1;
		ret->size = line.size - (size_t)(ret->at - line.at);
		return ret->size > 0 && *ret->at == '/';
	}
	return false;
}

static bool fits(const struct mount *mount, const char *controller)
{
	if (!controller)
		return is(mount->type, "cgroup2");
	return is(mount->type, "cgroup") &&
	       coop_cgroup_listed(mount->super.at, mount->super.size, ",", controller);
}

/* What of the own path lies below the mount's root; false: the own group is not to be seen in it.
 * Both begin at the root of this process's cgroup namespace, and say "/.." for what is above it:
 * the same dots at the front mean the same group. */
static bool below(struct span root, struct span own, struct span *ret)
{
	if (is(root, "/"))
		root.size = 0;
	if (own.size < root.size || memcmp(own.at, root.at, root.size) != 0)
		return false;
	ret->at = own.at + root.size;
	ret->size = own.size - root.size;
	if (ret->size && *ret->at != '/')
		return false;
	if (ret->size == 1)
		ret->size = 0;
	/* Dots that are left lead out of the mount, to a group whose name is not told. */
	return !(ret->size >= 3 && !memcmp(ret->at, "/..", 3) &&
		 (ret->size == 3 || ret->at[3] == '/'));
}

static int take(struct coop_cgroup_place *place, const struct mount *mount, struct span rest)
{
	COOP_AUTO_FREE char *folder = coop_mem_alloc(mount->point.size + rest.size + 1);

	if (!folder)
		return -ENOMEM;
	size_t top = unescape(mount->point, folder);
	memcpy(folder + top, rest.at, rest.size);
	folder[top + rest.size] = 0;
	free(place->folder);
	place->folder = COOP_TAKE_PTR(folder);
	place->top = top;
	return 0;
}

/* The first mount that shows the own group and may be written; one that may not only if there is no
 * other. */
static int find_one(const char *mountinfo, const char *own, const char *controller,
		    struct coop_cgroup_place *place)
{
	struct span line, path, rest;
	struct mount mount;

	if (!own_path(own, controller, &path)) {
		(void)snprintf(place->why, sizeof place->why, "not in use");
		return 0;
	}
	(void)snprintf(place->why, sizeof place->why, "not mounted");
	while (next_line(&mountinfo, &line)) {
		if (!parse_mount(line, &mount) || !fits(&mount, controller))
			continue;
		if (!below(mount.root, path, &rest)) {
			(void)snprintf(place->why, sizeof place->why, "own group not below %.*s",
				       (int)mount.point.size, mount.point.at);
			continue;
		}
		bool readonly =
			coop_cgroup_listed(mount.options.at, mount.options.size, ",", "ro") ||
			coop_cgroup_listed(mount.super.at, mount.super.size, ",", "ro");
		if (readonly && place->folder)
			continue;
		if (take(place, &mount, rest) < 0)
			return -ENOMEM;
		place->readonly = readonly;
		if (!readonly)
			break;
	}
	if (place->folder)
		place->why[0] = 0;
	return 0;
}

int coop_cgroup_find(const char *mountinfo, const char *own, struct coop_cgroup_places *ret)
{
	*ret = (struct coop_cgroup_places){0};
	int r = find_one(mountinfo, own, NULL, &ret->unified);
	for (unsigned i = 0; r == 0 && i < COOP_CG_COUNT; i++)
		r = find_one(mountinfo, own, coop_controller_name(i), &ret->v1[i]);
	if (r < 0)
		coop_cgroup_places_clear(ret);
	return r;
}

void coop_cgroup_places_clear(struct coop_cgroup_places *places)
{
	free(places->unified.folder);
	for (unsigned i = 0; i < COOP_CG_COUNT; i++)
		free(places->v1[i].folder);
	*places = (struct coop_cgroup_places){0};
}
