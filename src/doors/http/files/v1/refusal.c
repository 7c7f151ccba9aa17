#include "doors/http/files/v1/refusal.h"

#include <string.h>

#include "doors/http/net/exchange.h"
#include "doors/http/runtime/v1/refusal.h"

/* By the name of an errno, or what the keeper says. */
static struct coop_http_refusal refusal_of(const struct coop_error *error)
{
	static const struct {
		const char *error;
		struct coop_http_refusal refusal;
	} table[] = {
		{"ENOENT", {404, "file_not_found"}},
		{"EACCES", {403, "forbidden"}},
		{"EPERM", {403, "forbidden"}},
		{"EROFS", {403, "forbidden"}},
		{"EBUSY", {403, "forbidden"}}, /* of a mount: what the sandbox protects is one */
		{"EISDIR", {400, "invalid_argument"}},
		{"ENOTDIR", {400, "invalid_argument"}},
		{"EINVAL", {400, "invalid_argument"}},
		{"ENAMETOOLONG", {400, "invalid_argument"}},
		{"ELOOP", {400, "invalid_argument"}},
		{"EXDEV", {400, "invalid_argument"}},
		{"EBADMSG", {400, "invalid_argument"}}, /* no gzip */
		{"EEXIST", {409, "conflict"}},
		{"ENOTEMPTY", {409, "conflict"}},
		{"EFBIG", {413, "too_large"}},
		{"ENOSPC", {507, "not_enough_space"}},
		{"EDQUOT", {507, "not_enough_space"}},
		{"EMFILE", {503, "sandbox_overloaded"}},
		{"ENFILE", {503, "sandbox_overloaded"}},
		{"ENOMEM", {503, "sandbox_overloaded"}},
		{"timeout", {504, "timeout"}}, /* of the helper */
	};

	for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
		if (strcmp(table[i].error, error->code) == 0)
			return table[i].refusal;
	return coop_refusal_of(error);
}

void coop_files_refuse(struct coop_http_exchange *exchange, const struct coop_error *error)
{
	coop_refuse_as(exchange, refusal_of(error), error->message);
}
