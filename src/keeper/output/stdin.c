#include "keeper/output/stdin.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "base/mem.h"
#include "keeper/core/keeper.h"
#include "keeper/output/output.h"

/* One write, or (size 0, closes) the close after the writes. */
struct write {
	struct coop_link in_queue;
	struct coop_request *request;
	coop_stdin_written written;
	size_t size, done;
	bool closes;
	uint8_t bytes[];
};

/* A poll handle outlives the input by one turn of the loop; it carries the reference that keeps the
 * process. */
struct waiting {
	uv_poll_t poll;
	struct coop_output *output;
	int fd;
};

static void pump(struct coop_output *output);

void coop_stdin_init(struct coop_stdin *input)
{
	*input = (struct coop_stdin){.fd = -1};
	coop_list_init(&input->queue);
}

static void on_poll_closed(uv_handle_t *handle)
{
	struct waiting *waiting = handle->data;

	if (waiting->fd >= 0)
		(void)close(waiting->fd);
	waiting->output->owner->release(waiting->output);
	free(waiting);
}

static void stop_waiting(struct coop_stdin *input)
{
	if (!input->poll)
		return;
	uv_close((uv_handle_t *)input->poll, on_poll_closed);
	input->poll = NULL;
}

static void on_writable(uv_poll_t *poll, int status, int events)
{
	struct waiting *waiting = poll->data;

	(void)status; /* a fault shows in the write */
	(void)events;
	pump(waiting->output);
}

/* The child does not read: go on when it does. */
static int start_waiting(struct coop_output *output)
{
	struct coop_stdin *input = &output->input;

	if (input->poll)
		return 0;
	struct waiting *waiting = coop_mem_zalloc(sizeof *waiting);
	if (!waiting)
		return -ENOMEM;
	waiting->fd = input->terminal ? fcntl(input->fd, F_DUPFD_CLOEXEC, 3) : -1;
	int r = uv_poll_init(coop_loop_of(output->keeper), &waiting->poll,
			     input->terminal ? waiting->fd : input->fd);
	if (r < 0) {
		if (waiting->fd >= 0)
			(void)close(waiting->fd);
		free(waiting);
		return r;
	}
	waiting->output = output;
	output->owner->hold(output);
	waiting->poll.data = waiting;
	input->poll = &waiting->poll;
	return uv_poll_start(&waiting->poll, UV_WRITABLE, on_writable);
}

/* Out of the queue before the answer, which may put in the next. */
static void finish_write(struct write *item, bool ok)
{
	coop_list_remove(&item->in_queue);
	if (item->request)
		item->written(item->request, ok, item->closes, item->done);
	free(item);
}

/* In their order: who wrote first hears first. */
static void fail_all(struct coop_stdin *input)
{
	while (!coop_list_empty(&input->queue))
		finish_write(COOP_LIST_ITEM(input->queue.next, struct write, in_queue), false);
}

static void close_now(struct coop_output *output)
{
	struct coop_stdin *input = &output->input;

	stop_waiting(input);
	/* A terminal's descriptor is its stream's, and still needed: for its size and its
	 * settings. */
	if (input->fd >= 0 && !input->terminal) {
		(void)close(input->fd);
		input->fd = -1;
	}
	input->open = false;
}

/* A terminal has no end of file of its own: its line discipline makes one from the EOF
 * character. */
static void end_terminal(const struct coop_stdin *input)
{
	struct termios settings;
	uint8_t end = 4;

	if (tcgetattr(input->fd, &settings) == 0)
		end = settings.c_cc[VEOF];
	ssize_t n = write(input->fd, &end, 1);
	/* a terminal that takes no more is one whose reader does not read: it will not miss it */
	(void)n;
}

/* Returns whether the item is done with. */
static bool write_item(struct coop_stdin *input, struct write *item, int *ret_error)
{
	while (item->done < item->size) {
		ssize_t n = write(input->fd, item->bytes + item->done, item->size - item->done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			*ret_error = errno;
			return false;
		}
		item->done += (size_t)n;
	}
	return true;
}

static void pump(struct coop_output *output)
{
	struct coop_stdin *input = &output->input;

	while (!coop_list_empty(&input->queue)) {
		struct write *item = COOP_LIST_ITEM(input->queue.next, struct write, in_queue);
		int error = 0;
		if (input->fd < 0 || (!write_item(input, item, &error) && error != EAGAIN)) {
			fail_all(input);
			close_now(output);
			return;
		}
		if (error == EAGAIN) {
			if (start_waiting(output) < 0) {
				fail_all(input);
				close_now(output);
			}
			return;
		}
		if (item->closes) {
			if (input->terminal)
				end_terminal(input);
			close_now(output);
		}
		finish_write(item, true);
	}
	stop_waiting(input);
}

static int enqueue(struct coop_output *output, const uint8_t *bytes, size_t size, bool closes,
		   struct coop_request *request, coop_stdin_written written)
{
	struct write *item = coop_mem_alloc(sizeof *item + size);

	if (!item)
		return -ENOMEM;
	*item = (struct write){
		.request = request, .written = written, .size = size, .closes = closes};
	if (size)
		memcpy(item->bytes, bytes, size);
	coop_list_add(&output->input.queue, &item->in_queue);
	/* What stands before it is waiting already, and wakes the pump itself. */
	if (output->input.queue.next == &item->in_queue)
		pump(output);
	return 0;
}

int coop_stdin_write(struct coop_output *output, const uint8_t *bytes, size_t size,
		     struct coop_request *request, coop_stdin_written written)
{
	return enqueue(output, bytes, size, false, request, written);
}

/* Closed to further writes at once, though those before it may still wait. */
int coop_stdin_end(struct coop_output *output, struct coop_request *request,
		   coop_stdin_written written)
{
	int r = enqueue(output, NULL, 0, true, request, written);

	if (r == 0)
		output->input.open = false;
	return r;
}

size_t coop_stdin_abandon(struct coop_output *output, struct coop_request *request)
{
	COOP_LIST_EACH(&output->input.queue, link)
	{
		struct write *item = COOP_LIST_ITEM(link, struct write, in_queue);
		if (item->request != request)
			continue;
		size_t done = item->done;
		/* A close goes on without its asker; bytes do not. */
		item->request = NULL;
		if (!item->closes)
			finish_write(item, true);
		pump(output);
		return done;
	}
	return 0;
}

void coop_stdin_close(struct coop_output *output)
{
	fail_all(&output->input);
	close_now(output);
}
