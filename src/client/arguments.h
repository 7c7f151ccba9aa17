/* Builds the arguments of the typed calls and looks into their results. */
#ifndef COOP_CLIENT_ARGUMENTS_H
#define COOP_CLIENT_ARGUMENTS_H

#include <jansson.h>

#include "base/json/jsonw.h"
#include "client/client.h"

/* Arguments being written. Begin with coop_arguments_begin, add members to `w`, end with
 * coop_arguments_call. */
struct coop_arguments {
	struct coop_buf text;
	struct coop_jsonw w;
};

void coop_arguments_begin(struct coop_arguments *arguments);
void coop_arguments_clear(struct coop_arguments *arguments);

/* Adds a string member (`name` NULL: an element of an array). -EINVAL if it is not UTF-8: it
 * would reach the process changed. `field` is how errors name it. */
int coop_arguments_string(struct coop_arguments *arguments, const char *name, const char *field,
			  const char *text, struct coop_error *error);

/* Carries out the operation; the reply is the caller's. */
int coop_arguments_ask(struct coop_arguments *arguments, struct coop *coop, const char *op,
		       const void *data, size_t size, struct coop_reply **ret,
		       struct coop_error *error);

/* The same, with the result parsed. On success *ret_result is a new reference; *ret_reply (may be
 * NULL) the caller's. */
int coop_arguments_call(struct coop_arguments *arguments, struct coop *coop, const char *op,
			const void *data, size_t size, json_t **ret_result,
			struct coop_reply **ret_reply, struct coop_error *error);

#define COOP_AUTO_ARGUMENTS __attribute__((cleanup(coop_arguments_clear)))

static inline void coop_arguments_drop_json(json_t *const *json)
{
	json_decref(*json);
}
#define COOP_AUTO_JSON __attribute__((cleanup(coop_arguments_drop_json)))

#endif
