/* JSON that one of our programs stored earlier. Whoever could write to the disk meanwhile may have
 * written it. */
#ifndef COOP_BASE_STORED_H
#define COOP_BASE_STORED_H

#include <jansson.h>

/* The object in `text` (NULL: none). Of a member that stands in it twice nobody could say which one
 * was meant: such a text is refused, like one that is no JSON or no object. A new reference, or
 * NULL. */
json_t *coop_stored_object(const char *text);

#endif
