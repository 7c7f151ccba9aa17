/* Tables of shell lines and the labels that must be found in them, neither less nor more. */
#ifndef COOP_TESTS_POLICY_ROWS_H
#define COOP_TESTS_POLICY_ROWS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "policy/policy.h"

#define FREE NULL
#define WORKSPACE "/home/u/proj"

/* Labels as letters; ! is the built-in list of what no policy allows. */
static const char letters[] = "DWCRXSPFKO";

struct row {
	const char *line;
	const char *labels;
};

static void labels_of(const char *const *argv, const char *line, const char *const *roots,
		      char *ret_text)
{
	struct coop_policy_command command = {.argv = argv,
					      .shell_command = line,
					      .display = line,
					      .cwd = WORKSPACE,
					      .home = "/home/u",
					      .path = "/usr/bin:/bin",
					      .workspace = roots};
	struct coop_verdict verdict;
	size_t used = 0;

	assert_int_equal(coop_policy_decide(NULL, 0, &command, &verdict), 0);
	if (verdict.action == COOP_ACTION_DENY)
		ret_text[used++] = '!';
	for (size_t i = 0; letters[i]; i++) {
		if (verdict.labels & 1u << i)
			ret_text[used++] = letters[i];
	}
	ret_text[used] = '\0';
}

static void check_rows(const struct row *rows, size_t count, const char *const *roots)
{
	size_t wrong = 0;

	for (size_t i = 0; i < count; i++) {
		const char *argv[] = {"/bin/bash", "-c", rows[i].line, NULL};
		char found[32];

		labels_of(argv, rows[i].line, roots, found);
		if (strcmp(found, rows[i].labels) != 0) {
			print_error("%s\n  expected [%s], found [%s]\n", rows[i].line,
				    rows[i].labels, found);
			wrong++;
		}
	}
	assert_int_equal(wrong, 0);
}

#define CHECK(rows, roots) check_rows(rows, sizeof(rows) / sizeof *(rows), roots)

#endif
