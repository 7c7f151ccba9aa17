/* Acting as the agent of a token. The token is in no error: not in ours, and the keeper's hold no
 * values. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/arguments.h"
#include "client/client.h"

static int check(const char *token, struct coop_error *error)
{
	size_t length = strnlen(token, COOP_TOKEN_MAX + 1);

	if (length > COOP_TOKEN_MAX)
		return coop_client_refuse(error, -EINVAL, "invalid_input", "token",
					  "longer than 256 bytes, so that it cannot be one");
	for (size_t i = 0; i < length; i++) {
		if (token[i] < ' ' || token[i] > '~')
			return coop_client_refuse(error, -EINVAL, "invalid_input", "token",
						  "has characters that no token has");
	}
	return 0;
}

int coop_client_token(const struct coop_options *options, const char **ret,
		      struct coop_error *error)
{
	const char *token = options->token ? options->token : getenv("COOP_TOKEN");

	if (token && !*token)
		token = NULL;
	if (token) {
		int r = check(token, error);
		if (r < 0)
			return r;
	}
	*ret = token;
	return 0;
}

int coop_client_login(struct coop *coop, const char *token, struct coop_error *error)
{
	COOP_AUTO_ARGUMENTS struct coop_arguments arguments = {0};
	COOP_AUTO_JSON json_t *result = NULL;
	struct coop_error why = {0};

	coop_arguments_begin(&arguments);
	int r = coop_arguments_string(&arguments, "token", "token", token, &why);
	if (r == 0)
		r = coop_arguments_call(&arguments, coop, "login", NULL, 0, &result, NULL, &why);
	if (r == -EREMOTEIO && strcmp(why.code, "permission_denied") == 0)
		r = -EACCES;
	if (r < 0 && error)
		*error = why;
	return r;
}
