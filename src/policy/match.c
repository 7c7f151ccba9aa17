#include "policy/match.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/text/glob.h"
#include "policy/paths.h"
#include "policy/policy.h"

_Static_assert(PATH_MAX <= 4096, "realpath writes up to PATH_MAX");

/* Everybody waits for a decision: the file system is not asked without end. */
static bool may_look(struct coop_matches *matches, const char *path)
{
	if (matches->lookups >= COOP_MATCH_LOOKUPS) {
		matches->too_long = true;
		return false;
	}
	matches->lookups++;
	return !matches->may_look || matches->may_look(matches->user, path);
}

/* A file that is only read needs no right to be run. */
static bool suits(struct coop_matches *matches, const struct coop_match *match, const char *path)
{
	struct stat status;

	return may_look(matches, path) && stat(path, &status) == 0 && S_ISREG(status.st_mode) &&
	       (match->run->sourced || access(path, X_OK) == 0);
}

/* As execvp would look, from the command's own directory; . and source look there in the end. */
static bool search(struct coop_matches *matches, const struct coop_match *match,
		   char ret[COOP_PATH_MAX])
{
	const char *at = matches->path, *typed = match->run->typed;

	while (at) {
		size_t size = strcspn(at, ":");
		char folder[COOP_PATH_MAX];
		struct coop_path path;

		/* An empty part is the working directory. */
		if (size < sizeof folder) {
			memcpy(folder, at, size);
			folder[size] = '\0';
			if (coop_path_make(&path, match->cwd, folder) &&
			    snprintf(ret, COOP_PATH_MAX, "%s/%s", path.text, typed) <
				    (int)COOP_PATH_MAX &&
			    suits(matches, match, ret))
				return true;
		}
		at = at[size] ? at + size + 1 : NULL;
	}
	return match->run->sourced && match->cwd &&
	       snprintf(ret, COOP_PATH_MAX, "%s/%s", match->cwd, typed) < (int)COOP_PATH_MAX &&
	       suits(matches, match, ret);
}

/* The path to look at; false where there is none. */
static bool locate(struct coop_matches *matches, const struct coop_match *match,
		   char ret[COOP_PATH_MAX])
{
	const char *typed = match->run->typed;

	if (match->run->flags & COOP_WORD_COMPUTED)
		return false;
	if (!strchr(typed, '/'))
		return search(matches, match, ret);
	/* Not the plain path: link/../x is not x for the kernel. */
	if (*typed == '/')
		return snprintf(ret, COOP_PATH_MAX, "%s", typed) < (int)COOP_PATH_MAX;
	return match->cwd &&
	       snprintf(ret, COOP_PATH_MAX, "%s/%s", match->cwd, typed) < (int)COOP_PATH_MAX;
}

static void identify(struct coop_matches *matches, struct coop_match_file *file, const char *path)
{
	struct stat status;

	if (file->looked || !may_look(matches, path))
		return;
	file->looked = true;
	file->there = stat(path, &status) == 0;
	if (!file->there)
		return;
	file->device = status.st_dev;
	file->inode = status.st_ino;
}

static char *keep(struct coop_matches *matches, const char *text)
{
	char *copy = coop_mem_strdup(text);

	matches->no_memory |= !copy;
	return copy;
}

static void look(struct coop_matches *matches, struct coop_match *match)
{
	char found[COOP_PATH_MAX], resolved[COOP_PATH_MAX];
	struct coop_path path;

	if (match->looked)
		return;
	match->looked = true;
	if (!locate(matches, match, found))
		return;
	identify(matches, &match->file, found);
	if (may_look(matches, found) && realpath(found, resolved))
		match->resolved = keep(matches, resolved);
	/* Plain, for comparison with paths as people write them. */
	match->found = keep(matches, coop_path_make(&path, NULL, found) ? path.text : found);
}

/* A hard link is the same file under a name that realpath cannot see through. */
static bool same_file(struct coop_matches *matches, struct coop_match_file *file, const char *entry,
		      const struct coop_match *match)
{
	if (!match->file.there)
		return false;
	identify(matches, file, entry);
	return file->there && file->device == match->file.device &&
	       file->inode == match->file.inode;
}

static bool fits(struct coop_matches *matches, struct coop_match_file *file, const char *entry,
		 struct coop_match *match)
{
	if (!strchr(entry, '/')) {
		if (!strcmp(entry, match->run->name))
			return true;
		look(matches, match);
		return match->resolved && !strcmp(entry, coop_path_name(match->resolved));
	}
	if (!strcmp(entry, match->run->typed))
		return true;
	look(matches, match);
	return match->found && (!strcmp(entry, match->found) ||
				(match->resolved && !strcmp(entry, match->resolved)) ||
				same_file(matches, file, entry, match));
}

void coop_match_list_init(struct coop_match_list *list, const struct coop_rules *rules)
{
	list->rules = rules;
	for (size_t i = 0; i < rules->count; i++)
		list->files[i].looked = list->files[i].there = false;
}

const struct coop_rule *coop_match_find(struct coop_matches *matches, struct coop_match_list *list,
					struct coop_match *match)
{
	for (size_t i = 0; i < list->rules->count; i++) {
		if (fits(matches, &list->files[i], list->rules->items[i].text, match))
			return &list->rules->items[i];
	}
	return NULL;
}

/* Whether `entry` begins and ends with what is sure of the name. */
static bool could_be(const struct coop_run *run, const char *entry)
{
	size_t size = strlen(entry), whole = strlen(run->typed), folder = whole - strlen(run->name);
	size_t head = run->head, tail = run->tail;

	if (run->head == COOP_WORD_LITERAL || whole < head + tail)
		return false;
	/* With the last slash in the sure end the name is sure, and has been compared. */
	if (folder + tail > whole)
		return false;
	head = head > folder ? head - folder : 0;
	return head + tail && size >= head + tail && !strncmp(entry, run->name, head) &&
	       !strcmp(entry + size - tail, run->typed + whole - tail);
}

const struct coop_rule *coop_match_could(const struct coop_rules *rules,
					 const struct coop_match *match)
{
	const struct coop_run *run = match->run;

	if (!(run->flags & (COOP_WORD_COMPUTED | COOP_WORD_GLOB)))
		return NULL;
	for (size_t i = 0; i < rules->count; i++) {
		const char *name = coop_path_name(rules->items[i].text);
		if (run->flags & COOP_WORD_COMPUTED ? could_be(run, name)
						    : coop_glob_match(run->name, name, NULL))
			return &rules->items[i];
	}
	return NULL;
}

bool coop_match_exists(struct coop_matches *matches, struct coop_match *match)
{
	look(matches, match);
	return match->resolved != NULL;
}

/* Whether what the program is depends on where it runs. */
static bool placed(const struct coop_matches *matches, const struct coop_run *run)
{
	const char *slash = strchr(run->typed, '/');

	return slash ? slash != run->typed : matches->path_relative || run->sourced;
}

static bool same(const struct coop_matches *matches, const struct coop_match *one,
		 const struct coop_match *other)
{
	if (one->shell != other->shell || one->run->flags != other->run->flags ||
	    one->run->sourced != other->run->sourced ||
	    strcmp(one->run->typed, other->run->typed) != 0)
		return false;
	if (!placed(matches, one->run) || one->cwd == other->cwd)
		return true;
	return one->cwd && other->cwd && !strcmp(one->cwd, other->cwd);
}

static uint32_t *bucket_of(struct coop_matches *matches, const char *text)
{
	uint32_t hash = 5381;

	/* A name longer than this is no honest one. */
	for (size_t i = 0; i < 256 && text[i]; i++)
		hash = hash * 33 + (unsigned char)text[i];
	return &matches->buckets[hash % COOP_MATCH_BUCKETS];
}

static void add(struct coop_matches *matches, const struct coop_match *match)
{
	uint32_t *bucket = bucket_of(matches, match->run->typed);

	for (uint32_t i = *bucket; i; i = matches->items[i - 1].next) {
		if (same(matches, &matches->items[i - 1], match))
			return;
	}
	if (matches->count == COOP_MATCH_PROGRAMS) {
		matches->too_long = true;
		return;
	}
	if (matches->count == matches->capacity) {
		size_t capacity = matches->capacity ? matches->capacity * 2 : 16;
		struct coop_match *grown =
			coop_mem_realloc(matches->items, capacity * sizeof *grown);
		if (!grown) {
			matches->no_memory = true;
			return;
		}
		matches->items = grown;
		matches->capacity = capacity;
	}
	matches->items[matches->count] = *match;
	matches->items[matches->count].next = *bucket;
	*bucket = (uint32_t)++matches->count;
}

static bool has_relative(const char *path)
{
	while (path) {
		if (*path != '/')
			return true;
		const char *colon = strchr(path, ':');
		path = colon ? colon + 1 : NULL;
	}
	return false;
}

void coop_matches_make(struct coop_matches *matches, const struct coop_runs *runs,
		       const struct coop_policy_command *command)
{
	*matches = (struct coop_matches){.path = command->path,
					 .path_relative = has_relative(command->path),
					 .may_look = command->may_look,
					 .user = command->user};
	for (size_t i = 0; i < runs->count && !matches->too_long && !matches->no_memory; i++) {
		const struct coop_run *run = &runs->items[i];
		const struct coop_simple *simple = coop_runs_command(runs, run);

		/* Behind sudo or env it is a program again. */
		add(matches,
		    &(struct coop_match){.run = run,
					 .cwd = simple->cwd,
					 .shell = simple->shell && run->typed == run->name &&
						  !run->wrapped});
	}
}

void coop_matches_clear(struct coop_matches *matches)
{
	for (size_t i = 0; i < matches->count; i++) {
		free(matches->items[i].found);
		free(matches->items[i].resolved);
	}
	free(matches->items);
}
