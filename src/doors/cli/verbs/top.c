#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "coop.h"
#include "doors/cli/cli.h"
#include "doors/cli/record.h"
#include "doors/cli/terminal/terminal.h"
#include "doors/cli/verbs.h"
#include "doors/cli/verbs/processes.h"

struct settings {
	struct cli_number interval;
};

/* The keeper measures CPU between two looks at least 200 ms apart. */
#define LOOK_MS 250

#define SCREEN_ON "\x1b[?1049h\x1b[?25l"
#define SCREEN_OFF "\x1b[?25h\x1b[?1049l"

static double cpu_of(const json_t *record)
{
	return json_number_value(cli_member(record, "stats", "cpu_pct"));
}

static int by_cpu(const void *left, const void *right)
{
	const double a = cpu_of(*(json_t *const *)left), b = cpu_of(*(json_t *const *)right);
	return a < b ? 1 : a > b ? -1 : 0;
}

/* The live processes, the busiest first. NULL with *error filled. */
static json_t *look(struct cli *cli, struct coop_error *error)
{
	json_t *result;
	if (cli_call(cli, "list", json_pack("{s:b}", "brief", 1), &result, error) < 0)
		return NULL;
	json_t *list = json_object_get(result, "processes"), *sorted = json_array();
	const size_t count = json_array_size(list);
	json_t **records = calloc(count + 1, sizeof(json_t *));
	for (size_t i = 0; records && i < count; i++)
		records[i] = json_array_get(list, i);
	if (records)
		qsort(records, count, sizeof(json_t *), by_cpu);
	for (size_t i = 0; records && i < count; i++)
		(void)json_array_append(sorted, records[i]);
	free(records);
	json_decref(result);
	return sorted;
}

/* One screen, composed in memory and written at once, so that it does not flicker. */
static void draw(struct cli *cli, const json_t *records)
{
	char *text = NULL;
	size_t size = 0;
	unsigned cols = 80, rows = 24;
	double cpu = 0;
	size_t i;
	json_t *record;
	FILE *out = open_memstream(&text, &size);
	if (!out)
		return;
	(void)cli_terminal_size(&cols, &rows);
	json_array_foreach(records, i, record) cpu += cpu_of(record);
	(void)fprintf(out,
		      "\x1b[Hcoop top: %zu running, %.1f %% cpu, keeper %d    q "
		      "quits\x1b[K\r\n\x1b[K\r\n",
		      json_array_size(records), cpu, coop_keeper_pid(cli->coop));
	cli_processes_print(records, out, cols, rows > 4 ? rows - 4 : 1, "\x1b[K\r\n");
	(void)fputs("\x1b[J", out);
	(void)fclose(out);
	(void)!write(STDOUT_FILENO, text, size);
	free(text);
}

/* Waits for the next look. False: the user wants to leave, by a key or a signal. */
static bool pause_for(int signal_fd, int ms)
{
	struct pollfd fds[] = {{.fd = STDIN_FILENO, .events = POLLIN},
			       {.fd = signal_fd, .events = POLLIN}};
	if (poll(fds, 2, ms) <= 0)
		return true;
	struct signalfd_siginfo info;
	if (fds[1].revents && read(signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		return info.ssi_signo == SIGWINCH;
	char key;
	if (read(STDIN_FILENO, &key, 1) != 1)
		return false;
	return key != 'q' && key != 'Q' && key != 0x03;
}

static int watch(struct cli *cli, int interval_ms)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH};
	struct cli_terminal terminal = {0};
	struct coop_error error;
	sigset_t signals;
	(void)sigemptyset(&signals);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		(void)sigaddset(&signals, numbers[i]);
	(void)sigprocmask(SIG_BLOCK, &signals, NULL);
	int fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);

	cli_terminal_set(&terminal, CLI_TERMINAL_KEYS);
	(void)!write(STDOUT_FILENO, SCREEN_ON, strlen(SCREEN_ON));
	json_t *records = look(cli, &error);
	for (int pause = LOOK_MS; records; pause = interval_ms) {
		draw(cli, records);
		if (!pause_for(fd, pause))
			break;
		json_decref(records);
		records = look(cli, &error);
	}
	(void)!write(STDOUT_FILENO, SCREEN_OFF, strlen(SCREEN_OFF));
	cli_terminal_restore(&terminal);
	if (fd >= 0)
		(void)close(fd);
	if (!records)
		return cli_fail(cli, NULL, &error);
	json_decref(records);
	return CLI_OK;
}

/* Without a terminal: one table, after an interval over which CPU was measured. */
static int once(struct cli *cli)
{
	struct coop_error error;
	json_t *records = look(cli, &error);
	if (records && json_array_size(records)) {
		json_decref(records);
		(void)poll(NULL, 0, LOOK_MS);
		records = look(cli, &error);
	}
	if (!records)
		return cli_fail(cli, NULL, &error);
	if (cli->json)
		cli_print_json(records);
	else
		cli_processes_print(records, stdout, cli_terminal_width(), 0, "\n");
	json_decref(records);
	return CLI_OK;
}

static int run(struct cli *cli, const void *settings, size_t count, char **operands)
{
	const struct settings *s = settings;
	struct coop_error error;
	if (cli_open(cli, CLI_START_KEEPER, &error) < 0)
		return cli_fail(cli, NULL, &error);
	if (cli->json || !isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return once(cli);
	uint64_t ms = s->interval.set ? s->interval.value : 1000;
	if (ms < LOOK_MS)
		ms = LOOK_MS;
	return watch(cli, ms > 3600000 ? 3600000 : (int)ms);
}

static const struct cli_option options[] = {
	{"interval", 'i', CLI_DURATION, offsetof(struct settings, interval), NULL, "DURATION",
	 "time between two looks (1s)"},
	{0},
};

const struct cli_verb cli_verb_top = {
	.name = "top",
	.synopsis = "",
	.summary = "Watch what runs, the busiest first",
	.text = "q quits. Without a terminal, or with --json, it prints once.",
	.options = options,
	.settings_size = sizeof(struct settings),
	.run = run,
};
