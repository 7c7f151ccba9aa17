/* The backlog: lanes that wrap, are full, are found again, and are damaged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/vfs.h>

#include <cmocka.h>

#include "auditing.h"
#include "base/mem.h"
#include "records/audit_chain.h"
#include "records/backlog.h"
#include "records/row.h"

static struct coop_backlog *open_at(const char *socket)
{
	struct coop_backlog *backlog = NULL;

	assert_int_equal(coop_backlog_open(socket, &backlog), 0);
	return backlog;
}

/* How many entries there are from the first one on; each has its number's last byte all over. */
static unsigned count(const struct coop_backlog *backlog, enum coop_lane lane, uint64_t first)
{
	struct coop_backlog_entry entry;
	uint64_t at = 0, end = coop_backlog_end(backlog, lane);
	unsigned found = 0;
	int r;

	while ((r = coop_backlog_next(backlog, lane, &at, end, &entry)) > 0) {
		assert_int_equal(entry.number, first + found++);
		for (size_t i = 0; i < entry.size; i++)
			assert_int_equal(entry.bytes[i], (uint8_t)entry.number);
	}
	assert_int_equal(r, 0);
	return found;
}

static int put(struct coop_backlog *backlog, uint64_t number, size_t size, size_t spare)
{
	uint8_t *bytes = malloc(size + 1);

	assert_non_null(bytes);
	memset(bytes, (int)(uint8_t)number, size);
	int r = coop_backlog_put(backlog, COOP_LANE_ROWS, number, bytes, size, spare);
	free(bytes);
	return r;
}

/* Positions grow through many times the lane; all that was put and not passed is there. */
static void goes_round(void **state)
{
	struct coop_backlog *backlog = open_at(NULL);
	uint64_t first = 1, next = 1;

	assert_string_equal(coop_backlog_path(backlog), "");
	for (unsigned i = 0; i < 2000; i++) {
		struct coop_backlog_entry entry;
		uint64_t at = 0;
		assert_int_equal(put(backlog, next++, (i * 7919u) % 60000, 0), 0);
		if (i % 3 == 0)
			assert_int_equal(put(backlog, next++, i % 17, 0), 0);
		while (coop_backlog_waiting(backlog, COOP_LANE_ROWS) > COOP_BACKLOG_BYTES / 2) {
			assert_int_equal(coop_backlog_next(
						 backlog, COOP_LANE_ROWS, &at,
						 coop_backlog_end(backlog, COOP_LANE_ROWS), &entry),
					 1);
			coop_backlog_advance(backlog, COOP_LANE_ROWS, entry.end);
			first++;
		}
		if (i % 97 == 0)
			assert_int_equal(count(backlog, COOP_LANE_ROWS, first), next - first);
	}
	assert_int_equal(count(backlog, COOP_LANE_AUDIT, 1), 0);
	coop_backlog_advance(backlog, COOP_LANE_ROWS, coop_backlog_end(backlog, COOP_LANE_ROWS));
	assert_int_equal(coop_backlog_waiting(backlog, COOP_LANE_ROWS), 0);
	coop_backlog_close(backlog);
	coop_backlog_close(NULL);
}

/* What does not fit is refused and changes nothing; some may be kept free for others. */
static void is_bounded(void **state)
{
	struct coop_backlog *backlog = open_at(NULL);
	unsigned taken = 0, more = 0;

	assert_int_equal(put(backlog, 1, COOP_BACKLOG_BYTES / 2, 0), -ENOBUFS);
	while (put(backlog, 1 + taken, 9000, COOP_BACKLOG_BYTES / 2) == 0)
		taken++;
	assert_in_range(taken, 220, 240);
	while (put(backlog, 1 + taken + more, 9000, 0) == 0)
		more++;
	assert_in_range(more, 220, 240);
	assert_int_equal(count(backlog, COOP_LANE_ROWS, 1), taken + more);
	struct coop_backlog_entry entry;
	uint64_t at = 0, end = coop_backlog_end(backlog, COOP_LANE_ROWS);
	assert_int_equal(coop_backlog_next(backlog, COOP_LANE_ROWS, &at, end, &entry), 1);
	coop_backlog_advance(backlog, COOP_LANE_ROWS, entry.end);
	assert_int_equal(put(backlog, 1 + taken + more, 9000, 0), 0);
	assert_int_equal(count(backlog, COOP_LANE_ROWS, 2), taken + more);
	coop_backlog_close(backlog);
}

/* In a file on a tmpfs it is there for the next one; an empty one goes. */
static void stays_in_a_file(void **state)
{
	char socket[80] = "/dev/shm/coop-test-XXXXXX", path[96];
	struct statfs fs;
	struct stat st;

	if (statfs("/dev/shm", &fs) < 0 || fs.f_type != 0x01021994 || !mkdtemp(socket)) {
		print_message("skipped: /dev/shm is no tmpfs that can be written\n");
		return;
	}
	char dir[64];
	(void)snprintf(dir, sizeof dir, "%.60s", socket);
	(void)snprintf(socket, sizeof socket, "%s/sock", dir);
	(void)snprintf(path, sizeof path, "%s.backlog", socket);
	struct coop_backlog *backlog = open_at(socket);
	assert_string_equal(coop_backlog_path(backlog), path);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	for (uint64_t i = 1; i <= 100; i++)
		assert_int_equal(put(backlog, i, 1000, 0), 0);
	/* Only what was touched costs memory. */
	assert_int_equal(stat(path, &st), 0);
	assert_in_range(st.st_blocks * 512, 100000, 300000);
	coop_backlog_close(backlog);
	backlog = open_at(socket);
	assert_int_equal(count(backlog, COOP_LANE_ROWS, 1), 100);
	/* What has a file need not be saved. */
	assert_int_equal(coop_backlog_save(backlog, dir), 0);
	assert_int_equal(rmdir(dir) < 0 ? errno : 0, ENOTEMPTY);
	coop_backlog_advance(backlog, COOP_LANE_ROWS, coop_backlog_end(backlog, COOP_LANE_ROWS));
	coop_backlog_close(backlog);
	assert_int_equal(rmdir(dir), 0);
}

/* Memory without a name is saved and loaded; a file that is cut or changed anywhere is survived. */
static void is_saved(void **state)
{
	struct coop_backlog *backlog = open_at(NULL);
	struct stat st;
	size_t size;

	assert_int_equal(coop_backlog_save(backlog, folder), 0);
	assert_int_equal(stat(folder_path("backlog"), &st) < 0 ? errno : 0, ENOENT);
	for (uint64_t i = 1; i <= 5; i++)
		assert_int_equal(put(backlog, i, (size_t)i * 10, 0), 0);
	assert_int_equal(coop_backlog_put(backlog, COOP_LANE_AUDIT, 1, "\1", 1, 0), 0);
	assert_int_equal(coop_backlog_save(backlog, folder), 0);
	coop_backlog_close(backlog);
	assert_int_equal(stat(folder_path("backlog"), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	backlog = open_at(NULL);
	assert_int_equal(coop_backlog_load(backlog, folder), 0);
	assert_int_equal(count(backlog, COOP_LANE_ROWS, 1), 5);
	assert_int_equal(count(backlog, COOP_LANE_AUDIT, 1), 1);
	coop_backlog_close(backlog);

	char *good = folder_read("backlog", &size);
	for (size_t cut = 0; cut < size; cut++) {
		folder_write("backlog", good, cut, 0600);
		backlog = open_at(NULL);
		assert_int_equal(coop_backlog_load(backlog, folder), 0);
		assert_true(count(backlog, COOP_LANE_ROWS, 1) <= 5);
		coop_backlog_close(backlog);
		good[cut] ^= (char)0xff;
		folder_write("backlog", good, size, 0600);
		good[cut] ^= (char)0xff;
		backlog = open_at(NULL);
		assert_int_equal(coop_backlog_load(backlog, folder), 0);
		coop_backlog_close(backlog);
	}
	free(good);
	coop_backlog_forget(folder);
	assert_int_equal(stat(folder_path("backlog"), &st) < 0 ? errno : 0, ENOENT);
}

/* A change of a row is what it was; anything else is refused. */
static void rows(void **state)
{
	struct coop_backlog *backlog = open_at(NULL);
	const struct coop_store_process row = {.n = 7,
					       .id = "psh-1-7",
					       .agent = 3,
					       .principal = "uid:0",
					       .agent_path = "main",
					       .started_at = 5,
					       .ended_at = 9,
					       .about = "{}",
					       .outcome = "{\"a\":1}"};
	struct coop_backlog_entry entry;
	struct coop_store_process found;
	enum coop_row_change change;
	struct coop_buf scratch = {0};
	uint64_t at = 0;

	assert_int_equal(coop_row_put(backlog, COOP_ROW_STARTED, &row, &scratch), 0);
	assert_int_equal(coop_buf_size(&scratch), 0);
	assert_int_equal(coop_backlog_next(backlog, COOP_LANE_ROWS, &at,
					   coop_backlog_end(backlog, COOP_LANE_ROWS), &entry),
			 1);
	assert_int_equal(coop_row_parse(&entry, &change, &found), 0);
	assert_int_equal(change, COOP_ROW_STARTED);
	assert_int_equal(found.n, 7);
	assert_int_equal(found.agent, 3);
	assert_int_equal(found.started_at, 5);
	assert_int_equal(found.ended_at, 9);
	assert_string_equal(found.id, row.id);
	assert_string_equal(found.principal, row.principal);
	assert_string_equal(found.agent_path, row.agent_path);
	assert_string_equal(found.about, row.about);
	assert_string_equal(found.outcome, row.outcome);
	for (size_t size = 0; size < entry.size; size++) {
		struct coop_backlog_entry cut = {.number = 7, .bytes = entry.bytes, .size = size};
		assert_int_equal(coop_row_parse(&cut, &change, &found), -EBADMSG);
	}
	entry.number = UINT64_MAX;
	assert_int_equal(coop_row_parse(&entry, &change, &found), -EBADMSG);
	coop_buf_clear(&scratch);
	coop_backlog_close(backlog);
}

/* The chain goes on in memory, and in the files when it is carried there; lines that are there
 * already are not written again, and those that do not follow are given up and told. */
static void chain(void **state)
{
	struct coop_backlog *backlog = open_at(NULL);
	struct coop_audit *audit = open_audit();
	struct coop_audit_anchor anchor = anchor_of(audit);
	struct coop_audit_chain made;
	uint64_t seq = 0, done = 0;

	coop_audit_chain_begin(&made, backlog, &anchor);
	for (unsigned i = 1; i <= 3000; i++) {
		assert_int_equal(
			coop_audit_chain_add(&made, COOP_AUDIT_START, AT, "\"kind\":\"x\"", &seq),
			0);
		assert_int_equal(seq, i);
	}
	assert_int_equal(coop_audit_chain_add(&made, COOP_AUDIT_END, AT, "\"a\":\n1", &seq),
			 -EINVAL);
	uint64_t end = coop_backlog_end(backlog, COOP_LANE_AUDIT);
	assert_int_equal(coop_audit_carry(audit, backlog, end, &done), 0);
	assert_int_equal(done, end);
	assert_int_equal(coop_audit_carry(audit, backlog, end, &done), 0);
	anchor = anchor_of(audit);
	assert_int_equal(anchor.last, 3000);
	assert_string_equal(anchor.last_hash, made.last_hash);
	assert_good(&anchor);
	coop_audit_close(audit);

	/* An earlier keeper's lines are there, and some that were carried are not in the files any
	 * more. */
	assert_int_equal(unlink(folder_path("audit.log")), 0);
	audit = open_audit();
	add_many(audit, 3);
	assert_int_equal(coop_audit_recover(audit, backlog), 0);
	assert_int_equal(coop_backlog_waiting(backlog, COOP_LANE_AUDIT), 0);
	anchor = anchor_of(audit);
	assert_int_equal(anchor.last, 4);
	assert_good(&anchor);
	char *text = folder_read("audit.log", NULL);
	assert_non_null(strstr(text, "\"kind\":\"damage\",\"file\":\"backlog\",\"lines\":2997"));
	free(text);
	coop_audit_close(audit);
	coop_audit_chain_clear(&made);
	coop_backlog_close(backlog);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, folder_make, folder_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(goes_round),
		cmocka_unit_test(is_bounded),
		cmocka_unit_test(stays_in_a_file),
		IN_FOLDER(is_saved),
		cmocka_unit_test(rows),
		IN_FOLDER(chain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
