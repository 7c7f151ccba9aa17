/* Output that is kept on disk: one file per stream and one of everything in order of arrival, under
 * the state folder, in a directory with mode 0700 and a random name. Made, written, read and
 * removed by the helper thread, in the order in which that was asked for: the loop waits for none
 * of it. */
#ifndef COOP_KEEPER_SPOOL_H
#define COOP_KEEPER_SPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "interface/err.h"
#include "keeper/output/stream.h"

struct coop_keeper;
struct coop_output;

/* NULL without memory. */
struct coop_spools *coop_spools_new(void);
/* The keeper's own directory; "" if there is none (yet). */
const char *coop_spool_dir(const struct coop_keeper *keeper);
/* Of all processes, on disk or on their way. */
uint64_t coop_spool_bytes(const struct coop_keeper *keeper);

/* Removes what an earlier keeper left behind, and chooses the directory. Called once, before
 * anything is written to the disk, which that may have filled. 0 or -errno. */
int coop_spool_clean(struct coop_keeper *keeper);
/* Removes the keeper's own directory, at its end. */
void coop_spool_remove(struct coop_keeper *keeper);

struct coop_request;
struct coop_spool;

/* Has the files made of a process like that one, and calls back on the loop with what they are now
 * (the callback's own; NULL: the error says why), unless the request has gone meanwhile. 0, or the
 * error filled. */
typedef void (*coop_spool_made)(struct coop_request *request, struct coop_spool *spool,
				const struct coop_err *err);
int coop_spool_make(const struct coop_output *output, struct coop_request *request,
		    coop_spool_made then, struct coop_err *err);
/* Those that no process has taken as its `spool`. NULL is fine. */
void coop_spool_discard(struct coop_spool *spool);

/* New bytes are in the stream's ring. Does nothing for a stream that does not spool. */
void coop_spool_feed(struct coop_outlet *stream);

/* What one write that waits for the disk costs beyond its bytes, and is counted as: many small ones
 * must not pile up. */
#define COOP_SPOOL_JOB_BYTES 512u

/* Whether bytes in the ring still wait for the disk. */
bool coop_spool_pending(const struct coop_outlet *stream);

/* Path of the stream's file (0: that of everything), or NULL. */
const char *coop_spool_path(const struct coop_output *output, unsigned stream);

/* Reads up to `size` bytes at `position` of the stream's file on the helper thread, then calls back
 * on the loop with the bytes (fewer at a fault; 0 then). The process is held meanwhile. 0 or
 * -ENOMEM. */
typedef void (*coop_spool_got)(void *user, const uint8_t *bytes, size_t size);
int coop_spool_fetch(struct coop_outlet *stream, uint64_t position, size_t size, coop_spool_got got,
		     void *user);
/* The same from the file of everything, of a process with two streams that spools. All that was fed
 * before is found there. */
int coop_spool_fetch_all(struct coop_output *output, uint64_t position, size_t size,
			 coop_spool_got got, void *user);

/* The record and all readers are gone: the files go, too, right afterwards. */
void coop_spool_free(struct coop_output *output);

#endif
