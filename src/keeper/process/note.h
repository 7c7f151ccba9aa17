/* Notes: what coop itself has to say about a process, as events among those of its output. Why it
 * could not be started, who or what ended it, that input did not reach it.
 *
 * A note is an event of the index with a number of its own, so that every reader finds it at the
 * same place. Its text is kept here: rings, byte counts and digests know nothing of it. */
#ifndef COOP_KEEPER_NOTE_H
#define COOP_KEEPER_NOTE_H

#include <stddef.h>
#include <stdint.h>

#include "interface/bounds.h"
#include "keeper/process/kinds.h"

/* Of a process: owners can fill all but the last few, which are for the keeper's own. */
#define COOP_NOTES_OWNERS 12u
/* The stream's number on the wire, and in the index. */
#define COOP_NOTE_STREAM 4u

struct coop_process;
struct coop_request;

void coop_notes_clear(struct coop_notes *notes);

/* Adds a note of the keeper's own: "coop: ", the text without control characters, cut at whole
 * characters, and a line end. Nothing, without memory, where there are too many, or once the end
 * has been told. */
void coop_note_add(struct coop_process *process, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Adds the reason of an end that was not the process's own. */
void coop_note_end(struct coop_process *process);

/* The text of the note with that number (an event's offset). */
const char *coop_note_text(const struct coop_process *process, uint64_t number);
/* Why a start failed, as it was noted; NULL: it was not. */
const char *coop_note_failure(const struct coop_process *process, char ret_text[COOP_NOTE_MAX]);

/* The operation's handler. */
void coop_op_note(struct coop_request *request);

#endif
