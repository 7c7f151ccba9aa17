/* The input of a process: writes queue in order of arrival, each is delivered whole, a close comes
 * after them. */
#ifndef COOP_KEEPER_STDIN_H
#define COOP_KEEPER_STDIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/list.h"

struct coop_output;
struct coop_request;

struct coop_stdin {
	int fd; /* of a pipe: owned; of a terminal: the stream's; -1: none or closed */
	bool terminal;
	bool open;       /* takes further writes */
	uv_poll_t *poll; /* only while a write waits for the child to read */
	struct coop_link queue;
};

void coop_stdin_init(struct coop_stdin *input);

/* A write is over, or the close of a request: the kernel took `done` bytes; all of them if `ok`. */
typedef void (*coop_stdin_written)(struct coop_request *request, bool ok, bool closed, size_t done);

/* Queues bytes (copied). `request` is answered when the kernel took all, or NULL. 0, or -ENOMEM. */
int coop_stdin_write(struct coop_output *output, const uint8_t *bytes, size_t size,
		     struct coop_request *request, coop_stdin_written written);

/* No further writes; the child sees end of file after what is queued. `request` (or NULL) is
 * answered then. 0 or -ENOMEM. */
int coop_stdin_end(struct coop_output *output, struct coop_request *request,
		   coop_stdin_written written);

/* Gives up on a request's write (time is up, cancelled). Returns the bytes that the kernel took of
 * it. */
size_t coop_stdin_abandon(struct coop_output *output, struct coop_request *request);

/* The child is gone or the record goes: everything queued fails with `closed`. */
void coop_stdin_close(struct coop_output *output);

#endif
