/* What went wrong: a stable code, a sentence for people, details for programs. One slot, given by
 * the caller. */
#ifndef COOP_INTERFACE_ERR_H
#define COOP_INTERFACE_ERR_H

#include <stddef.h>

enum coop_code {
	COOP_OK,
	COOP_INVALID_INPUT,
	COOP_NO_SUCH_PROCESS,
	COOP_NOT_OWNER,
	COOP_NOT_RUNNING,
	COOP_EXISTS,
	COOP_QUOTA,
	COOP_REGISTRY_FULL,
	COOP_TOO_LARGE,
	COOP_CLOSED,
	COOP_BOUNDARY_ESCAPE,
	COOP_CAPABILITY_DENIED,
	COOP_PERMISSION_DENIED,
	COOP_CANCELLED,
	COOP_PERSIST_UNSUPPORTED,
	COOP_SANDBOX_UNAVAILABLE,
	COOP_SPAWN_FAILED,
	COOP_UNAVAILABLE,
	COOP_INTERNAL,
};

struct coop_err {
	enum coop_code code;
	char message[512];
	char details[1024]; /* members of a JSON object, without its braces */
};

/* The code's name on the wire: "invalid_input". */
const char *coop_err_name(enum coop_code code);

/* Fills the slot and returns a negative errno that fits the code, so that a function can `return
 * coop_err_set(…)`. */
int coop_err_set(struct coop_err *err, enum coop_code code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* invalid_input or too_large that names the argument. */
int coop_err_field(struct coop_err *err, enum coop_code code, const char *field, const char *format,
		   ...) __attribute__((format(printf, 4, 5)));

int coop_err_no_memory(struct coop_err *err);

/* Add to the details. What does not fit is left out. */
void coop_err_detail(struct coop_err *err, const char *name, const char *text);
void coop_err_detail_int(struct coop_err *err, const char *name, long long value);
void coop_err_detail_raw(struct coop_err *err, const char *name, const char *json);

/* "ENOENT" for 2; "E?" for what the C library does not know. */
const char *coop_err_errno_name(int number);

#endif
