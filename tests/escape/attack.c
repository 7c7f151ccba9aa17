/* attack CASE | all | list [--params FILE] [--direct] [words]: makes one attack, or all that need
 * no start of their own, each in a child, and prints a line of JSON for each. It refuses to run
 * where it cannot see that it is contained. */
#include "attack.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define ATTACK_SECONDS 90u /* only something that hangs takes so long */
#define USAGE_EXIT 2

static const struct attack *const themes[] = {
	attack_files, attack_setid,  attack_processes, attack_terminal, attack_kernel,
	attack_proc,  attack_limits, attack_network,   attack_trees,
};

struct attack_outcome attack_refused(int error)
{
	return (struct attack_outcome){.kind = ATTACK_ERRNO, .error = error};
}

struct attack_outcome attack_succeeded(void)
{
	return (struct attack_outcome){.kind = ATTACK_OK};
}

struct attack_outcome attack_looked(const char *format, ...)
{
	struct attack_outcome outcome = {.kind = ATTACK_LOOK};
	va_list list;
	va_start(list, format);
	(void)vsnprintf(outcome.value, sizeof(outcome.value), format, list);
	va_end(list);
	return outcome;
}

struct attack_outcome attack_from(long result)
{
	return result < 0 ? attack_refused(errno) : attack_succeeded();
}

struct attack_outcome attack_worse(struct attack_outcome first, struct attack_outcome second)
{
	if (first.kind == ATTACK_OK || second.kind == ATTACK_OK)
		return first.kind == ATTACK_OK ? first : second;
	return first.kind == ATTACK_ERRNO && first.error == ENOENT ? second : first;
}

const char *attack_param(const struct attack_context *context, const char *name)
{
	for (size_t i = 0; i < context->param_count; i++) {
		if (strcmp(context->params[i].name, name) == 0)
			return context->params[i].value;
	}
	fprintf(stderr, "attack: the runner has given no %s\n", name);
	_exit(USAGE_EXIT);
}

const char *attack_path(const struct attack_context *context, const char *name, const char *rest)
{
	static char buffers[8][4096];
	static unsigned turn;
	char *buffer = buffers[turn++ % 8];
	(void)snprintf(buffer, sizeof(buffers[0]), "%s%s", attack_param(context, name), rest);
	return buffer;
}

bool attack_status_line(const char *name, char *ret_text, size_t size)
{
	FILE *file = fopen("/proc/self/status", "re");
	char line[512];
	bool found = false;
	size_t length = strlen(name);
	while (file && !found && fgets(line, sizeof(line), file)) {
		if (strncmp(line, name, length) != 0 || line[length] != ':')
			continue;
		char *text = line + length + 1;
		text += strspn(text, " \t");
		text[strcspn(text, "\n")] = '\0';
		(void)snprintf(ret_text, size, "%s", text);
		found = true;
	}
	if (file)
		(void)fclose(file);
	return found;
}

struct attack_outcome attack_open(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC);
	struct attack_outcome outcome = attack_from(fd);
	if (fd >= 0)
		(void)close(fd);
	return outcome;
}

struct attack_outcome attack_read_secret(const struct attack_context *context, const char *path)
{
	char text[4096];
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return attack_refused(errno);
	ssize_t got = read(fd, text, sizeof(text));
	int error = errno;
	(void)close(fd);
	if (got < 0)
		return attack_refused(error);
	if (got == 0)
		return attack_looked("empty");
	/* Not a string: an environment has ends in the middle. */
	const char *marker = attack_param(context, "MARKER");
	return memmem(text, (size_t)got, marker, strlen(marker)) ? attack_succeeded()
								 : attack_looked("other");
}

/* Reads NAME=VALUE lines. The text stays allocated: the parameters point into it. */
static int read_params(struct attack_context *context, const char *path)
{
	FILE *file = fopen(path, "re");
	char *line = NULL;
	size_t room = 0;
	if (!file)
		return -errno;
	while (context->param_count < ATTACK_PARAMS_MAX && getline(&line, &room, file) > 0) {
		line[strcspn(line, "\n")] = '\0';
		char *value = strchr(line, '=');
		if (!value)
			continue;
		*value = '\0';
		struct attack_param *param = &context->params[context->param_count++];
		param->name = strdup(line);
		param->value = strdup(value + 1);
	}
	free(line);
	(void)fclose(file);
	return 0;
}

/* Whether a namespace is another one than the runner's, which it wrote down. What cannot be looked
 * at is not known to be another. */
static bool elsewhere(const struct attack_context *context, const char *kind)
{
	char path[64], name[32], target[128];
	(void)snprintf(path, sizeof(path), "/proc/self/ns/%s", kind);
	(void)snprintf(name, sizeof(name), "RUNNER_NS_%s", kind);
	ssize_t length = readlink(path, target, sizeof(target) - 1);
	if (length < 0)
		return false;
	target[length] = '\0';
	return strcmp(target, attack_param(context, name)) != 0;
}

static bool in_first_user_namespace(void)
{
	unsigned long inside = 1, outside = 1, count = 0;
	FILE *file = fopen("/proc/self/uid_map", "re");
	if (!file)
		return true;
	int fields = fscanf(file, "%lu %lu %lu", &inside, &outside, &count);
	(void)fclose(file);
	return fields != 3 || (inside == 0 && outside == 0 && count == 4294967295ul);
}

/* Two ways to be contained: a filter with nothing left to gain from exec and no capability; or
 * namespaces of one's own. Never root in the first user namespace. */
static const char *why_not_contained(const struct attack_context *context)
{
	char seccomp[32] = "", no_new_privs[32] = "", capabilities[64] = "";
	if (!attack_status_line("Seccomp", seccomp, sizeof(seccomp)) ||
	    !attack_status_line("NoNewPrivs", no_new_privs, sizeof(no_new_privs)) ||
	    !attack_status_line("CapEff", capabilities, sizeof(capabilities)))
		return "/proc/self/status cannot be read";
	bool powerless = strspn(capabilities, "0") == strlen(capabilities);
	if (in_first_user_namespace() && (geteuid() == 0 || getuid() == 0 || !powerless))
		return "root or a capability in the first user namespace";
	if (powerless && strcmp(seccomp, "2") == 0 && strcmp(no_new_privs, "1") == 0)
		return NULL;
	if (elsewhere(context, "pid") && elsewhere(context, "mnt") && elsewhere(context, "user"))
		return NULL;
	return "neither a filter without capabilities nor namespaces of its own";
}

static void print_text(FILE *out, const char *text)
{
	fputc('"', out);
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;
		if (c < 0x20 || c == '"' || c == '\\' || c >= 0x7f)
			fprintf(out, "\\u%04x", c);
		else
			fputc(c, out);
	}
	fputc('"', out);
}

/* In one write, so that lines of several processes do not mix. */
static void print_line(const char *name, const char *outcome, const char *error, const char *value)
{
	char *line = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&line, &size);
	if (!out)
		_exit(USAGE_EXIT);
	fprintf(out, "{\"case\":\"%s\",\"outcome\":\"%s\"", name, outcome);
	if (error) {
		fputs(",\"errno\":", out);
		print_text(out, error);
	}
	if (value && value[0]) {
		fputs(",\"value\":", out);
		print_text(out, value);
	}
	fputs("}\n", out);
	(void)fclose(out);
	for (size_t done = 0; done < size;) {
		ssize_t put = write(STDOUT_FILENO, line + done, size - done);
		if (put < 0 && errno != EINTR)
			break;
		done += put > 0 ? (size_t)put : 0;
	}
	free(line);
}

static void make_attack(const struct attack *attack, const struct attack_context *context)
{
	static const char *const kinds[] = {"errno", "ok", "look"};
	struct attack_outcome outcome = attack->run(context);
	const char *error = outcome.kind == ATTACK_ERRNO ? strerrorname_np(outcome.error) : NULL;
	print_line(attack->name, kinds[outcome.kind], error, outcome.value);
}

/* In a child: an attack may end by a signal, or change what it runs in. */
static void attack_in_child(const struct attack *attack, const struct attack_context *context)
{
	int status = 0;
	pid_t child = fork();
	if (child < 0) {
		print_line(attack->name, "broken", strerrorname_np(errno), "fork");
		return;
	}
	if (child == 0) {
		(void)alarm(ATTACK_SECONDS);
		make_attack(attack, context);
		_exit(0);
	}
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFSIGNALED(status)) {
		char name[32];
		const char *known = sigabbrev_np(WTERMSIG(status));
		(void)snprintf(name, sizeof(name), "SIG%s", known ? known : "?");
		print_line(attack->name, "signal", NULL, name);
	} else if (WEXITSTATUS(status) != 0) {
		print_line(attack->name, "broken", NULL, "ended");
	}
}

static void look_at_fds(struct attack_context *context)
{
	struct stat found;
	for (int fd = 0; fd < 4096; fd++) {
		if (fstat(fd, &found) != 0)
			continue;
		context->open_fds += fd > 2;
		context->sockets += S_ISSOCK(found.st_mode) ? 1 : 0;
	}
}

static int run_cases(const char *wanted, bool direct, const struct attack_context *context)
{
	bool all = strcmp(wanted, "all") == 0;
	int count = 0;
	for (size_t t = 0; t < sizeof(themes) / sizeof(themes[0]); t++) {
		for (const struct attack *attack = themes[t]; attack->name; attack++) {
			if (all ? attack->alone : strcmp(attack->name, wanted) != 0)
				continue;
			count++;
			if (direct)
				make_attack(attack, context);
			else
				attack_in_child(attack, context);
		}
	}
	if (count == 0)
		fprintf(stderr, "attack: no case %s\n", wanted);
	return count > 0 ? 0 : USAGE_EXIT;
}

static int list_cases(void)
{
	for (size_t t = 0; t < sizeof(themes) / sizeof(themes[0]); t++) {
		for (const struct attack *attack = themes[t]; attack->name; attack++)
			printf("%s%s\n", attack->name, attack->alone ? " alone" : "");
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct attack_context context = {0};
	bool direct = false;
	int next = 2;
	look_at_fds(&context);
	if (argc == 2 && strcmp(argv[1], "list") == 0)
		return list_cases();
	/* A set-id copy of this program only says who it is. */
	if (argc == 2 && strcmp(argv[1], "whoami") == 0)
		return printf("%u %u\n", geteuid(), getegid()) > 0 ? 0 : 1;
	while (next < argc && strncmp(argv[next], "--", 2) == 0) {
		if (strcmp(argv[next], "--direct") == 0) {
			direct = true;
			next++;
		} else if (strcmp(argv[next], "--params") == 0 && next + 1 < argc) {
			int result = read_params(&context, argv[next + 1]);
			if (result < 0) {
				fprintf(stderr, "attack: %s: %s\n", argv[next + 1],
					strerror(-result));
				return USAGE_EXIT;
			}
			next += 2;
		} else {
			break;
		}
	}
	if (argc < 2 || context.param_count == 0) {
		fputs("usage: attack CASE|all|list --params FILE [--direct] [words]\n", stderr);
		return USAGE_EXIT;
	}
	const char *reason = why_not_contained(&context);
	if (reason) {
		fprintf(stderr, "attack: not contained: %s; nothing was tried\n", reason);
		return USAGE_EXIT;
	}
	context.args = argv + next;
	context.arg_count = argc - next;
	return run_cases(argv[1], direct, &context);
}
