#include "policy/words.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define CHUNK ((size_t)16 * 1024)

struct coop_words_chunk {
	struct coop_words_chunk *next;
	size_t used, size;
	char bytes[];
};

/* Only what says how much there is of something is set: the space itself is some kilobytes. */
void coop_words_init(struct coop_words *words, const char *home)
{
	words->words = words->word_space;
	words->commands = words->command_space;
	words->pipes = words->pipe_space;
	words->functions = words->function_space;
	words->pending = words->pending_space;
	words->scratch = words->scratch_space;
	words->word_capacity = sizeof words->word_space / sizeof *words->word_space;
	words->command_capacity = sizeof words->command_space / sizeof *words->command_space;
	words->pipe_capacity = sizeof words->pipe_space / sizeof *words->pipe_space;
	words->function_capacity = sizeof words->function_space / sizeof *words->function_space;
	words->pending_capacity = sizeof words->pending_space / sizeof *words->pending_space;
	words->scratch_capacity = sizeof words->scratch_space;
	words->word_count = words->command_count = words->pipe_count = words->function_count = 0;
	words->pending_count = words->scratch_count = words->total = words->text_used = 0;
	words->stored = words->work = 0;
	words->variable_count = 0;
	words->last_id = 0;
	words->chunks = NULL;
	words->home = home;
	words->too_long = words->no_memory = false;
}

void coop_words_charge(struct coop_words *words, size_t steps)
{
	words->work += steps;
	words->too_long |= words->work > COOP_WORDS_WORK_MAX;
}

static void give_back(void *items, const void *space)
{
	if (items != space)
		free(items);
}

void coop_words_clear(struct coop_words *words)
{
	give_back(words->words, words->word_space);
	give_back(words->commands, words->command_space);
	give_back(words->pipes, words->pipe_space);
	give_back(words->functions, words->function_space);
	give_back(words->pending, words->pending_space);
	give_back(words->scratch, words->scratch_space);
	while (words->chunks) {
		struct coop_words_chunk *next = words->chunks->next;
		free(words->chunks);
		words->chunks = next;
	}
}

char *coop_words_text(struct coop_words *words, const char *text, size_t size)
{
	char *place;

	/* A variable that is used often can make much out of little. */
	words->stored += size + 1;
	if (words->stored > COOP_WORDS_STORED_MAX) {
		words->too_long = true;
		return NULL;
	}
	if (size < sizeof words->text_space - words->text_used) {
		place = words->text_space + words->text_used;
		words->text_used += size + 1;
	} else {
		struct coop_words_chunk *chunk = words->chunks;
		if (!chunk || chunk->size - chunk->used <= size) {
			size_t room = size + 1 > CHUNK ? size + 1 : CHUNK;
			chunk = coop_mem_alloc(sizeof *chunk + room);
			if (!chunk) {
				words->no_memory = true;
				return NULL;
			}
			*chunk = (struct coop_words_chunk){.next = words->chunks, .size = room};
			words->chunks = chunk;
		}
		place = chunk->bytes + chunk->used;
		chunk->used += size + 1;
	}
	if (size)
		memcpy(place, text, size);
	place[size] = '\0';
	return place;
}

void *coop_words_room(struct coop_words *words, void *items, const void *space, size_t size,
		      size_t count, size_t *capacity, size_t max)
{
	if (count >= max) {
		words->too_long = true;
		return NULL;
	}
	if (count < *capacity)
		return items;
	void *grown = coop_mem_realloc(items == space ? NULL : items, *capacity * 2 * size);
	if (!grown) {
		words->no_memory = true;
		return NULL;
	}
	if (items == space)
		memcpy(grown, space, count * size);
	*capacity *= 2;
	return grown;
}

#define ROOM(list, space, count, capacity, max)                                              \
	coop_words_room(words, words->list, words->space, sizeof *words->list, words->count, \
			&words->capacity, (max))

uint32_t coop_words_add_command(struct coop_words *words)
{
	struct coop_simple *items = ROOM(commands, command_space, command_count, command_capacity,
					 COOP_WORDS_COMMANDS_MAX);

	if (!items)
		return COOP_SIMPLE_NONE;
	words->commands = items;
	items[words->command_count] =
		(struct coop_simple){.parent = COOP_SIMPLE_NONE, .pipe = COOP_SIMPLE_NONE};
	return (uint32_t)words->command_count++;
}

void coop_words_add_pipe(struct coop_words *words, struct coop_pipe pipe)
{
	struct coop_pipe *items =
		ROOM(pipes, pipe_space, pipe_count, pipe_capacity, COOP_WORDS_COMMANDS_MAX);

	if (!items)
		return;
	uint32_t index = (uint32_t)words->pipe_count++;
	words->pipes = items;
	items[index] = pipe;
	items[index].outer = COOP_SIMPLE_NONE;
	/* Those inside were added before it. */
	for (uint32_t i = pipe.middle; i < pipe.end; i++) {
		uint32_t *place = &words->commands[i].pipe;
		while (*place != COOP_SIMPLE_NONE && *place != index)
			place = &items[*place].outer;
		*place = index;
	}
	coop_words_charge(words, pipe.end - pipe.middle);
}

void coop_words_add_function(struct coop_words *words, struct coop_function function)
{
	struct coop_function *items = ROOM(functions, function_space, function_count,
					   function_capacity, COOP_WORDS_COMMANDS_MAX);

	if (!items)
		return;
	words->functions = items;
	items[words->function_count++] = function;
}

void coop_words_add_pending(struct coop_words *words, struct coop_word word)
{
	struct coop_word *items =
		ROOM(pending, pending_space, pending_count, pending_capacity, COOP_WORDS_MAX);

	if (!items)
		return;
	words->pending = items;
	items[words->pending_count++] = word;
}

void coop_words_add_scratch(struct coop_words *words, const char *bytes, size_t size)
{
	coop_words_charge(words, size);
	while (words->scratch_capacity - words->scratch_count < size) {
		/* The limit lies above the work's: only memory can be missing. */
		char *items = coop_words_room(words, words->scratch, words->scratch_space, 1,
					      words->scratch_capacity, &words->scratch_capacity,
					      COOP_WORDS_WORK_MAX * 2);
		if (!items)
			return;
		words->scratch = items;
	}
	memcpy(words->scratch + words->scratch_count, bytes, size);
	words->scratch_count += size;
}

static bool add_word(struct coop_words *words, struct coop_word word)
{
	struct coop_word *items =
		ROOM(words, word_space, word_count, word_capacity, COOP_WORDS_MAX);

	if (!items)
		return false;
	words->words = items;
	items[words->word_count++] = word;
	return true;
}

void coop_words_finish(struct coop_words *words, uint32_t command, size_t from)
{
	struct coop_simple *simple = &words->commands[command];

	simple->first = words->word_count;
	for (size_t i = from; i < words->pending_count; i++) {
		if (words->pending[i].role == COOP_ROLE_ARGUMENT)
			simple->arguments += add_word(words, words->pending[i]);
	}
	for (size_t i = from; i < words->pending_count; i++) {
		if (words->pending[i].role != COOP_ROLE_ARGUMENT)
			simple->redirects += add_word(words, words->pending[i]);
	}
	words->pending_count = from;
}

void coop_words_argv(struct coop_words *words, const char *const *argv, const char *cwd)
{
	uint32_t command = coop_words_add_command(words);

	if (command == COOP_SIMPLE_NONE)
		return;
	struct coop_simple *simple = &words->commands[command];
	simple->first = words->word_count;
	simple->cwd = cwd;
	for (size_t i = 0; argv[i]; i++) {
		if (!add_word(words, (struct coop_word){.text = argv[i], .id = ++words->last_id}))
			break;
		simple->arguments++;
	}
}

const struct coop_variable *coop_words_variable(const struct coop_words *words, const char *name,
						size_t size)
{
	for (size_t i = 0; i < words->variable_count; i++) {
		const struct coop_variable *variable = &words->variables[i];
		if (variable->name[0] == name[0] && !strncmp(variable->name, name, size) &&
		    !variable->name[size])
			return variable;
	}
	return NULL;
}

void coop_words_assign(struct coop_words *words, const char *name, size_t size, const char *value)
{
	const struct coop_variable *known = coop_words_variable(words, name, size);

	coop_words_charge(words, words->variable_count);
	if (!known && words->variable_count == COOP_WORDS_VARIABLES) {
		words->too_long = true;
		return;
	}
	const char *copy = known ? known->name : coop_words_text(words, name, size);
	if (!copy)
		return;
	size_t index = known ? (size_t)(known - words->variables) : words->variable_count++;
	words->variables[index] = (struct coop_variable){.name = copy, .value = value};
}

size_t coop_words_assignment(const char *text)
{
	size_t size = 0;

	if (isdigit((unsigned char)*text))
		return 0;
	while (isalnum((unsigned char)text[size]) || text[size] == '_')
		size++;
	return text[size] == '=' || (text[size] == '+' && text[size + 1] == '=') ? size : 0;
}

bool coop_words_within(const struct coop_words *words, uint32_t command, uint32_t first,
		       uint32_t end)
{
	while (command != COOP_SIMPLE_NONE) {
		if (command >= first && command < end)
			return true;
		command = words->commands[command].parent;
	}
	return false;
}
