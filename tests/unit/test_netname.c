/* Names, addresses and networks as text: what is one is taken, what only looks like one is not. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/text/netname.h"

static void authorities(void **state)
{
	static const char *const good[] = {
		"a",
		"example.org",
		"example.org:1",
		"EXAMPLE.org:65535",
		"1.2.3.4",
		"[::1]",
		"[::1]:80",
		"[2001:db8::1]:7717",
		"xn--nxasmq6b",
		"my_box-1",
		"[::ffff:1.2.3.4]",
		"a.b.c.d.e.f.g.h.i.j.k",
	};
	static const char *const bad[] = {
		"",           ":",    ":80",      "a:",   "a:0",       "a:65536", "a:080000",
		"a:+1",       "a:1x", "a b",      "a/b",  "a@b",       "a..b",    ".a",
		"a.",         "[]",   "[::1",     "::1",  "[1.2.3.4]", "[::1]x",  "[::1]:",
		"[::1%eth0]", "a\tb", "\xc3\xa9", "a\"b", "a,b",       "*",
	};

	for (size_t i = 0; i < sizeof good / sizeof *good; i++)
		assert_true(coop_authority_valid(good[i], strlen(good[i])));
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_false(coop_authority_valid(bad[i], strlen(bad[i])));
	char name[300];
	(void)memset(name, 'a', sizeof name);
	assert_true(coop_authority_valid(name, 63));
	assert_false(coop_authority_valid(name, 64));
	for (size_t i = 60; i < sizeof name; i += 61)
		name[i] = '.';
	assert_true(coop_authority_valid(name, 253));
	assert_false(coop_authority_valid(name, 254));
}

static void origins(void **state)
{
	char text[COOP_ORIGIN_SIZE];

	assert_int_equal(coop_origin_parse("HTTPS://Coop.example.org/", text), 0);
	assert_string_equal(text, "https://Coop.example.org");
	assert_int_equal(coop_origin_parse("http://[::1]:80", text), 0);
	assert_string_equal(text, "http://[::1]:80");
	static const char *const bad[] = {
		"",           "https://",     "https:///",   "ftp://a",
		"a",          "https://a/b",  "https://a?b", "https://a#b",
		"http://a//", "http://u:p@a", "//a",         "https:a"};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(coop_origin_parse(bad[i], text), -EINVAL);
	assert_string_equal(text, "http://[::1]:80"); /* untouched */
}

static bool has(const char *network, const char *address)
{
	struct coop_address_range parsed;
	struct coop_address one;

	assert_int_equal(coop_network_parse(network, &parsed), 0);
	assert_int_equal(coop_address_parse(address, strlen(address), &one), 0);
	return coop_network_has(&parsed, &one);
}

static void networks(void **state)
{
	assert_true(has("10.0.0.0/8", "10.255.1.2"));
	assert_false(has("10.0.0.0/8", "11.0.0.0"));
	assert_true(has("192.0.2.7", "192.0.2.7"));
	assert_false(has("192.0.2.7", "192.0.2.6"));
	assert_true(has("192.0.2.4/30", "192.0.2.7"));
	assert_false(has("192.0.2.4/30", "192.0.2.8"));
	/* A client of version 4 is the same over a socket of version 6. */
	assert_true(has("192.0.2.7", "::ffff:192.0.2.7"));
	assert_true(has("0.0.0.0/0", "1.2.3.4"));
	assert_false(has("0.0.0.0/0", "2001:db8::1"));
	assert_true(has("::/0", "2001:db8::1"));
	assert_true(has("2001:db8::/32", "2001:db8:1::2"));
	assert_false(has("2001:db8::/32", "2001:db9::"));
	static const char *const bad[] = {
		"",           "x",          "1.2.3",        "1.2.3.4/33", "10.0.0.1/8",
		"::1/129",    "1.2.3.4/",   "/8",           "[::1]",      "1.2.3.4:80",
		"1.2.3.4/ 8", "1.2.3.4/-1", "1.2.3.4/0008", "::1/64",     "01.2.3.4"};
	struct coop_address_range parsed;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(coop_network_parse(bad[i], &parsed), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(authorities),
		cmocka_unit_test(origins),
		cmocka_unit_test(networks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
