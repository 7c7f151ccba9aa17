/* coop-tool: one tool, called once. `coop tool` and `coop screen` run it. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/json/jsonw.h"
#include "base/mem.h"
#include "doors/tools/core/describe.h"
#include "doors/tools/core/door.h"
#include "doors/tools/core/keeper_link.h"
#include "doors/tools/core/run.h"
#include "doors/tools/core/table.h"

/* What stdin may bring as arguments. */
#define INPUT_MAX (16u << 20)

struct program {
	struct coop_door door;
	const char *name, *text; /* of the tool; its arguments */
	bool list, json, screen;
	int code;
	bool done;
};

static int usage(FILE *out)
{
	(void)fputs("usage: coop-tool [--profile P] [--workspace DIR | --no-workspace] [--cwd DIR] "
		    "[--session ID] "
		    "[--agent PATH] [--private] NAME [JSON]\n"
		    "       coop-tool --list [--json]\n"
		    "       coop-tool --screen [--json] ID\n",
		    out);
	return out == stdout ? 0 : COOP_TOOL_ERROR;
}

static int print_list(bool json)
{
	struct coop_buf text = {0};
	struct coop_jsonw w = {.out = &text};

	coop_jsonw_begin(&w, NULL);
	coop_jsonw_array(&w, "tools");
	for (size_t i = 0; coop_tool_at(i); i++) {
		const struct coop_tool *tool = coop_tool_at(i);
		if (json)
			coop_tool_describe(&w, tool, COOP_TOOLS_ALL);
		else
			(void)printf("%-22s %.*s\n", tool->name,
				     (int)strcspn(tool->description, ".:;"), tool->description);
	}
	coop_jsonw_array_end(&w);
	coop_jsonw_end(&w);
	if (json && !w.failed)
		(void)printf("%.*s\n", (int)coop_buf_size(&text), (char *)coop_buf_front(&text));
	coop_buf_clear(&text);
	return w.failed ? COOP_TOOL_ERROR : 0;
}

/* An error that was found here has the shape of all others. */
static int fail(const char *code, const char *message, const char *advice)
{
	json_t *error =
		json_pack("{s:s, s:s, s:s}", "code", code, "message", message, "advice", advice);
	char *text = error ? json_dumps(error, JSON_COMPACT) : NULL;

	(void)puts(text ? text : "{\"code\":\"internal\"}");
	free(text);
	json_decref(error);
	return COOP_TOOL_ERROR;
}

static char *read_input(void)
{
	struct coop_buf text = {0};

	for (;;) {
		uint8_t *room = coop_buf_reserve(&text, 65536);
		ssize_t n = room ? read(STDIN_FILENO, room, 65536) : -1;
		if (n < 0 && errno == EINTR && room)
			continue;
		if (n > 0)
			coop_buf_commit(&text, (size_t)n);
		if (n <= 0 || coop_buf_size(&text) > INPUT_MAX)
			break;
	}
	size_t size = coop_buf_size(&text);
	char *copy = size <= INPUT_MAX ? coop_mem_alloc(size + 1) : NULL;
	if (copy && size)
		memcpy(copy, coop_buf_front(&text), size);
	if (copy)
		copy[size] = '\0';
	coop_buf_clear(&text);
	return copy;
}

/* Of a screen people want the lines. */
static void print_screen(const json_t *result)
{
	const json_t *lines = json_object_get(result, "lines"), *line;
	size_t index, last = 0;

	json_array_foreach(lines, index, line)
	{
		if (json_string_length(line))
			last = index + 1;
	}
	json_array_foreach(lines, index, line)
	{
		if (index < last)
			(void)puts(json_string_value(line));
	}
}

static void on_done(void *context, enum coop_tool_outcome outcome, json_t *result)
{
	struct program *program = context;
	char *text = json_dumps(result, JSON_COMPACT | JSON_REAL_PRECISION(15));

	/* A screen is a verb like others: it has one exit code for failure. */
	program->code = program->screen && outcome != COOP_TOOL_OK ? 1 : (int)outcome;
	program->done = true;
	const char *code = json_string_value(json_object_get(result, "code"));
	if (program->screen && !program->json && outcome == COOP_TOOL_OK)
		print_screen(result);
	else if (program->screen && !program->json)
		(void)fprintf(stderr, "coop: %s\n",
			      strcmp(code ? code : "", "invalid_input") == 0
				      ? "it has no terminal; coop logs shows its output"
				      : json_string_value(json_object_get(result, "message")));
	else
		(void)puts(text ? text : "{\"code\":\"internal\"}");
	free(text);
	uv_stop(&program->door.loop);
}

/* NULL: *ret_code and `reason` say why. */
static json_t *arguments(struct program *program, const char **ret_code, char reason[256])
{
	json_error_t error;

	if (program->screen)
		return json_pack("{s:s}", "pid", program->text ? program->text : "");
	char *input = NULL;
	const char *text = program->text;
	if ((!text && !isatty(STDIN_FILENO)) || (text && strcmp(text, "-") == 0)) {
		text = input = read_input();
		if (!text) {
			*ret_code = "too_large";
			(void)snprintf(reason, 256, "stdin brings more than %u bytes", INPUT_MAX);
			return NULL;
		}
	}
	if (!text || !text[strspn(text, " \t\r\n")])
		text = "{}";
	json_t *args = json_loads(text, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
	free(input);
	if (!args)
		(void)snprintf(reason, 256, "the arguments are no JSON: %.150s at position %d",
			       error.text, error.position);
	return args;
}

static int carry_out(struct program *program, const struct coop_tool *tool)
{
	const struct coop_tool_client client = {.done = on_done, .context = program};
	struct coop_error error = {0};
	char reason[256] = "";
	const char *code = "invalid_input";
	json_t *args = arguments(program, &code, reason);

	if (!args)
		return fail(code, reason, "Give one JSON object.");
	if (coop_door_open(&program->door, &error) < 0) {
		json_decref(args);
		return fail(*error.code ? error.code : "internal",
			    *error.message ? error.message : "the keeper cannot be reached",
			    "Check that coop is installed; coop doctor helps.");
	}
	struct coop_tool_run *run = coop_tool_run(coop_keeper_link_host(program->door.link),
						  &program->door.setup, tool, args, &client);
	if (run)
		(void)uv_run(&program->door.loop, UV_RUN_DEFAULT);
	json_decref(args);
	coop_door_close(&program->door, program->code);
	return program->done ? program->code
			     : fail("internal", "there is no memory for the call", "Try again.");
}

static int take_options(struct program *program, int argc, char **argv)
{
	static const struct option options[] = {
		COOP_DOOR_OPTIONS,        {"list", 0, NULL, 'l'}, {"json", 0, NULL, 'j'},
		{"screen", 0, NULL, 's'}, {"help", 0, NULL, 'h'}, {0},
	};
	int option;

	/* The first operand ends the options: JSON may begin with anything. */
	while ((option = getopt_long(argc, argv, "+h", options, NULL)) != -1) {
		if (coop_door_take(&program->door, option, optarg))
			continue;
		program->list = program->list || option == 'l';
		program->json = program->json || option == 'j';
		program->screen = program->screen || option == 's';
		if (option == 'h')
			return 'h';
		if (option == '?')
			return '?';
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct program program = {0};

	coop_mem_init();
	int option = take_options(&program, argc, argv);
	if (option)
		return usage(option == 'h' ? stdout : stderr);
	if (program.list || optind == argc)
		return print_list(program.json);
	if (argc - optind > 2)
		return usage(stderr);
	program.name = program.screen ? "read_screen" : argv[optind];
	program.text = argv[program.screen ? optind : optind + 1];
	const struct coop_tool *tool = coop_tool_find(program.name);
	if (!tool) {
		char message[256];
		(void)snprintf(message, sizeof message, "there is no tool named %.100s",
			       program.name);
		return fail("invalid_input", message, "coop tool --list shows them.");
	}
	return carry_out(&program, tool);
}
