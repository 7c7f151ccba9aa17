/* What trusted proxies say: a host is a host and stands in the head as it is, nothing is said
 * that the head does not say, and a head without these headers says nothing. Input: lines of a
 * head. */
#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "doors/http/net/forwarded.h"
#include "doors/http/net/head.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

static bool stands(const struct coop_head *head, const char *text)
{
	for (unsigned i = 0; i < head->line_count; i++) {
		if (strstr(head->lines[i].name, "forwarded") && strstr(head->lines[i].value, text))
			return true;
	}
	return false;
}

static bool has_escape(const struct coop_head *head)
{
	const char *value = coop_head_get(head, "forwarded");

	return value && strchr(value, '\\');
}

static void check(const struct coop_head *head, const struct coop_proxies *proxies)
{
	struct coop_forwarded found;
	const char *wrong = NULL;
	bool any = coop_head_get(head, "forwarded") || coop_head_get(head, "x-forwarded-for") ||
		   coop_head_get(head, "x-forwarded-proto") ||
		   coop_head_get(head, "x-forwarded-host");
	int r = coop_forwarded_read(head, proxies, &found, &wrong);

	assert(r == 0 || (r == -EINVAL && wrong));
	if (r < 0 || !any)
		assert(!found.scheme && !*found.host && !found.has_client);
	if (*found.host) {
		assert(coop_authority_valid(found.host, strlen(found.host)));
		assert(stands(head, found.host) || has_escape(head));
	}
	assert(found.scheme <= COOP_SCHEME_HTTPS);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	static const char start[] = "GET / HTTP/1.1\r\nHost: a\r\n";
	struct coop_head *head = coop_head_new();
	struct coop_proxies nobody = {0}, some = {.count = 2};
	size_t used;

	assert(head);
	assert(coop_network_parse("10.0.0.0/8", &some.networks[0]) == 0);
	assert(coop_network_parse("2001:db8::/32", &some.networks[1]) == 0);
	if (coop_head_feed(head, start, sizeof start - 1, &used) == 0 && size &&
	    coop_head_feed(head, (const char *)input, size, &used) == 1) {
		check(head, &nobody);
		check(head, &some);
	}
	coop_head_free(head);
	return 0;
}
