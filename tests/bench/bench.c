#include "bench.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

uint64_t bench_now(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void bench_fail(const char *what, const char *why)
{
	fprintf(stderr, "bench: %s%s%s\n", what, why ? ": " : "", why ? why : "");
	exit(1);
}

void bench_fail_errno(const char *what)
{
	bench_fail(what, strerror(errno));
}

size_t bench_number(const char *text)
{
	char *end;
	unsigned long long number = strtoull(text, &end, 10);

	if (!number || *end)
		bench_fail(text, "not a number above 0");
	return (size_t)number;
}

struct coop *bench_connect(void)
{
	return bench_connect_as(NULL);
}

struct coop *bench_connect_as(const char *token)
{
	struct coop_options options = {.no_start = true, .token = token};
	struct coop_error error;
	struct coop *coop;

	if (coop_open(&options, &coop, &error) < 0)
		bench_fail("connect", error.message);
	return coop;
}

void bench_id(const char *json, char ret_id[COOP_ID_SIZE])
{
	static const char key[] = "\"id\":\"";
	const char *at = strstr(json, key);
	size_t size = at ? strcspn(at + sizeof key - 1, "\"") : COOP_ID_SIZE;

	if (size >= COOP_ID_SIZE)
		bench_fail("no id in the answer", json);
	memcpy(ret_id, at + sizeof key - 1, size);
	ret_id[size] = 0;
}

void bench_check_end(const char *json)
{
	if (!strstr(json, "\"status\":\"exited\"") || !strstr(json, "\"exit_code\":0,"))
		bench_fail("did not exit with 0", json);
}

/* "enforced" with a value is there once: what is said of single protections is their "state". */
void bench_check_confined(const char *json)
{
	const char *sandbox = strstr(json, "\"sandbox\":{");

	if (!sandbox || !strstr(sandbox, "\"enforced\":true") ||
	    !strstr(sandbox, "\"kind\":\"namespaces\"") ||
	    !strstr(sandbox, "\"profile\":\"workspace-write\""))
		bench_fail("is not confined as it should be", sandbox ? sandbox : json);
}

uint64_t bench_json_number(const char *json, const char *name)
{
	char key[64];
	uint64_t number;

	(void)snprintf(key, sizeof key, "\"%s\":", name);
	const char *at = strstr(json, key);
	if (!at || sscanf(at + strlen(key), "%" SCNu64, &number) != 1)
		bench_fail("no such number in the answer", name);
	return number;
}

/* Arguments of the benchmarks are plain words: nothing in them needs escaping. */
char *bench_spawn_args(char *const *argv, const char *more)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		bench_fail_errno("open_memstream");
	fputs("{\"cwd\":\"/\",\"argv\":[", out);
	for (size_t i = 0; argv[i]; i++) {
		if (strpbrk(argv[i], "\"\\\n"))
			bench_fail("argument needs escaping", argv[i]);
		fprintf(out, "%s\"%s\"", i ? "," : "", argv[i]);
	}
	fprintf(out, "]%s}", more);
	if (fclose(out))
		bench_fail_errno("open_memstream");
	return text;
}
