#include "keeper/core/labels.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json/jsonw.h"
#include "base/mem.h"
#include "base/text/utf8.h"
#include "interface/schema.h"

#define LABEL_MAX 128u
#define WORDS_MAX 65536u /* bytes of argv, and of the command; as JSON it may be six times that */
#define NAMES_MAX 16384u
#define RECEIPT_MAX 1024u
#define CUT "\xe2\x80\xa6" /* an ellipsis */

/* Control characters go: a label is shown in lists, on the terminals of others. */
char *coop_label_clean(const char *text)
{
	size_t used = 0;
	char *clean = coop_mem_alloc(LABEL_MAX + 1);

	if (!clean)
		return NULL;
	for (size_t left = strlen(text), size; left; text += size, left -= size) {
		size = coop_utf8_char((const uint8_t *)text, left);
		uint8_t first = (uint8_t)*text;
		bool control =
			first < 0x20 || first == 0x7f || (first == 0xc2 && (uint8_t)text[1] < 0xa0);
		if (!size || used + size > LABEL_MAX)
			break;
		if (!control) {
			memcpy(clean + used, text, size);
			used += size;
		}
	}
	clean[used] = 0;
	return clean;
}

/* The longest beginning of at most `max` bytes that splits no character. */
static size_t whole_characters(const char *text, size_t size, size_t max)
{
	size_t kept = size < max ? size : max;

	while (kept < size && kept && ((uint8_t)text[kept] & 0xc0) == 0x80)
		kept--;
	return kept;
}

/* In memory of just its size: a record keeps several of these, and there may be thousands. */
static char *finish(struct coop_buf *out, bool failed)
{
	char *text = failed || coop_buf_append(out, "", 1) < 0
			     ? NULL
			     : coop_mem_strdup((const char *)coop_buf_front(out));

	coop_buf_clear(out);
	return text;
}

static char *cut(const char *text, size_t size, size_t max, bool *truncated)
{
	struct coop_buf out = {0};
	size_t kept = whole_characters(text, size, max);
	bool failed = coop_buf_append(&out, text, kept) < 0 ||
		      (kept < size && coop_buf_append(&out, CUT, sizeof CUT - 1) < 0);

	*truncated = *truncated || kept < size;
	return finish(&out, failed);
}

/* What a shell takes as it stands, with the empty word as the one that would vanish. */
static bool needs_quotes(const char *word)
{
	static const char plain[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+=./:,@%^";

	return !*word || word[strspn(word, plain)];
}

static int quote(struct coop_buf *out, const char *word)
{
	int r = coop_buf_append(out, "'", 1);

	for (; r == 0 && *word; word++)
		r = *word == '\'' ? coop_buf_append(out, "'\\''", 4)
				  : coop_buf_append(out, word, 1);
	return r < 0 ? r : coop_buf_append(out, "'", 1);
}

/* The command for reading: words are quoted where a shell would need it. */
static char *display(const char *const *argv, bool *truncated)
{
	struct coop_buf out = {0};
	int r = 0;

	for (size_t i = 0; r == 0 && argv[i] && coop_buf_size(&out) <= WORDS_MAX; i++) {
		if (i)
			r = coop_buf_append(&out, " ", 1);
		if (r == 0)
			r = needs_quotes(argv[i]) ? quote(&out, argv[i])
						  : coop_buf_append(&out, argv[i], strlen(argv[i]));
	}
	char *text = r < 0 ? NULL
			   : cut((const char *)coop_buf_front(&out), coop_buf_size(&out), WORDS_MAX,
				 truncated);
	coop_buf_clear(&out);
	return text;
}

/* Strings as they are added to a list that must stay below a size. */
struct list {
	struct coop_buf out;
	struct coop_jsonw w;
	size_t max;
	bool truncated;
};

static void add(struct list *list, const char *text, size_t size)
{
	size_t used = coop_buf_size(&list->out);
	size_t room = used < list->max ? list->max - used : 0;

	/* After one that was cut comes nothing more. */
	if (list->truncated)
		return;
	char *word = cut(text, size, room, &list->truncated);
	if (word)
		coop_jsonw_string(&list->w, NULL, word);
	list->w.failed = list->w.failed || !word;
	free(word);
}

static void begin_list(struct list *list, size_t max)
{
	*list = (struct list){.max = max};
	list->w.out = &list->out;
	coop_jsonw_array(&list->w, NULL);
}

static char *end_list(struct list *list, bool *truncated)
{
	coop_jsonw_array_end(&list->w);
	*truncated = *truncated || list->truncated;
	return finish(&list->out, list->w.failed);
}

static char *list_argv(const char *const *argv, bool *truncated)
{
	struct list list;

	begin_list(&list, WORDS_MAX);
	for (; *argv; argv++)
		add(&list, *argv, strlen(*argv));
	return end_list(&list, truncated);
}

/* Names without their values: those may be secrets. */
static char *list_names(const char *const *environment)
{
	struct list list;
	bool truncated = false;

	begin_list(&list, NAMES_MAX);
	for (; environment && *environment; environment++)
		add(&list, *environment, strcspn(*environment, "="));
	return end_list(&list, &truncated);
}

/* A label that was not given is no failure. */
static bool take(const json_t *args, const char *name, char **ret)
{
	const char *text = coop_arg_string(args, name, NULL);

	*ret = text ? coop_label_clean(text) : NULL;
	return !text || *ret;
}

/* The alias and the call id are compared as they came, so they are kept as they came: the interface
 * bounds them. */
int coop_labels_take(struct coop_labels *labels, const json_t *args, const char *const *argv,
		     const char *const *environment)
{
	const char *program = strrchr(argv[0], '/'),
		   *command = coop_arg_string(args, "command", NULL),
		   *alias = coop_arg_string(args, "alias", NULL),
		   *call_id = coop_arg_string(args, "call_id", NULL);
	bool cut_name = false;

	if (!take(args, "tag", &labels->tag) || !take(args, "why", &labels->why) ||
	    !take(args, "task", &labels->task))
		return -ENOMEM;
	program = program && program[1] ? program + 1 : argv[0];
	labels->label = labels->tag ? coop_mem_strdup(labels->tag)
				    : cut(program, strlen(program), LABEL_MAX, &cut_name);
	labels->argv_json = list_argv(argv, &labels->truncated);
	labels->command = command ? cut(command, strlen(command), WORDS_MAX, &labels->truncated)
				  : display(argv, &labels->truncated);
	labels->env_names = list_names(environment);
	labels->alias = alias ? coop_mem_strdup(alias) : NULL;
	labels->call_id = call_id ? coop_mem_strdup(call_id) : NULL;
	return labels->label && labels->argv_json && labels->command && labels->env_names &&
			       (!alias || labels->alias) && (!call_id || labels->call_id)
		       ? 0
		       : -ENOMEM;
}

/* Without memory for less, the longer text stays. */
static void replace(char **text, char *shorter)
{
	if (!shorter)
		return;
	free(*text);
	*text = shorter;
}

/* A receipt is kept for long, and there are many: it tells what it was, not every word. */
void coop_labels_shorten(struct coop_labels *labels)
{
	json_t *argv = strlen(labels->argv_json) > RECEIPT_MAX
			       ? json_loads(labels->argv_json, JSON_ALLOW_NUL, NULL)
			       : NULL;
	struct list list;

	if (argv) {
		begin_list(&list, RECEIPT_MAX);
		for (size_t i = 0; i < json_array_size(argv); i++)
			add(&list, json_string_value(json_array_get(argv, i)),
			    json_string_length(json_array_get(argv, i)));
		replace(&labels->argv_json, end_list(&list, &labels->truncated));
		json_decref(argv);
	}
	if (strlen(labels->command) > RECEIPT_MAX)
		replace(&labels->command, cut(labels->command, strlen(labels->command), RECEIPT_MAX,
					      &labels->truncated));
	replace(&labels->env_names, coop_mem_strdup("[]"));
}

void coop_labels_clear(struct coop_labels *labels)
{
	free(labels->tag);
	free(labels->why);
	free(labels->task);
	free(labels->alias);
	free(labels->call_id);
	free(labels->label);
	free(labels->argv_json);
	free(labels->command);
	free(labels->cwd);
	free(labels->env_names);
}
