/* Input messages without a parse tree: they are large, and building a tree of 16 MiB would hold up
 * everybody for a second. No I/O. */
#ifndef COOP_HTTP_V1_INPUT_FRAME_H
#define COOP_HTTP_V1_INPUT_FRAME_H

#include <stdbool.h>
#include <stddef.h>

/* Whether the text is {"type": "stdin", "data": "…"}, with whatever further members that are
 * neither objects nor arrays, and without an escape in any string. *ret_data is the text between
 * the quotes then. Everything else is false, and for a real parser. */
bool coop_frame_stdin(const char *text, size_t size, const char **ret_data, size_t *ret_size);

#endif
