/* The audit: the chain goes on over restarts and files, and over disks that are full. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "auditing.h"
#include "base/mem.h"

static void line_format(void **state)
{
	struct coop_audit *audit = open_audit();
	uint8_t hash[COOP_HASH_SIZE];
	char text[COOP_HASH_TEXT];
	static const char front[] =
		"{\"seq\":1,\"at\":\"2026-01-02T03:04:05.678Z\",\"kind\":\"x\",\"prev\":\""
		"0000000000000000000000000000000000000000000000000000000000000000\"";

	assert_int_equal(add(audit, "\"kind\":\"x\""), 1);
	char *line = folder_read("audit.log", NULL);
	assert_memory_equal(line, front, sizeof front - 1);
	assert_int_equal(coop_hash(front, sizeof front - 1, hash), 0);
	coop_hash_format(hash, text);
	assert_memory_equal(line + sizeof front - 1, ",\"hash\":\"", 9);
	assert_memory_equal(line + sizeof front + 8, text, 64);
	assert_string_equal(line + sizeof front + 72, "\"}\n");
	free(line);
	struct coop_audit_anchor anchor = anchor_of(audit);
	assert_int_equal(anchor.first, 1);
	assert_int_equal(anchor.last, 1);
	assert_string_equal(anchor.first_prev, coop_audit_line_origin);
	assert_string_equal(anchor.last_hash, text);
	assert_int_equal(add(audit, ""), 2);
	uint64_t seq = 77;
	assert_int_equal(coop_audit_append(audit, AT, "\"a\":\n1", &seq), -EINVAL);
	assert_int_equal(seq, 77);
	coop_audit_close(audit);
	coop_audit_close(NULL);
}

static void goes_on(void **state)
{
	struct coop_audit *audit = open_audit();
	struct stat st;

	assert_int_equal(anchor_of(audit).first, 0);
	assert_int_equal(anchor_of(audit).last, 0);
	assert_good(&(struct coop_audit_anchor){0});
	assert_int_equal(stat(folder_path("audit.log"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	coop_audit_close(audit);
	for (unsigned i = 0; i < 5; i++) {
		audit = open_audit();
		assert_int_equal(anchor_of(audit).last, 3 * i);
		add_many(audit, 3);
		coop_audit_close(audit);
	}
	audit = open_audit();
	struct coop_audit_anchor anchor = anchor_of(audit);
	coop_audit_close(audit);
	assert_int_equal(anchor.first, 1);
	assert_int_equal(anchor.last, 15);
	assert_good(&anchor);
	struct coop_audit_report report = verify(NULL, false);
	assert_true(report.good);
	assert_int_equal(report.lines, 15);
	assert_int_equal(report.files, 1);
	assert_int_equal(report.first, 1);
	assert_int_equal(report.last, 15);
}

/* Lines longer than a step of reading, and the longest that are taken. */
static void long_lines(void **state)
{
	struct coop_audit *audit = open_with(UINT64_MAX, 8);
	char *members = malloc(COOP_AUDIT_LINE_MAX + 2);
	uint64_t seq;

	assert_non_null(members);
	memset(members, 'x', COOP_AUDIT_LINE_MAX + 1);
	memcpy(members, "\"a\":\"", 5);
	static const size_t sizes[] = {400000, 65300, 65536, 131072, 10, COOP_AUDIT_LINE_MAX - 300};
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		members[sizes[i]] = '"';
		members[sizes[i] + 1] = 0;
		assert_int_equal(add(audit, members), i + 1);
		coop_audit_close(audit);
		audit = open_with(UINT64_MAX, 8);
		assert_int_equal(anchor_of(audit).last, i + 1);
		members[sizes[i]] = members[sizes[i] + 1] = 'x';
	}
	members[COOP_AUDIT_LINE_MAX] = '"';
	members[COOP_AUDIT_LINE_MAX + 1] = 0;
	assert_int_equal(coop_audit_append(audit, AT, members, &seq), -EMSGSIZE);
	struct coop_audit_anchor anchor = anchor_of(audit);
	assert_good(&anchor);
	struct coop_buf out = {0};
	assert_int_equal(coop_audit_tail(folder, 100, &out), 0);
	assert_true(coop_buf_size(&out) > COOP_AUDIT_LINE_MAX);
	coop_buf_clear(&out);
	coop_audit_close(audit);
	free(members);
}

static void anchor_text(void **state)
{
	struct coop_audit_anchor anchor = ten(), back = {0};
	char text[COOP_AUDIT_ANCHOR_TEXT];

	coop_audit_anchor_format(&anchor, text);
	assert_int_equal(coop_audit_anchor_parse(text, &back), 0);
	assert_memory_equal(&anchor, &back, sizeof back);
	anchor.first = anchor.last = UINT64_MAX;
	coop_audit_anchor_format(&anchor, text);
	assert_int_equal(coop_audit_anchor_parse(text, &back), 0);
	assert_int_equal(back.last, UINT64_MAX);
	text[strlen(text) - 1] = 0;
	assert_int_equal(coop_audit_anchor_parse(text, &back), -EBADMSG);
	assert_int_equal(coop_audit_anchor_parse("", &back), -EBADMSG);
	assert_int_equal(coop_audit_anchor_parse("1 2 3 4", &back), -EBADMSG);
	coop_audit_anchor_format(&anchor, text);
	memmove(text + 1, text, strlen(text) + 1);
	text[0] = ' ';
	assert_int_equal(coop_audit_anchor_parse(text, &back), -EBADMSG);
}

static void rotates(void **state)
{
	struct coop_audit *audit = open_with(1000, 1000);
	struct coop_audit_report report;

	add_many(audit, 50);
	struct coop_audit_anchor anchor = anchor_of(audit);
	report = verify(&anchor, false);
	assert_true(report.good);
	assert_true(report.files > 10);
	assert_int_equal(report.lines, 50);
	assert_true(folder_has("audit-00000000000000000001.log"));

	/* Fewer are kept from the next line on; the anchor knows where the chain begins now. */
	coop_audit_limit(audit, 1000, 3);
	add_many(audit, 1);
	anchor = anchor_of(audit);
	report = verify(&anchor, false);
	assert_true(report.good);
	assert_int_equal(report.files, 4);
	assert_true(anchor.first > 30);
	assert_int_equal(report.first, anchor.first);
	coop_audit_close(audit);

	audit = open_with(1000, 3);
	struct coop_audit_anchor again = anchor_of(audit);
	assert_memory_equal(&anchor, &again, sizeof anchor);
	add_many(audit, 20);
	anchor = anchor_of(audit);
	assert_good(&anchor);
	/* None at all are kept: the last line is always there. */
	coop_audit_limit(audit, 1, 0);
	add_many(audit, 5);
	anchor = anchor_of(audit);
	assert_int_equal(anchor.first, 76);
	assert_int_equal(anchor.last, 76);
	assert_int_equal(verify(&anchor, false).files, 1);
	assert_good(&anchor);
	coop_audit_close(audit);
}

static void segment_names(void **state)
{
	static const char *const bad[] = {"audit.log",
					  "audit-1.log",
					  "audit-00000000000000000001",
					  "audit-00000000000000000001.log.gz",
					  "audit-00000000000000000001.0.log",
					  "audit-99999999999999999999.log",
					  "audit--0000000000000000001.log",
					  "audit-00000000000000000001.01.log",
					  ""};
	struct coop_audit_segment segment;
	char name[COOP_AUDIT_NAME];

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(coop_audit_segment_parse(bad[i], &segment), -EBADMSG);
	segment = (struct coop_audit_segment){.seq = UINT64_MAX, .again = 3};
	coop_audit_segment_name(&segment, name);
	segment = (struct coop_audit_segment){0};
	assert_int_equal(coop_audit_segment_parse(name, &segment), 0);
	assert_true(segment.seq == UINT64_MAX && segment.again == 3);
}

/* "50 49 48": numbers of the lines that the tail gives, in its order; "-" for what is none. */
static const char *tail(uint64_t count)
{
	static char text[4096];
	struct coop_buf out = {0};

	text[0] = 0;
	assert_int_equal(coop_audit_tail(folder, count, &out), 0);
	assert_int_equal(coop_buf_append(&out, "", 1), 0);
	char *rest = (char *)coop_buf_front(&out), *line;
	while ((line = strsep(&rest, "\n")) && *line) {
		unsigned long long seq;
		size_t used = strlen(text);
		if (sscanf(line, "{\"seq\":%llu,", &seq) == 1)
			(void)sprintf(text + used, "%s%llu", used ? " " : "", seq);
		else
			(void)sprintf(text + used, "%s-", used ? " " : "");
	}
	assert_null(rest); /* nothing behind the last line */
	coop_buf_clear(&out);
	return text;
}

static void tails(void **state)
{
	struct coop_audit *audit = open_with(1000, 1000);

	assert_string_equal(tail(5), "");
	add_many(audit, 12);
	assert_string_equal(tail(1), "12");
	assert_string_equal(tail(5), "8 9 10 11 12");
	assert_string_equal(tail(11), "2 3 4 5 6 7 8 9 10 11 12");
	assert_string_equal(tail(10000), "1 2 3 4 5 6 7 8 9 10 11 12");
	assert_string_equal(tail(0), "");
	/* What is no JSON would spoil the answer. */
	int fd = open(folder_path("audit.log"), O_WRONLY | O_APPEND | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "x\n\n{\"a\":1}\n{\"a\":", 17), 17);
	assert_int_equal(close(fd), 0);
	assert_string_equal(tail(5), "11 12 - - -");
	coop_audit_close(audit);
}

static void tail_is_bounded(void **state)
{
	struct coop_audit *audit = open_with(1 << 20, 1000);
	static char members[100000];
	struct coop_buf out = {0};

	memset(members, 'x', sizeof members - 1);
	memcpy(members, "\"a\":\"", 5);
	members[sizeof members - 2] = '"';
	for (int i = 0; i < 60; i++)
		(void)add(audit, members);
	assert_int_equal(coop_audit_tail(folder, 10000, &out), 0);
	assert_in_range(coop_buf_size(&out), 4000000, 4 << 20);
	coop_buf_clear(&out);
	coop_audit_close(audit);
}

static void limit_files(rlim_t bytes, struct rlimit *ret_old)
{
	(void)signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, ret_old), 0);
	const struct rlimit small = {.rlim_cur = bytes, .rlim_max = ret_old->rlim_max};
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
}

static void full_disk(void **state)
{
	struct coop_audit *audit = open_audit();
	struct rlimit old;
	uint64_t seq = 77;
	size_t before, after;

	add_many(audit, 10);
	char *text = folder_read("audit.log", &before);
	limit_files(before + 20, &old); /* a short write; below: none at all */
	struct coop_audit_anchor anchor = anchor_of(audit);
	assert_int_equal(coop_audit_append(audit, AT, "\"kind\":\"x\"", &seq), -ENOSPC);
	struct coop_audit_anchor same = anchor_of(audit);
	assert_memory_equal(&anchor, &same, sizeof anchor);
	assert_int_equal(seq, 77);
	char *now = folder_read("audit.log", &after);
	assert_string_equal(text, now);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	limit_files(before, &old);
	assert_int_equal(coop_audit_append(audit, AT, "\"kind\":\"x\"", &seq), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_good(&anchor);
	assert_int_equal(add(audit, "\"kind\":\"x\""), 11);
	anchor = anchor_of(audit);
	assert_good(&anchor);
	coop_audit_close(audit);
	free(text);
	free(now);
}

/* The line that tells of damage cannot be written at once: it comes before the next one. */
static void damage_on_a_full_disk(void **state)
{
	struct rlimit old;
	uint64_t seq;

	(void)ten();
	assert_int_equal(truncate(folder_path("audit.log"), 2000), 0);
	limit_files(10, &old);
	struct coop_audit *audit = open_audit();
	uint64_t last = anchor_of(audit).last;
	assert_int_equal(coop_audit_append(audit, AT, "", &seq), -ENOSPC);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_int_equal(add(audit, ""), last + 2);
	char *text = folder_read("audit.log", NULL);
	assert_non_null(strstr(text, "\"kind\":\"damage\""));
	free(text);
	coop_audit_close(audit);
}

static int try_read_only(void)
{
	struct coop_audit *audit = NULL;
	struct coop_err err = {0};
	uint64_t seq;

	if (chmod(folder, 0500) < 0)
		return 1;
	if (coop_audit_open(folder, 1000, 3, &audit, &err) != -EACCES || audit ||
	    !strstr(err.message, "/audit.log"))
		return 2;
	if (chmod(folder, 0700) < 0 || coop_audit_open(folder, 1, 3, &audit, &err) < 0)
		return 3;
	/* What cannot be renamed is written on. */
	if (chmod(folder, 0500) < 0)
		return 4;
	for (int i = 0; i < 5; i++)
		if (coop_audit_append(audit, AT, "", &seq) < 0)
			return 5;
	coop_audit_close(audit);
	return seq == 5 ? 0 : 6;
}

static void read_only_folder(void **state)
{
	folder_as_user(try_read_only);
	assert_int_equal(verify(NULL, false).lines, 5);
	assert_good(NULL);
}

static void not_a_file(void **state)
{
	struct coop_audit *audit = NULL;
	struct coop_err err = {0};
	struct coop_audit_report report;
	struct coop_buf out = {0};

	assert_int_equal(symlink("elsewhere", folder_path("audit.log")), 0);
	assert_int_equal(coop_audit_open(folder, 1000, 3, &audit, &err), -ELOOP);
	assert_non_null(strstr(err.message, "link"));
	assert_false(folder_has("elsewhere"));
	assert_int_equal(coop_audit_verify(folder, NULL, false, &report), -ELOOP);
	assert_int_equal(coop_audit_tail(folder, 1, &out), -ELOOP);
	assert_int_equal(unlink(folder_path("audit.log")), 0);
	assert_int_equal(mkfifo(folder_path("audit.log"), 0600), 0);
	assert_int_equal(coop_audit_open(folder, 1000, 3, &audit, &err), -EINVAL);
	assert_int_equal(coop_audit_open("/nonexistent/coop", 1, 1, &audit, &err), -ENOENT);
	assert_int_equal(coop_audit_verify("/nonexistent/coop", NULL, false, &report), -ENOENT);
	assert_null(audit);
}

static void no_memory(void **state)
{
	struct coop_err err = {0};
	char spec[32];
	int failures = 0;

	(void)ten();
	for (int i = 1;; i++) {
		struct coop_audit *audit = NULL;
		uint64_t seq;
		(void)snprintf(spec, sizeof spec, "alloc:%d", i);
		(void)setenv("COOP_FAULT", spec, 1);
		coop_mem_init();
		unsigned long before = coop_mem_failures();
		int r = coop_audit_open(folder, 1000, 3, &audit, &err);
		if (r == 0)
			r = coop_audit_append(audit, AT, "\"a\":1", &seq);
		bool failed = coop_mem_failures() > before;
		(void)unsetenv("COOP_FAULT");
		coop_mem_init();
		assert_true(r == 0 || r == -ENOMEM);
		assert_true(r == 0 || failed);
		failures += r < 0;
		if (audit) {
			(void)add(audit, "\"a\":1");
			struct coop_audit_anchor anchor = anchor_of(audit);
			assert_good(&anchor);
		}
		coop_audit_close(audit);
		if (!failed)
			break;
	}
	assert_true(failures > 2);
}

static void parses_lines(void **state)
{
	struct coop_audit_line line;
	struct coop_buf out = {0};
	char hash[COOP_HASH_TEXT];

	assert_int_equal(coop_audit_line_write(&out, UINT64_MAX, AT, "\"a\":1",
					       coop_audit_line_origin, hash),
			 0);
	char *text = (char *)coop_buf_front(&out);
	size_t size = coop_buf_size(&out) - 1;
	assert_int_equal(coop_audit_line_parse(text, size, &line), 0);
	assert_true(line.seq == UINT64_MAX);
	assert_string_equal(line.hash, hash);
	assert_string_equal(line.prev, coop_audit_line_origin);
	assert_int_equal(coop_audit_line_true(text, &line), 1);
	/* Any byte changed, and any end cut off. */
	for (size_t i = 0; i < size; i++) {
		assert_int_equal(coop_audit_line_parse(text, i, &line), -EBADMSG);
		text[i] ^= 1;
		assert_true(coop_audit_line_parse(text, size, &line) < 0 ||
			    coop_audit_line_true(text, &line) == 0);
		text[i] ^= 1;
	}
	coop_buf_clear(&out);
}

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, folder_make, folder_remove)
	const struct CMUnitTest tests[] = {
		IN_FOLDER(line_format),
		IN_FOLDER(goes_on),
		IN_FOLDER(long_lines),
		IN_FOLDER(anchor_text),
		IN_FOLDER(rotates),
		IN_FOLDER(segment_names),
		IN_FOLDER(tails),
		IN_FOLDER(tail_is_bounded),
		IN_FOLDER(full_disk),
		IN_FOLDER(damage_on_a_full_disk),
		IN_FOLDER(read_only_folder),
		IN_FOLDER(not_a_file),
		IN_FOLDER(no_memory),
		IN_FOLDER(parses_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
