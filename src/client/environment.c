/* What of this program's environment goes on: to a keeper that is started, and to commands. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/text/glob.h"
#include "client/client.h"
#include "coop.h"
#include "interface/choices.h"

#define TOKEN_VARIABLE "COOP_TOKEN"

/* Whether the entry NAME=VALUE has this name, of which `length` bytes count. */
static bool has_name(const char *entry, const char *name, size_t length)
{
	return strncmp(entry, name, length) == 0 && entry[length] == '=';
}

char **coop_client_environment(char *more)
{
	size_t count = 0, used = 0, length = more ? strcspn(more, "=") : 0;

	while (environ && environ[count])
		count++;
	char **list = coop_mem_alloc((count + 2) * sizeof *list);
	if (!list)
		return NULL;
	for (size_t i = 0; i < count; i++) {
		if (!has_name(environ[i], TOKEN_VARIABLE, strlen(TOKEN_VARIABLE)) &&
		    !(more && has_name(environ[i], more, length)))
			list[used++] = environ[i];
	}
	if (more)
		list[used++] = more;
	list[used] = NULL;
	return list;
}

COOP_PUBLIC bool coop_inherits(const struct coop *coop, const char *name)
{
	/* However wide the operator's patterns are, a command does not get its caller's token. */
	if (strcmp(name, TOKEN_VARIABLE) == 0)
		return false;
	for (size_t i = 0; coop_usual_variables[i]; i++) {
		if (coop_glob_match(coop_usual_variables[i], name, NULL))
			return true;
	}
	for (size_t i = 0; i < json_array_size(coop->inherit); i++) {
		const char *pattern = json_string_value(json_array_get(coop->inherit, i));
		if (pattern && coop_glob_match(pattern, name, NULL))
			return true;
	}
	return false;
}
