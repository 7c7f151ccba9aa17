/* Whatever is done to the files of the audit is found, and said where it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "auditing.h"

/* Where line i begins, from 1; behind the last line: where the text ends. */
static char *line_at(char *text, unsigned i)
{
	while (--i)
		text = strchr(text, '\n') + 1;
	return text;
}

static void rewrite(const char *text)
{
	folder_write("audit.log", text, strlen(text), 0600);
}

static void changed(void **state)
{
	struct coop_audit_anchor anchor = ten();
	char *text = folder_read("audit.log", NULL);
	char *line = line_at(text, 4);

	/* Inside of it; then in its own hash. */
	memcpy(strstr(line, "true"), "rm!!", 4);
	rewrite(text);
	assert_fault(&anchor, "audit.log", 4, "line 4 was changed");
	memcpy(strstr(line, "rm!!"), "true", 4);
	char *hash = strstr(line, "\"hash\":\"") + 8;
	*hash = *hash == 'a' ? 'b' : 'a';
	rewrite(text);
	assert_fault(&anchor, "audit.log", 4, "line 4 was changed");
	free(text);
}

/* Somebody who changes a line and reckons its hash anew, or all hashes up to the end. */
static void changed_with_hashes(void **state)
{
	struct coop_audit_anchor anchor = ten();
	char *text = folder_read("audit.log", NULL);
	struct coop_audit_line line;
	struct coop_buf out = {0};
	char hash[COOP_HASH_TEXT];
	char *fourth = line_at(text, 4), *fifth = line_at(text, 5);

	assert_int_equal(coop_audit_line_parse(fourth, (size_t)(fifth - fourth - 1), &line), 0);
	assert_int_equal(coop_audit_line_true(fourth, &line), 1);
	assert_int_equal(coop_buf_append(&out, text, (size_t)(fourth - text)), 0);
	assert_int_equal(coop_audit_line_write(&out, 4, AT, "\"kind\":\"none\"", line.prev, hash),
			 0);
	size_t one = coop_buf_size(&out);
	assert_int_equal(coop_buf_append(&out, fifth, strlen(fifth)), 0);
	folder_write("audit.log", coop_buf_front(&out), coop_buf_size(&out), 0600);
	assert_fault(&anchor, "audit.log", 5, "seq 5 does not follow from the line before it");

	out.tail = out.head + one;
	for (uint64_t seq = 5; seq <= 10; seq++) {
		char prev[COOP_HASH_TEXT];
		memcpy(prev, hash, sizeof prev);
		assert_int_equal(
			coop_audit_line_write(&out, seq, AT, "\"kind\":\"none\"", prev, hash), 0);
	}
	folder_write("audit.log", coop_buf_front(&out), coop_buf_size(&out), 0600);
	assert_good(NULL);
	assert_fault(&anchor, "audit.log", 10, "seq 10 is not the line that was written");
	coop_buf_clear(&out);
	free(text);
}

static void removed(void **state)
{
	struct coop_audit_anchor anchor = ten();
	char *text = folder_read("audit.log", NULL), *whole = strdup(text);

	memmove(line_at(text, 4), line_at(text, 6), strlen(line_at(text, 6)) + 1);
	rewrite(text);
	assert_fault(&anchor, "audit.log", 4, "lines are missing before seq 6");
	/* At the ends only the anchor shows it. */
	rewrite(line_at(whole, 3));
	assert_good(NULL);
	assert_fault(&anchor, "audit.log", 1, "lines are missing before seq 3: the first was 1");
	struct coop_audit_anchor end = anchor;
	end.first = 0;
	assert_good(&end);
	*line_at(whole, 9) = 0;
	rewrite(whole);
	assert_good(NULL);
	assert_fault(&anchor, "audit.log", 0, "lines are missing after seq 8: the last was 10");
	assert_false(verify(&anchor, true).good);
	rewrite("");
	assert_fault(&anchor, "audit.log", 0, "all lines are missing: the last was 10");
	assert_int_equal(unlink(folder_path("audit.log")), 0);
	assert_fault(&anchor, "audit.log", 0, "all lines are missing: the last was 10");
	free(whole);
	free(text);
}

static void moved(void **state)
{
	struct coop_audit_anchor anchor = ten();
	char *text = folder_read("audit.log", NULL), *twice = malloc(2 * strlen(text));
	char *third = line_at(text, 3), *fourth = line_at(text, 4), *fifth = line_at(text, 5);

	assert_non_null(twice);
	/* Exchanged. */
	(void)sprintf(twice, "%.*s%.*s%.*s%s", (int)(third - text), text, (int)(fifth - fourth),
		      fourth, (int)(fourth - third), third, fifth);
	rewrite(twice);
	assert_fault(&anchor, "audit.log", 3, "lines are missing before seq 4");
	/* Twice. */
	(void)sprintf(twice, "%.*s%s", (int)(fourth - text), text, third);
	rewrite(twice);
	assert_fault(&anchor, "audit.log", 4, "seq 3 stands behind seq 3");
	/* Put in: nonsense, and an empty line. */
	(void)sprintf(twice, "%.*s{\"seq\":4}\n%s", (int)(fourth - text), text, fourth);
	rewrite(twice);
	assert_fault(&anchor, "audit.log", 4, "line 4 is not a line of the audit");
	(void)sprintf(twice, "%.*s\n%s", (int)(fourth - text), text, fourth);
	rewrite(twice);
	assert_fault(&anchor, "audit.log", 4, "line 4 is not a line of the audit");
	/* Added at the end. */
	struct coop_buf more = {0};
	char hash[COOP_HASH_TEXT];
	assert_int_equal(coop_audit_line_write(&more, 11, AT, "", anchor.last_hash, hash), 0);
	(void)sprintf(twice, "%s%.*s", text, (int)coop_buf_size(&more), coop_buf_front(&more));
	rewrite(twice);
	assert_fault(&anchor, "audit.log", 0, "there are lines after seq 10, which was the last");
	assert_true(verify(&anchor, true).good);
	/* Half a line that is being written. */
	twice[strlen(twice) - 20] = 0;
	rewrite(twice);
	assert_true(verify(&anchor, true).good);
	assert_fault(&anchor, "audit.log", 11, "line 11 is torn: it has no end");
	coop_buf_clear(&more);
	free(twice);
	free(text);
}

static void torn_tail(void **state)
{
	struct coop_audit_anchor anchor = ten();
	char *text = folder_read("audit.log", NULL);
	static const char segment[] = "audit-00000000000000000001.log";

	/* Cut in the middle of the last line, or before its newline alone. */
	for (size_t less = 1; less < 100; less += 98) {
		size_t size = strlen(text) - less;
		folder_write("audit.log", text, size, 0600);
		struct coop_audit *audit = open_audit();
		char *kept = folder_read(segment, NULL), *now = folder_read("audit.log", NULL);
		assert_int_equal(strlen(kept), size);
		assert_memory_equal(kept, text, size);
		assert_non_null(strstr(now, "{\"seq\":10,"));
		assert_non_null(strstr(now,
				       "\"kind\":\"damage\",\"file\":\"audit-00000000000000000001"
				       ".log\",\"lines\":1,"));
		assert_int_equal(add(audit, "\"kind\":\"x\""), 11);
		anchor = anchor_of(audit);
		coop_audit_close(audit);
		/* The chain is whole, the fault is still told. */
		assert_fault(&anchor, segment, 10, "line 10 is torn: it has no end");
		assert_int_equal(verify(&anchor, false).last, 11);
		audit = open_audit();
		assert_int_equal(add(audit, "\"kind\":\"x\""), 12);
		coop_audit_close(audit);
		assert_int_equal(unlink(folder_path(segment)), 0);
		free(kept);
		free(now);
	}
	free(text);
}

/* Files of nothing but garbage: none is overwritten, and the chain goes on from what was before. */
static void garbage(void **state)
{
	static const char *const names[] = {
		"audit-00000000000000000001.log", "audit-00000000000000000001.1.log",
		"audit-00000000000000000002.log", "audit-00000000000000000002.1.log",
		"audit-00000000000000000003.log"};
	struct coop_audit_anchor anchor = {0};
	char bytes[3000];

	memset(bytes, 'g', sizeof bytes);
	for (unsigned i = 0; i < 3; i++) {
		folder_write("audit.log", bytes, sizeof bytes, 0600);
		struct coop_audit *audit = open_with(1, 100);
		assert_int_equal(anchor_of(audit).last, i + 1); /* the line that tells of it */
		assert_int_equal(add(audit, "\"kind\":\"x\""), i + 2);
		anchor = anchor_of(audit);
		coop_audit_close(audit);
	}
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		assert_true(folder_has(names[i]));
	assert_int_equal(anchor.first, 1);
	assert_fault(&anchor, names[0], 1, "line 1 is torn: it has no end");
	/* Without the garbage nothing is wrong. */
	for (size_t i = 0; i < sizeof names / sizeof *names; i += 2)
		assert_int_equal(unlink(folder_path(names[i])), 0);
	assert_good(&anchor);
}

static void missing_segment(void **state)
{
	struct coop_audit *audit = open_with(1000, 1000);
	struct coop_audit_segments segments;
	char name[COOP_AUDIT_NAME], next[COOP_AUDIT_NAME], fault[64];

	add_many(audit, 50);
	struct coop_audit_anchor anchor = anchor_of(audit);
	coop_audit_close(audit);
	int dir_fd = coop_audit_dir(folder);
	assert_int_equal(coop_audit_segments_read(dir_fd, &segments), 0);
	assert_int_equal(close(dir_fd), 0);
	assert_true(segments.count > 4);
	coop_audit_segment_name(&segments.list[2], name);
	coop_audit_segment_name(&segments.list[3], next);
	assert_int_equal(rename(folder_path(name), folder_path("away")), 0);
	(void)snprintf(fault, sizeof fault, "lines are missing before seq %llu",
		       (unsigned long long)segments.list[3].seq);
	assert_fault(&anchor, next, 1, fault);
	assert_int_equal(rename(folder_path("away"), folder_path(name)), 0);
	assert_good(&anchor);
	/* Under another name. */
	assert_int_equal(rename(folder_path(name), folder_path("audit-00000000000000000999.log")),
			 0);
	assert_fault(&anchor, next, 1, fault);
	assert_int_equal(rename(folder_path("audit-00000000000000000999.log"), folder_path(name)),
			 0);
	/* The oldest, and the newest. */
	coop_audit_segment_name(&segments.list[0], name);
	assert_int_equal(rename(folder_path(name), folder_path("away")), 0);
	assert_false(verify(&anchor, true).good);
	assert_true(verify(NULL, true).good);
	assert_int_equal(rename(folder_path("away"), folder_path(name)), 0);
	assert_int_equal(unlink(folder_path("audit.log")), 0);
	assert_false(verify(&anchor, true).good);
	/* Without the current file it goes on from the newest segment. */
	audit = open_with(1000, 1000);
	assert_int_equal(anchor_of(audit).first, 1);
	assert_true(anchor_of(audit).last > 40 && anchor_of(audit).last < 50);
	add_many(audit, 1);
	coop_audit_close(audit);
	assert_good(NULL);
	free(segments.list);
}

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, folder_make, folder_remove)
	const struct CMUnitTest tests[] = {
		IN_FOLDER(changed),         IN_FOLDER(changed_with_hashes), IN_FOLDER(removed),
		IN_FOLDER(moved),           IN_FOLDER(torn_tail),           IN_FOLDER(garbage),
		IN_FOLDER(missing_segment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
