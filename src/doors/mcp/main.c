/* coop-mcp: the MCP server on stdin and stdout. `coop mcp` runs it. */
#include <errno.h>
#include <getopt.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "doors/mcp/fixtures.h"
#include "doors/mcp/mcp.h"
#include "doors/mcp/on_stdio.h"
#include "doors/tools/core/door.h"
#include "doors/tools/core/keeper_link.h"

#define LINE_MAX_BYTES (16u << 20)
#define WAIT_MAX_MS 50000
#define KEPT_BYTES (16 << 20)

struct program {
	struct coop_door door;
	unsigned sets;
	long long line_max, max_wait_ms;
	bool fixtures;
	struct coop_mcp mcp;
	struct coop_mcp_stdio *stdio;
	uv_signal_t term, interrupt;
};

static int usage(FILE *out)
{
	(void)fputs(
		"usage: coop-mcp [--profile P] [--workspace DIR | --no-workspace] [--cwd DIR] "
		"[--session ID] "
		"[--agent PATH] [--private]\n"
		"                [--tools default|harn|all] [--max-wait MS] [--max-line BYTES]\n",
		out);
	return out == stdout ? 0 : 2;
}

static int take_sets(const char *name, unsigned *ret)
{
	if (strcmp(name, "default") == 0)
		*ret = COOP_TOOLS_DEFAULT;
	else if (strcmp(name, "harn") == 0)
		*ret = COOP_TOOLS_HARN;
	else if (strcmp(name, "all") == 0)
		*ret = COOP_TOOLS_ALL;
	else
		return -EINVAL;
	return 0;
}

static int take_number(const char *text, long long low, long long high, long long *ret)
{
	char *end;

	errno = 0;
	*ret = strtoll(text, &end, 10);
	return errno || !*text || *end || *ret < low || *ret > high ? -EINVAL : 0;
}

static int take_option(struct program *program, int option, const char *value)
{
	if (coop_door_take(&program->door, option, value))
		return 0;
	switch (option) {
	case 't':
		return take_sets(value, &program->sets);
	case 'w':
		return take_number(value, 1000, 86400000, &program->max_wait_ms);
	case 'l':
		return take_number(value, 1024, 1 << 30, &program->line_max);
	case 'F':
		program->fixtures = true;
		return 0;
	default:
		return -EINVAL;
	}
}

static int take_options(struct program *program, int argc, char **argv)
{
	static const struct option options[] = {
		COOP_DOOR_OPTIONS,          {"tools", 1, NULL, 't'}, {"max-wait", 1, NULL, 'w'},
		{"max-line", 1, NULL, 'l'}, {"help", 0, NULL, 'h'},  COOP_MCP_FIXTURES_OPTION{0},
	};
	int option;

	while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (option == 'h')
			exit(usage(stdout));
		if (option == '?')
			return -EINVAL;
		if (take_option(program, option, optarg) < 0) {
			(void)fprintf(stderr, "coop-mcp: %s is no value for this option\n", optarg);
			return -EINVAL;
		}
	}
	return optind < argc ? -EINVAL : 0;
}

static void on_ended(void *context)
{
	struct program *program = context;

	uv_stop(&program->door.loop);
}

static void on_signal(uv_signal_t *handle, int number)
{
	struct program *program = handle->data;

	(void)number;
	coop_mcp_stop(&program->mcp);
	coop_mcp_stdio_finish(program->stdio);
}

static void watch_signals(struct program *program)
{
	program->term.data = program->interrupt.data = program;
	(void)uv_signal_init(&program->door.loop, &program->term);
	(void)uv_signal_init(&program->door.loop, &program->interrupt);
	(void)uv_signal_start(&program->term, on_signal, SIGTERM);
	(void)uv_signal_start(&program->interrupt, on_signal, SIGINT);
	(void)signal(SIGPIPE, SIG_IGN);
}

static int serve(struct program *program)
{
	struct coop_door *door = &program->door;

	door->setup.max_wait_ms = program->max_wait_ms;
	coop_mcp_init(&program->mcp, coop_keeper_link_host(door->link), &door->setup,
		      program->sets);
	program->mcp.fixtures = program->fixtures;
	program->stdio = coop_mcp_stdio_new(&door->loop, &program->mcp, STDIN_FILENO, STDOUT_FILENO,
					    (size_t)program->line_max, on_ended, program);
	if (!program->stdio)
		return -ENOMEM;
	watch_signals(program);
	(void)uv_run(&door->loop, UV_RUN_DEFAULT);
	coop_mcp_stdio_close(program->stdio);
	coop_mcp_clear(&program->mcp);
	uv_close((uv_handle_t *)&program->term, NULL);
	uv_close((uv_handle_t *)&program->interrupt, NULL);
	return 0;
}

int main(int argc, char **argv)
{
	struct program program = {
		.sets = COOP_TOOLS_DEFAULT, .line_max = LINE_MAX_BYTES, .max_wait_ms = WAIT_MAX_MS};
	struct coop_error error = {0};

	coop_mem_init();
	/* A long answer takes several times its size: giving that back at once would cost a page
	 * fault for every page of the next one. It goes back when the server rests. */
	(void)mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
	(void)mallopt(M_MMAP_THRESHOLD, KEPT_BYTES);
	if (take_options(&program, argc, argv) < 0)
		return usage(stderr);
	if (coop_door_open(&program.door, &error) < 0) {
		(void)fprintf(stderr, "coop-mcp: %s\n",
			      *error.message ? error.message : "the keeper cannot be reached");
		return 1;
	}
	int r = serve(&program);
	coop_door_close(&program.door, r < 0 ? 1 : 0);
	return r < 0 ? 1 : 0;
}
