#include "doors/http/files/files_refusal.h"

#include <stdio.h>
#include <string.h>

#include "doors/http/net/exchange.h"

struct coop_http_refusal coop_files_refusal_of(const char *error)
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
	};

	for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
		if (strcmp(table[i].error, error) == 0)
			return table[i].refusal;
	return (struct coop_http_refusal){500, "internal"};
}

void coop_files_refuse(struct coop_http_exchange *exchange, const struct coop_http_refusal *refusal,
		       const char *message)
{
	char text[512];

	(void)snprintf(text, sizeof text, "%s", message);
	coop_refusal_text(text);
	coop_http_refuse(exchange, refusal->status, refusal->code, "%s", text);
}
