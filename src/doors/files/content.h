/* Bytes that a talk gives out piece by piece: of a file, or a text made for it. */
#ifndef COOP_FILES_CONTENT_H
#define COOP_FILES_CONTENT_H

#include "doors/files/talk.h"

struct files_content {
	int fd;               /* -1: the text is it */
	struct coop_buf text; /* not consumed: positions count from its front */
};

/* Makes the talk one of content, with nothing in it yet. NULL without memory. */
struct files_content *files_content_begin(struct files_talk *talk);

/* Ends `w`, an object that was begun, with the size of it all, and answers with that and the first
 * bytes. Where these are all the talk is over. */
enum files_turn files_content_first(struct files_talk *talk, struct coop_jsonw *w, uint64_t size);

#endif
