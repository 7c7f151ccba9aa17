/* What coop-files and the gateway say to each other, over the program's stdin and stdout.
 *
 * A frame is u32 size of the whole frame | u32 id | u32 size of its JSON | one JSON object | raw
 * bytes; little-endian, at most COOP_FILES_FRAME_MAX in all. An id is a talk: the gateway chooses
 * one that is not in use, and opens the talk with one of
 *
 *   {"op":"stat","path"}                      -> {"file":E}
 *   {"op":"mkdir","path"}                     -> {}
 *   {"op":"move","from","to"}                 -> {"file":E}
 *   {"op":"remove","path"}                    -> {}
 *   {"op":"list","path","depth"}              -> {"count","size","whole"} + the first bytes of
 * {"entries":[E…]}
 *   {"op":"open_read","path"}                 -> {"file":E,"size","whole"} + the first bytes
 *   {"op":"open_write","path","gzip","limit"} -> {}
 *   {"op":"watch","path","recursive","include_entry"} -> {}, then any number of {"events":[…]} and
 * {"overflow":true}, and
 *                                                {"over":true} once the directory is gone
 *
 * Of list and open_read more is asked for with {"op":"read","offset","max"} -> {} + bytes (none:
 * there are no more); to open_write belong
 * {"op":"write"} + bytes -> {} and {"op":"commit"} -> {"file":E}. {"op":"close"} ends a talk at any
 * time and is not answered, nor is what has not been answered before it; an upload that was not
 * committed leaves nothing. All else is answered once, and those of one talk in their order.
 *
 * A failure is {"error":"ENOENT","message":"…"} and ends its talk. So do the answers to stat,
 * mkdir, move, remove and commit, "whole":true (the first bytes are all) and "over":true. What
 * comes for a talk that has ended is passed over, as it may have been on its way. */
#ifndef COOP_FILES_FRAME_H
#define COOP_FILES_FRAME_H

#include <stddef.h>
#include <stdint.h>

#define COOP_FILES_FRAME_HEADER 12u
#define COOP_FILES_FRAME_MAX (1u << 20)
/* Most raw bytes that one answer brings, and the most that a write should bring. */
#define COOP_FILES_SLICE (256u << 10)
/* Talks that may be open at a time; one more is EMFILE. */
#define COOP_FILES_TALKS_MAX 256u
/* A listing of more is EFBIG. */
#define COOP_FILES_LIST_MAX 100000u
#define COOP_FILES_LIST_BYTES (48u << 20)
#define COOP_FILES_DEPTH_MAX 1024u

struct coop_files_frame {
	uint32_t id;
	const char *json; /* not NUL-ended; points into the input, as `data` does */
	size_t json_size;
	const uint8_t *data;
	size_t size;
};

/* Looks for one frame at the start of `bytes`. 1 with *ret and *ret_used filled; 0 if more bytes
 * are needed; -EPROTO for what is no frame, told from the header alone. */
int coop_files_frame_parse(const uint8_t *bytes, size_t size, struct coop_files_frame *ret,
			   size_t *ret_used);

/* Writes the header; json_size and size bytes must follow it, COOP_FILES_FRAME_MAX in all. */
void coop_files_frame_put(uint8_t header[COOP_FILES_FRAME_HEADER], uint32_t id, size_t json_size,
			  size_t size);

#endif
