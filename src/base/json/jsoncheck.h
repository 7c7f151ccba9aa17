/* Whether a text is JSON, without a tree of it: for who hands it on. */
#ifndef COOP_BASE_JSONCHECK_H
#define COOP_BASE_JSONCHECK_H

#include <stdbool.h>
#include <stddef.h>

/* One object and nothing but space around it, which jansson reads too; numbers may be larger than
 * it takes. A C string: it holds no NUL. */
bool coop_jsoncheck_object(const char *text, size_t size);

#endif
