#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "doors/files/frame.h"
#include "doors/files/talk.h"
#include "doors/files/watch.h"

/* Nothing more is read, done or looked at while this much waits to be read by the gateway; likewise
 * of requests. */
#define OUT_HIGH (2u << 20)
#define WAITING_HIGH (4u << 20)
#define READ_SIZE (256u << 10)

static struct files_talk *find_talk(const struct files_server *server, uint32_t id)
{
	struct files_talk *talk = server->talks;

	while (talk && talk->id != id)
		talk = talk->next;
	return talk;
}

static void drop_request(struct files_talk *talk)
{
	struct files_request *request = talk->first;

	talk->first = request->next;
	if (!talk->first)
		talk->last = NULL;
	talk->server->waiting -= sizeof *request + request->size;
	json_decref(request->json);
	free(request);
}

static void end_talk(struct files_talk *talk)
{
	struct files_talk **at = &talk->server->talks;

	while (*at != talk)
		at = &(*at)->next;
	*at = talk->next;
	talk->server->talk_count--;
	while (talk->first)
		drop_request(talk);
	if (talk->drop)
		talk->drop(talk);
	free(talk);
}

static struct files_talk *begin_talk(struct files_server *server, uint32_t id)
{
	struct files_talk *talk = coop_mem_zalloc(sizeof *talk);

	if (!talk) {
		server->failed = true;
		return NULL;
	}
	talk->server = server;
	talk->id = id;
	talk->next = server->talks;
	server->talks = talk;
	server->talk_count++;
	return talk;
}

static const struct files_op *find_op(const char *name)
{
	for (const struct files_op *op = files_ops; op->name && name; op++)
		if (strcmp(op->name, name) == 0)
			return op;
	return NULL;
}

/* Puts a request behind those of its talk. Takes the JSON over. */
static void add_request(struct files_talk *talk, const struct files_op *op, json_t *json,
			const struct coop_files_frame *frame)
{
	struct files_request *request = coop_mem_alloc(sizeof *request + frame->size);

	if (!request) {
		talk->server->failed = true;
		json_decref(json);
		return;
	}
	*request = (struct files_request){.op = op, .json = json, .size = frame->size};
	if (frame->size)
		memcpy(request->data, frame->data, frame->size);
	talk->server->waiting += sizeof *request + frame->size;
	if (talk->last)
		talk->last->next = request;
	else
		talk->first = request;
	talk->last = request;
}

/* A first request opens its talk; another one that is for no open talk has come too late. */
static void take_frame(struct files_server *server, const struct coop_files_frame *frame)
{
	json_t *json = json_loadb(frame->json, frame->json_size, 0, NULL);
	const char *name = json_string_value(json_object_get(json, "op"));
	const struct files_op *op = find_op(name);
	struct files_talk *talk = find_talk(server, frame->id);

	if (name && strcmp(name, "close") == 0) {
		if (talk)
			end_talk(talk);
	} else if (op && op->kind != FILES_NEW) {
		if (talk)
			add_request(talk, op, json_incref(json), frame);
	} else if (!talk && (talk = begin_talk(server, frame->id))) {
		if (!op || server->talk_count > COOP_FILES_TALKS_MAX) {
			(void)files_fail(talk, op ? -EMFILE : -EINVAL, op ? NULL : "op");
			end_talk(talk);
		} else {
			add_request(talk, op, json_incref(json), frame);
		}
	}
	json_decref(json);
}

static int read_input(struct files_server *server, bool *ret_end)
{
	uint8_t *place = coop_buf_reserve(&server->in, READ_SIZE);
	struct coop_files_frame frame;
	size_t used;
	int found;

	if (!place)
		return -ENOMEM;
	ssize_t size = read(STDIN_FILENO, place, READ_SIZE);
	if (size < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	*ret_end = size == 0;
	coop_buf_commit(&server->in, (size_t)size);
	while ((found = coop_files_frame_parse(coop_buf_front(&server->in),
					       coop_buf_size(&server->in), &frame, &used)) > 0) {
		take_frame(server, &frame);
		coop_buf_consume(&server->in, used);
	}
	return found;
}

static int write_output(struct files_server *server)
{
	while (coop_buf_size(&server->out)) {
		ssize_t size = write(STDOUT_FILENO, coop_buf_front(&server->out),
				     coop_buf_size(&server->out));
		if (size < 0 && errno == EINTR)
			continue;
		if (size < 0)
			return errno == EAGAIN ? 0 : -errno;
		coop_buf_consume(&server->out, (size_t)size);
	}
	return 0;
}

static enum files_turn take_turn(struct files_talk *talk)
{
	struct files_request *request = talk->first;

	if (!request)
		return talk->background(talk);
	/* One for a talk of another kind: nobody sends that, and nothing can be done about it. */
	if (talk->kind != request->op->kind && talk->kind != FILES_WORK)
		return files_fail(talk, -EINVAL, request->op->name);
	return request->op->turn(talk, request);
}

/* Puts a talk and those behind it before the others. */
static void rotate(struct files_server *server, struct files_talk *first)
{
	struct files_talk **at = &server->talks;

	if (*at == first)
		return;
	while (*at != first)
		at = &(*at)->next;
	*at = NULL;
	for (at = &first->next; *at;)
		at = &(*at)->next;
	*at = server->talks;
	server->talks = first;
}

/* Gives everybody who has something to do one turn. Where answers wait for the gateway, those who
 * had none come first the next time. */
static void take_turns(struct files_server *server)
{
	struct files_talk *next;

	for (struct files_talk *talk = server->talks; talk; talk = next) {
		next = talk->next;
		if (coop_buf_size(&server->out) >= OUT_HIGH || server->failed) {
			rotate(server, talk);
			return;
		}
		if (!talk->first && !talk->background)
			continue;
		enum files_turn turn = take_turn(talk);
		if (turn == FILES_OVER)
			end_talk(talk);
		else if (turn == FILES_DONE && talk->first)
			drop_request(talk);
	}
}

static bool has_work(const struct files_server *server)
{
	const struct files_talk *talk = server->talks;

	while (talk && !talk->first && !talk->background)
		talk = talk->next;
	return talk != NULL;
}

enum { REQUESTS, ANSWERS, WATCHES, SIGNALS, SOURCES };

static int wait_for_news(const struct files_server *server, struct pollfd fds[SOURCES])
{
	const bool full = coop_buf_size(&server->out) >= OUT_HIGH;
	const bool listen = !full && server->waiting < WAITING_HIGH;
	const int watching = full ? -1 : files_watches_fd(server);

	/* Also when nothing is read any more its end is seen, as a hang-up. */
	fds[REQUESTS] = (struct pollfd){.fd = STDIN_FILENO, .events = listen ? POLLIN : 0};
	fds[ANSWERS] = (struct pollfd){.fd = coop_buf_size(&server->out) ? STDOUT_FILENO : -1,
				       .events = POLLOUT};
	fds[WATCHES] = (struct pollfd){.fd = watching, .events = POLLIN};
	fds[SIGNALS] = (struct pollfd){.fd = server->signals, .events = POLLIN};
	if (poll(fds, SOURCES, !full && has_work(server) ? 0 : -1) < 0 && errno != EINTR)
		return -errno;
	return 0;
}

static int serve_once(struct files_server *server, bool *ret_end, const char **ret_why)
{
	struct pollfd fds[SOURCES];
	int r = wait_for_news(server, fds);

	*ret_why = "waiting";
	if (r == 0 && (fds[REQUESTS].revents & POLLIN)) {
		*ret_why = "reading requests";
		r = read_input(server, ret_end);
	} else if (fds[REQUESTS].revents & (POLLHUP | POLLERR | POLLNVAL)) {
		*ret_end = true;
	}
	if (fds[SIGNALS].revents & POLLIN)
		*ret_end = true;
	if (r < 0 || *ret_end)
		return r;
	if (fds[WATCHES].revents & POLLIN)
		files_watches_read(server);
	take_turns(server);
	if (server->failed)
		return -ENOMEM;
	*ret_why = "writing answers";
	return write_output(server);
}

static int set_nonblocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ? -errno : 0;
}

/* Whoever wants this process to end is obeyed, but unfinished uploads are removed first. */
static int catch_signals(void)
{
	sigset_t set;

	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGXFSZ, SIG_IGN); /* a limit on file sizes is an error like others: EFBIG */
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGHUP);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

int files_serve(struct files_server *server, const char **ret_why)
{
	bool end = false;
	int r;

	*ret_why = "signals";
	server->signals = catch_signals();
	if (server->signals < 0)
		return server->signals;

	*ret_why = "the current directory";
	if (!getcwd(server->start, sizeof server->start))
		return -errno;
	/* It lies outside of the root; then relative paths begin there. */
	if (server->start[0] != '/')
		strcpy(server->start, "/");
	*ret_why = "stdin and stdout";
	r = set_nonblocking(STDIN_FILENO);
	if (r == 0)
		r = set_nonblocking(STDOUT_FILENO);
	while (r == 0 && !end)
		r = serve_once(server, &end, ret_why);
	return r;
}

void files_server_clear(struct files_server *server)
{
	while (server->talks)
		end_talk(server->talks);
	files_watches_free(server);
	if (server->signals >= 0)
		(void)close(server->signals);
	coop_buf_clear(&server->in);
	coop_buf_clear(&server->out);
}
