#include "policy/programs.h"

#include <ctype.h>
#include <string.h>

#include "policy/catalogue.h"

static const struct coop_known_program *search(const char *name, size_t size)
{
	const struct coop_catalogue_name *names = coop_catalogue_names;
	size_t low = 0, high = coop_catalogue_count;

	while (low < high) {
		size_t middle = (low + high) / 2;
		int order = strncmp(names[middle].name, name, size);
		if (!order && names[middle].name[size])
			order = 1;
		if (!order)
			return &coop_catalogue_groups[names[middle].group];
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

const struct coop_known_program *coop_program_find(const char *name)
{
	static const struct coop_known_program unknown;
	size_t size = strlen(name);
	const struct coop_known_program *found = search(name, size);

	if (found)
		return found;
	/* mkfs.ext4, python3.11, pip3 */
	if (!strncmp(name, "mkfs.", 5))
		return search("mkfs", 4);
	while (size > 1 && (isdigit((unsigned char)name[size - 1]) || name[size - 1] == '.'))
		size--;
	found = name[size] ? search(name, size) : NULL;
	return found ? found : &unknown;
}

bool coop_program_sorted(void)
{
	const struct coop_catalogue_name *names = coop_catalogue_names;

	for (size_t i = 1; i < coop_catalogue_count; i++) {
		if (strcmp(names[i - 1].name, names[i].name) >= 0)
			return false;
	}
	return true;
}

bool coop_program_listed(const char *list, const char *word)
{
	size_t size = strlen(word);

	for (const char *at = list; size && at && (at = strstr(at, word)); at++) {
		if (at > list && at[-1] == ' ' && at[size] == ' ')
			return true;
	}
	return false;
}

/* -abc: the first letter that takes a value ends the cluster; the rest of the word, or the next
 * one, is the value. */
static void read_cluster(struct coop_args *args, const char *text)
{
	const char *shorts = args->program->shorts;

	for (const char *c = text + 1; shorts && *c; c++) {
		if (!strchr(shorts, *c))
			continue;
		args->letter = *c;
		if (c[1]) {
			args->value = c + 1;
		} else if (args->next < args->count) {
			args->word = &args->words[args->next++];
			args->value = args->word->text;
		}
		return;
	}
}

static void read_long(struct coop_args *args, const char *text)
{
	const char *equal = strchr(text, '=');

	if (equal) {
		args->value = equal + 1;
	} else if (args->next < args->count && coop_program_listed(args->program->longs, text)) {
		args->word = &args->words[args->next++];
		args->value = args->word->text;
	}
}

bool coop_args_next(struct coop_args *args)
{
	if (args->next >= args->count)
		return false;
	args->word = &args->words[args->next++];
	args->option = args->value = NULL;
	args->letter = '\0';
	const char *text = args->word->text;
	if (args->rest || text[0] != '-' || !text[1]) {
		args->value = text;
		return true;
	}
	if (!strcmp(text, "--")) {
		args->rest = true;
		return coop_args_next(args);
	}
	args->option = text;
	if (text[1] == '-')
		read_long(args, text);
	else
		read_cluster(args, text);
	return true;
}

bool coop_args_is(const char *option, char letter, const char *name)
{
	if (option[1] != '-')
		return letter && strchr(option + 1, letter);
	/* Long names may be cut short, as long as they stay plain. */
	size_t size = strcspn(option, "=");
	return name && size > 3 && !strncmp(option, name, size);
}

bool coop_args_have(const struct coop_known_program *program, const struct coop_word *words,
		    size_t count, char letter, const char *name)
{
	struct coop_args args = {.program = program, .words = words, .count = count};

	while (coop_args_next(&args)) {
		if (args.option && coop_args_is(args.option, letter, name))
			return true;
	}
	return false;
}
