/* Host, Origin and Authorization as a client may write them: only this gateway's own names pass,
 * whatever stands around them, and a token is a run of printable characters or none. Input: a
 * letter for the kind, then the header's value. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "coop.h"
#include "doors/http/net/place.h"
#include "doors/http/users/access.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

#define PORT 7717

static const struct coop_http_place place = {
	.names = {"coop.example"},
	.ports = {PORT},
	.port_count = 1,
};

/* A port as text: digits alone, in range. */
static bool is_port(const char *text, unsigned long *ret)
{
	char *rest;

	if (strspn(text, "0123456789") != strlen(text) || !*text)
		return false;
	*ret = strtoul(text, &rest, 10);
	return *ret >= 1 && *ret <= 65535;
}

/* The same, said plainly: one of the known hosts, in any case of letters, then nothing or a colon
 * and a port. */
static bool is_here(const char *authority)
{
	static const char *const hosts[] = {"127.0.0.1", "localhost", "[::1]", "coop.example"};

	for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
		size_t length = strlen(hosts[i]);
		unsigned long port = 0;
		if (strncasecmp(authority, hosts[i], length) != 0)
			continue;
		bool any_port = i == 3;
		if (!authority[length])
			return any_port;
		if (authority[length] == ':' && is_port(authority + length + 1, &port))
			return any_port || port == PORT;
	}
	return false;
}

static void check_token(const char *value)
{
	const char *token = coop_access_token(value);

	if (!token)
		return;
	assert(strncasecmp(value, "bearer ", 7) == 0);
	assert(token > value && token + strlen(token) == value + strlen(value));
	assert(strlen(token) >= 1 && strlen(token) <= COOP_TOKEN_MAX);
	for (; *token; token++)
		assert(*token > ' ' && *token <= '~');
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	if (!size)
		return 0;
	/* Values end with a NUL, and have none. */
	char *value = strndup((const char *)input + 1, size - 1);
	assert(value);
	if (input[0] == 'A')
		check_token(value);
	else
		assert(coop_place_here(&place, value, false) == is_here(value));
	free(value);
	return 0;
}
