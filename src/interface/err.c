#include "interface/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/json/jsonw.h"

static const struct {
	const char *name;
	int number;
} codes[] = {
	[COOP_OK] = {"ok", 0},
	[COOP_INVALID_INPUT] = {"invalid_input", EINVAL},
	[COOP_NO_SUCH_PROCESS] = {"no_such_process", ESRCH},
	[COOP_NOT_OWNER] = {"not_owner", EACCES},
	[COOP_NOT_RUNNING] = {"not_running", ECHILD},
	[COOP_EXISTS] = {"exists", EEXIST},
	[COOP_QUOTA] = {"quota", EDQUOT},
	[COOP_REGISTRY_FULL] = {"registry_full", EUSERS},
	[COOP_TOO_LARGE] = {"too_large", EMSGSIZE},
	[COOP_CLOSED] = {"closed", EPIPE},
	[COOP_BOUNDARY_ESCAPE] = {"boundary_escape", EXDEV},
	[COOP_CAPABILITY_DENIED] = {"capability_denied", EPERM},
	[COOP_PERMISSION_DENIED] = {"permission_denied", EPERM},
	[COOP_CANCELLED] = {"cancelled", ECANCELED},
	[COOP_PERSIST_UNSUPPORTED] = {"persist_unsupported", ENOTSUP},
	[COOP_SANDBOX_UNAVAILABLE] = {"sandbox_unavailable", ENOTSUP},
	[COOP_SPAWN_FAILED] = {"spawn_failed", ENOEXEC},
	[COOP_UNAVAILABLE] = {"unavailable", ESHUTDOWN},
	[COOP_INTERNAL] = {"internal", EIO},
};

const char *coop_err_name(enum coop_code code)
{
	return codes[code].name;
}

__attribute__((format(printf, 3, 0))) static int fill(struct coop_err *err, enum coop_code code,
						      const char *format, va_list arguments)
{
	err->code = code;
	err->details[0] = 0;
	(void)vsnprintf(err->message, sizeof err->message, format, arguments);
	return -codes[code].number;
}

int coop_err_set(struct coop_err *err, enum coop_code code, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	int r = fill(err, code, format, arguments);
	va_end(arguments);
	return r;
}

int coop_err_field(struct coop_err *err, enum coop_code code, const char *field, const char *format,
		   ...)
{
	va_list arguments;

	va_start(arguments, format);
	int r = fill(err, code, format, arguments);
	va_end(arguments);
	coop_err_detail(err, "field", field);
	return r;
}

int coop_err_no_memory(struct coop_err *err)
{
	(void)coop_err_set(err, COOP_INTERNAL, "the keeper is out of memory; nothing was changed");
	coop_err_detail_raw(err, "errno", "\"ENOMEM\""); /* which needs no memory */
	return -ENOMEM;
}

/* `value` is JSON text. */
void coop_err_detail_raw(struct coop_err *err, const char *name, const char *json)
{
	size_t used = strlen(err->details);
	int n = snprintf(err->details + used, sizeof err->details - used, "%s\"%s\":%s",
			 used ? "," : "", name, json);

	if (n < 0 || (size_t)n >= sizeof err->details - used)
		err->details[used] = 0;
}

void coop_err_detail(struct coop_err *err, const char *name, const char *text)
{
	struct coop_buf quoted = {0};
	struct coop_jsonw w = {.out = &quoted};

	coop_jsonw_string(&w, NULL, text);
	if (!w.failed && coop_buf_append(&quoted, "", 1) == 0)
		coop_err_detail_raw(err, name, (const char *)coop_buf_front(&quoted));
	coop_buf_clear(&quoted);
}

void coop_err_detail_int(struct coop_err *err, const char *name, long long value)
{
	char digits[24];

	(void)snprintf(digits, sizeof digits, "%lld", value);
	coop_err_detail_raw(err, name, digits);
}

const char *coop_err_errno_name(int number)
{
	const char *name = strerrorname_np(number);

	return name ? name : "E?";
}
