#include "keeper/op_look.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "keeper/choices.h"
#include "keeper/connection.h"
#include "keeper/keeper.h"
#include "keeper/ops.h"
#include "keeper/orphans.h"
#include "keeper/process.h"
#include "keeper/record.h"
#include "keeper/request.h"
#include "keeper/shells.h"

/* A list ends early, with `more`, before its answer outgrows a frame. */
#define ANSWER_MAX (6u << 20)

/* Live, or ended with descendants that are. */
static bool is_present(struct coop_process *process)
{
	return coop_process_live(process) ||
	       (!process->receipt && coop_orphans_left(process->keeper, process, COOP_QUICK));
}

static bool matches(struct coop_process *process, const json_t *args)
{
	const char *tag = coop_arg_string(args, "tag", NULL);
	const char *label = coop_arg_string(args, "label", NULL);
	const char *agent = coop_arg_string(args, "agent", NULL);
	int state = coop_arg_enum(args, "state", coop_choices_state, -1);

	if (state >= 0 && (int)process->state != state)
		return false;
	if (state < 0 && !coop_arg_bool(args, "include_finished", false) && !is_present(process))
		return false;
	if (tag && (!process->labels.tag || strcmp(process->labels.tag, tag) != 0))
		return false;
	if (agent && strcmp(agent, "main") != 0)
		return false;
	/* No session has been named yet, so none matches. */
	if (coop_arg(args, "session"))
		return false;
	return !label || strstr(process->labels.label, label);
}

void coop_op_list(struct coop_request *request)
{
	struct coop_keeper *keeper = request->keeper;
	const json_t *args = request->args;
	const char *after = coop_arg_string(args, "after", NULL);
	int64_t left = coop_arg_int(args, "limit", 1000);
	enum coop_record_view view =
		coop_arg_bool(args, "brief", false) ? COOP_RECORD_BRIEF : COOP_RECORD_FULL;
	struct coop_process *start = NULL;
	bool more = false;
	struct coop_err err;
	struct coop_jsonw w;

	if (after && !(start = coop_registry_find(keeper, after, &err))) {
		coop_request_fail(request, &err);
		return;
	}
	coop_registry_trim(keeper);
	coop_request_result(request, &w);
	coop_jsonw_array(&w, "processes");
	COOP_LIST_EACH(&keeper->registry.all, link)
	{
		struct coop_process *process = COOP_LIST_ITEM(link, struct coop_process, in_all);
		if ((start && process->n <= start->n) || !matches(process, args))
			continue;
		more = left-- == 0 || coop_buf_size(w.out) - request->mark > ANSWER_MAX;
		if (more)
			break;
		coop_record_write(process, view, &w, NULL);
	}
	coop_jsonw_array_end(&w);
	coop_jsonw_bool(&w, "more", more);
	coop_request_end(request, &w);
}

void coop_op_status(struct coop_request *request)
{
	const json_t *ids = coop_arg(request->args, "ids");
	struct coop_err err;
	struct coop_jsonw w;

	if (!ids == !coop_arg(request->args, "id")) {
		(void)coop_err_field(&err, COOP_INVALID_INPUT, "id", "give either id or ids");
		coop_request_fail(request, &err);
		return;
	}
	if (!ids) {
		struct coop_process *process = coop_ops_process(request);
		if (!process)
			return;
		coop_request_result(request, &w);
		coop_record_write(process, COOP_RECORD_FULL, &w, "process");
		coop_request_end(request, &w);
		return;
	}
	coop_request_result(request, &w);
	coop_jsonw_array(&w, "processes");
	for (size_t i = 0; i < json_array_size(ids); i++) {
		struct coop_process *process = coop_registry_find(
			request->keeper, json_string_value(json_array_get(ids, i)), &err);
		if (process) {
			coop_process_touch(process);
			coop_record_write(process, COOP_RECORD_FULL, &w, NULL);
		}
	}
	coop_jsonw_array_end(&w);
	coop_request_end(request, &w);
}

static int open_fds(void)
{
	DIR *fds = opendir("/proc/self/fd");
	int count = 0;

	while (fds && readdir(fds))
		count++;
	if (fds)
		(void)closedir(fds);
	return count - 3; /* ".", ".." and the one for looking */
}

static uint64_t buffer_bytes(const struct coop_keeper *keeper)
{
	uint64_t sum = 0;

	COOP_LIST_EACH(&keeper->registry.all, link)
	{
		const struct coop_process *process =
			COOP_LIST_ITEM(link, struct coop_process, in_all);
		for (int i = 0; i < process->stream_count; i++)
			sum += process->streams[i].ring.capacity;
		sum += process->index.capacity * sizeof *process->index.events;
	}
	return sum;
}

static uint64_t resident_bytes(void)
{
	unsigned long long pages = 0;
	FILE *statm = fopen("/proc/self/statm", "re");

	if (statm && fscanf(statm, "%*u %llu", &pages) != 1)
		pages = 0;
	if (statm)
		(void)fclose(statm);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void write_counts(struct coop_keeper *keeper, struct coop_jsonw *w)
{
	const struct coop_registry *registry = &keeper->registry;

	coop_registry_trim(keeper);
	(void)coop_tree_look_lately(
		keeper); /* for the strays; without it the last look's number stands */
	coop_jsonw_begin(w, "processes");
	coop_jsonw_uint(w, "live", registry->live);
	coop_jsonw_uint(w, "finished", registry->finished_count);
	coop_jsonw_uint(w, "receipts", registry->receipts);
	coop_jsonw_uint(w, "receipts_dropped", registry->receipts_dropped);
	coop_jsonw_uint(w, "strays", keeper->tree.strays);
	coop_jsonw_end(w);
	coop_jsonw_uint(w, "connections", keeper->connection_count);
	coop_jsonw_uint(w, "subscribers", keeper->follower_count);
}

static void write_resources(const struct coop_keeper *keeper, struct coop_jsonw *w)
{
	struct rlimit limit = {0};

	(void)getrlimit(RLIMIT_NOFILE, &limit);
	coop_jsonw_begin(w, "memory");
	coop_jsonw_uint(w, "rss_bytes", resident_bytes());
	coop_jsonw_uint(w, "buffer_bytes", buffer_bytes(keeper));
	coop_jsonw_uint(w, "spool_bytes", keeper->spool_bytes);
	coop_jsonw_end(w);
	coop_jsonw_begin(w, "fds");
	coop_jsonw_int(w, "open", open_fds());
	coop_jsonw_uint(w, "limit", limit.rlim_cur);
	coop_jsonw_end(w);
	coop_jsonw_uint(w, "wakeups", keeper->wakeups);
}

void coop_op_info(struct coop_request *request)
{
	struct coop_keeper *keeper = request->keeper;
	struct coop_jsonw w;

	coop_request_result(request, &w);
	coop_jsonw_string(&w, "version", COOP_VERSION_STRING);
	coop_jsonw_int(&w, "protocol", COOP_PROTOCOL);
	coop_jsonw_int(&w, "pid", getpid());
	coop_jsonw_int(&w, "guard_pid", getppid());
	coop_jsonw_begin(&w, "launcher");
	coop_jsonw_int(&w, "pid", keeper->launcher.pid);
	coop_jsonw_uint(&w, "restarts", keeper->launcher.restarts);
	coop_jsonw_end(&w);
	coop_jsonw_time(&w, "started_at", keeper->started_at);
	coop_jsonw_string(&w, "socket", *keeper->socket_path ? keeper->socket_path : NULL);
	coop_jsonw_string(&w, "state_dir", *keeper->state_dir ? keeper->state_dir : NULL);
	write_counts(keeper, &w);
	write_resources(keeper, &w);
	coop_jsonw_bool(&w, "private", keeper->private_mode);
	coop_settings_write(&keeper->settings, &w, "settings");
	coop_request_end(request, &w);
}

void coop_op_list_shells(struct coop_request *request)
{
	const struct coop_shell *shell, *standard = coop_shells_find(NULL);
	struct coop_jsonw w;

	coop_request_result(request, &w);
	coop_jsonw_array(&w, "shells");
	for (size_t i = 0; (shell = coop_shells_row(i)); i++) {
		coop_jsonw_begin(&w, NULL);
		coop_jsonw_string(&w, "id", shell->id);
		coop_jsonw_string(&w, "label", shell->label);
		coop_jsonw_string(&w, "path", shell->path);
		coop_jsonw_bool(&w, "available", coop_shells_available(shell));
		coop_jsonw_bool(&w, "supports_login", shell->login);
		coop_jsonw_bool(&w, "supports_interactive", shell->interactive);
		coop_jsonw_raw(&w, "default_args", "[\"-c\"]");
		coop_jsonw_raw(&w, "login_args", "[\"-l\",\"-c\"]");
		coop_jsonw_end(&w);
	}
	coop_jsonw_array_end(&w);
	coop_jsonw_string(&w, "default", standard ? standard->id : NULL);
	coop_request_end(request, &w);
}

void coop_op_describe(struct coop_request *request)
{
	const struct coop_op *op;
	struct coop_jsonw w;

	coop_request_result(request, &w);
	coop_jsonw_array(&w, "operations");
	for (size_t i = 0; (op = coop_ops_row(i)); i++) {
		coop_jsonw_begin(&w, NULL);
		coop_jsonw_string(&w, "name", op->name);
		coop_jsonw_string(&w, "summary", op->summary);
		coop_jsonw_string(&w, "right", op->right);
		coop_jsonw_bool(&w, "waits", op->waits);
		coop_jsonw_uint(&w, "data", op->data_max);
		coop_schema_write(&w, "args", op->args);
		coop_schema_write(&w, "result", op->result);
		coop_jsonw_end(&w);
	}
	coop_jsonw_array_end(&w);
	coop_request_end(request, &w);
}
