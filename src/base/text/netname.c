#include "base/text/netname.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#define NAME_MAX_BYTES 253u
#define LABEL_MAX 63u
#define V4_BITS 96u /* before those of an address of version 4 */

/* Labels of letters, digits, "-" and "_" (which names of containers have), none of them empty. */
static bool is_name(const char *text, size_t size)
{
	size_t label = 0;

	for (size_t i = 0; i < size; i++) {
		unsigned char c = (unsigned char)text[i];
		if (c == '.' && label == 0)
			return false;
		label = c == '.' ? 0 : label + 1;
		if (label > LABEL_MAX ||
		    (c != '.' && c != '-' && c != '_' && !(c < 0x80 && isalnum(c))))
			return false;
	}
	return label > 0 && size <= NAME_MAX_BYTES;
}

static bool is_port(const char *text, size_t size)
{
	unsigned port = 0;

	if (size == 0 || size > 5)
		return false;
	for (size_t i = 0; i < size; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		port = port * 10 + (unsigned)(text[i] - '0');
	}
	return port >= 1 && port <= 65535;
}

bool coop_authority_valid(const char *text, size_t size)
{
	const char *end = size && *text == '[' ? memchr(text, ']', size) : NULL;
	struct coop_address address;
	size_t host;

	if (size && *text == '[') {
		if (!end || !memchr(text, ':', (size_t)(end - text)) ||
		    coop_address_parse(text + 1, (size_t)(end - text) - 1, &address) < 0)
			return false;
		host = (size_t)(end - text) + 1;
	} else {
		const char *colon = memchr(text, ':', size);
		host = colon ? (size_t)(colon - text) : size;
		if (!is_name(text, host))
			return false;
	}
	return host == size || (text[host] == ':' && is_port(text + host + 1, size - host - 1));
}

int coop_origin_parse(const char *url, char ret[COOP_ORIGIN_SIZE])
{
	bool tls = strncasecmp(url, "https://", 8) == 0;
	size_t scheme = tls ? 8 : 7;

	if (!tls && strncasecmp(url, "http://", 7) != 0)
		return -EINVAL;
	size_t size = strlen(url + scheme);
	if (size && url[scheme + size - 1] == '/')
		size--;
	if (!coop_authority_valid(url + scheme, size))
		return -EINVAL;
	memcpy(ret, tls ? "https://" : "http://", scheme);
	memcpy(ret + scheme, url + scheme, size);
	ret[scheme + size] = 0;
	return 0;
}

int coop_address_parse(const char *text, size_t size, struct coop_address *ret)
{
	char copy[INET6_ADDRSTRLEN];
	struct coop_address found = {.bytes = {[10] = 0xff, [11] = 0xff}};

	if (size >= sizeof copy || memchr(text, 0, size))
		return -EINVAL;
	memcpy(copy, text, size);
	copy[size] = 0;
	if (inet_pton(AF_INET, copy, found.bytes + 12) != 1 &&
	    inet_pton(AF_INET6, copy, found.bytes) != 1)
		return -EINVAL;
	*ret = found;
	return 0;
}

static bool bit_at(const struct coop_address *address, unsigned i)
{
	return address->bytes[i / 8] >> (7 - i % 8) & 1;
}

int coop_network_parse(const char *text, struct coop_address_range *ret)
{
	struct coop_address_range found = {.bits = 128};
	const char *slash = strchr(text, '/');
	size_t size = slash ? (size_t)(slash - text) : strlen(text);

	if (coop_address_parse(text, size, &found.first) < 0)
		return -EINVAL;
	if (slash) {
		size_t digits = strspn(slash + 1, "0123456789");
		unsigned before = memchr(text, ':', size) ? 0 : V4_BITS, bits = 0;
		if (digits == 0 || digits > 3 || slash[1 + digits])
			return -EINVAL;
		for (size_t i = 1; i <= digits; i++)
			bits = bits * 10 + (unsigned)(slash[i] - '0');
		if (bits > 128 - before)
			return -EINVAL;
		found.bits = before + bits;
	}
	/* 10.1.2.3/8 is a slip of whoever meant one of them, or another number of bits. */
	for (unsigned i = found.bits; i < 128; i++) {
		if (bit_at(&found.first, i))
			return -EINVAL;
	}
	*ret = found;
	return 0;
}

bool coop_network_has(const struct coop_address_range *network, const struct coop_address *address)
{
	for (unsigned i = 0; i < network->bits; i++) {
		if (bit_at(&network->first, i) != bit_at(address, i))
			return false;
	}
	return true;
}
