#include "doors/http/net/forwarded.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "doors/http/net/head.h"

/* Members of a list that are looked at: the last ones, which the nearest proxies have added. */
#define MEMBERS_MAX 32u
#define VALUE_MAX COOP_AUTHORITY_SIZE

struct member {
	const char *text;
	size_t size;
};

struct list {
	struct member members[MEMBERS_MAX];
	unsigned count;
};

bool coop_proxies_have(const struct coop_proxies *proxies, const struct coop_address *address)
{
	for (unsigned i = 0; i < proxies->count; i++) {
		if (coop_network_has(&proxies->networks[i], address))
			return true;
	}
	return false;
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t';
}

/* Empty members count for nothing. */
static void add(struct list *list, const char *text, size_t size)
{
	for (; size && is_space(*text); size--)
		text++;
	while (size && is_space(text[size - 1]))
		size--;
	if (!size)
		return;
	if (list->count == MEMBERS_MAX)
		memmove(list->members, list->members + 1, --list->count * sizeof *list->members);
	list->members[list->count++] = (struct member){text, size};
}

/* The length of what stands before the next mark, which counts only outside of quotes where
 * there are any. */
static size_t until(const char *text, char mark, bool quotes)
{
	bool quoted = false;
	size_t i = 0;

	for (; text[i] && (quoted || text[i] != mark); i++) {
		if (!quotes)
			continue;
		if (quoted && text[i] == '\\' && text[i + 1])
			i++;
		else if (text[i] == '"')
			quoted = !quoted;
	}
	return i;
}

/* All members of a header, which several lines are one list of. The older headers know no
 * quotes: one that a client sends must not hide what proxies add behind it. */
static void gather(const struct coop_head *head, const char *name, bool quotes, struct list *ret)
{
	ret->count = 0;
	for (unsigned i = 0; i < head->line_count; i++) {
		const char *at = head->lines[i].value;
		if (strcmp(head->lines[i].name, name) != 0)
			continue;
		while (*at) {
			size_t size = until(at, ',', quotes);
			add(ret, at, size);
			at += size;
			at += *at == ',';
		}
	}
}

/* A node: an address, of version 6 in brackets or not, with a port or without. What proxies call
 * "unknown" or by a word of their own is none. */
static bool read_node(const char *text, size_t size, struct coop_address *ret)
{
	const char *end = size && *text == '[' ? memchr(text, ']', size) : NULL;
	const char *colon = memchr(text, ':', size);

	if (end)
		return coop_authority_valid(text, size) &&
		       coop_address_parse(text + 1, (size_t)(end - text) - 1, ret) == 0;
	if (coop_address_parse(text, size, ret) == 0)
		return true;
	return colon && coop_authority_valid(text, size) &&
	       coop_address_parse(text, (size_t)(colon - text), ret) == 0;
}

static bool is_word(const char *text, size_t size, const char *word)
{
	return strlen(word) == size && strncasecmp(text, word, size) == 0;
}

static int read_scheme(const char *text, size_t size, enum coop_scheme *ret)
{
	if (is_word(text, size, "https") || is_word(text, size, "wss"))
		*ret = COOP_SCHEME_HTTPS;
	else if (is_word(text, size, "http") || is_word(text, size, "ws"))
		*ret = COOP_SCHEME_HTTP;
	else
		return -EINVAL;
	return 0;
}

static int read_host(const char *text, size_t size, char ret[COOP_AUTHORITY_SIZE])
{
	if (!coop_authority_valid(text, size) || size >= COOP_AUTHORITY_SIZE)
		return -EINVAL;
	memcpy(ret, text, size);
	ret[size] = 0;
	return 0;
}

/* One that a proxy added with the so-many-th hop from here; a list that is shorter has what the
 * first proxy said, and nobody added to. */
static const struct member *at_hop(const struct list *list, unsigned hops)
{
	if (!list->count)
		return NULL;
	return &list->members[list->count > hops ? list->count - hops : 0];
}

/* How many members of the chain are the words of trusted proxies. */
static unsigned walk(const struct list *chain, const struct coop_proxies *proxies,
		     struct coop_forwarded *ret)
{
	unsigned hops = 0;

	while (hops < chain->count) {
		const struct member *node = &chain->members[chain->count - ++hops];
		ret->has_client = read_node(node->text, node->size, &ret->client);
		if (!ret->has_client || !coop_proxies_have(proxies, &ret->client))
			break;
	}
	return hops ? hops : 1;
}

static int read_old(const struct coop_head *head, const struct coop_proxies *proxies,
		    struct coop_forwarded *ret, const char **ret_wrong)
{
	struct list list;

	gather(head, "x-forwarded-for", false, &list);
	unsigned hops = walk(&list, proxies, ret);
	gather(head, "x-forwarded-proto", false, &list);
	const struct member *member = at_hop(&list, hops);
	if (member && read_scheme(member->text, member->size, &ret->scheme) < 0) {
		*ret_wrong = "X-Forwarded-Proto";
		return -EINVAL;
	}
	gather(head, "x-forwarded-host", false, &list);
	member = at_hop(&list, hops);
	if (member && read_host(member->text, member->size, ret->host) < 0) {
		*ret_wrong = "X-Forwarded-Host";
		return -EINVAL;
	}
	return 0;
}

/* A value, in quotes or without them, to the end of its pair. The length, or -EINVAL. */
static int unquote(const char *text, size_t size, char ret[VALUE_MAX])
{
	bool quoted = size >= 2 && text[0] == '"' && text[size - 1] == '"';
	int n = 0;

	for (size_t i = quoted; i < size - quoted; i++) {
		if (quoted && text[i] == '\\')
			i++;
		/* A quote of its own, or one that ends nothing. */
		else if (text[i] == '"')
			return -EINVAL;
		if (i >= size - quoted || n == (int)VALUE_MAX - 1)
			return -EINVAL;
		ret[n++] = text[i];
	}
	ret[n] = 0;
	return n ? n : -EINVAL;
}

/* What one proxy said. */
struct said {
	bool node, scheme, host; /* that it did */
	struct coop_address address;
	bool known; /* the node is an address */
	enum coop_scheme by;
	char name[COOP_AUTHORITY_SIZE];
};

static int take_pair(const char *name, size_t name_size, const char *text, size_t size,
		     struct said *said)
{
	char value[VALUE_MAX];
	int n = unquote(text, size, value);

	if (n < 0)
		return n;
	/* None may be there twice: which one would count? */
	if (is_word(name, name_size, "for")) {
		if (said->node)
			return -EINVAL;
		said->node = true;
		said->known = read_node(value, (size_t)n, &said->address);
	} else if (is_word(name, name_size, "proto")) {
		if (said->scheme || read_scheme(value, (size_t)n, &said->by) < 0)
			return -EINVAL;
		said->scheme = true;
	} else if (is_word(name, name_size, "host")) {
		if (said->host || read_host(value, (size_t)n, said->name) < 0)
			return -EINVAL;
		said->host = true;
	}
	return 0;
}

/* for=192.0.2.60;proto=https;host="example.org" */
static int read_member(const struct member *member, struct said *ret)
{
	char text[1024];

	*ret = (struct said){0};
	if (member->size >= sizeof text)
		return -EINVAL;
	memcpy(text, member->text, member->size);
	text[member->size] = 0;
	for (const char *at = text; *at;) {
		size_t size = until(at, ';', true), name = strcspn(at, "=;");
		const char *next = at + size + (at[size] == ';');
		for (; size && is_space(*at); size--, name--)
			at++;
		while (size && is_space(at[size - 1]))
			size--;
		if (size && (name == 0 || name >= size || at[name] != '=' ||
			     take_pair(at, name, at + name + 1, size - name - 1, ret) < 0))
			return -EINVAL;
		at = next;
	}
	return 0;
}

static int read_new(const struct list *list, const struct coop_proxies *proxies,
		    struct coop_forwarded *ret)
{
	for (unsigned i = list->count; i-- > 0;) {
		struct said said;
		if (read_member(&list->members[i], &said) < 0)
			return -EINVAL;
		/* The further away one is, the better it knows what the client said. */
		if (said.scheme)
			ret->scheme = said.by;
		if (said.host)
			memcpy(ret->host, said.name, sizeof ret->host);
		ret->has_client = said.known;
		ret->client = said.address;
		if (!said.known || !coop_proxies_have(proxies, &said.address))
			break;
	}
	return 0;
}

int coop_forwarded_read(const struct coop_head *head, const struct coop_proxies *proxies,
			struct coop_forwarded *ret, const char **ret_wrong)
{
	struct list list;
	bool old = coop_head_get(head, "x-forwarded-for") ||
		   coop_head_get(head, "x-forwarded-proto") ||
		   coop_head_get(head, "x-forwarded-host");
	int r = 0;

	*ret = (struct coop_forwarded){0};
	gather(head, "forwarded", true, &list);
	/* A proxy sets the ones and hands on the others as its client sent them: nobody can tell
	 * which. */
	if (old && list.count) {
		*ret_wrong = "Forwarded beside X-Forwarded-…";
		r = -EINVAL;
	} else if (old) {
		r = read_old(head, proxies, ret, ret_wrong);
	} else if (list.count) {
		*ret_wrong = "Forwarded";
		r = read_new(&list, proxies, ret);
	}
	if (r < 0)
		*ret = (struct coop_forwarded){0};
	return r;
}
