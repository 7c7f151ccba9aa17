/* Ends of starts that nobody lived to see the end of: each gets one, however many there are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "auditing.h"
#include "records/audit_chain.h"
#include "records/backlog.h"
#include "records/lost.h"
#include "records/store.h"

/* Their ends fill a lane of the backlog more than once. */
#define STARTS 45000u
/* Every so many-th has ended. */
#define ENDED 3u

static unsigned lost_ends, other_ends;

static int count_end(void *user, uint64_t seq, const char *bytes, size_t size)
{
	char *text = strndup(bytes, size);

	if (strstr(text, "\"kind\":\"end\"") && strstr(text, "\"end_cause\":\"lost\""))
		lost_ends++;
	else if (strstr(text, "\"kind\":\"end\""))
		other_ends++;
	free(text);
	return 0;
}

static void write_starts(struct coop_audit *audit)
{
	char text[160];

	for (unsigned i = 1; i <= STARTS; i++) {
		uint64_t seq = add(audit, "\"kind\":\"spawn\",\"decision\":\"allowed\","
					  "\"principal\":\"p\",\"agent\":\"main/a\"");
		(void)snprintf(text, sizeof text, "\"kind\":\"end\",\"spawn\":%llu",
			       (unsigned long long)seq);
		if (i % ENDED == 0)
			(void)add(audit, text);
	}
	(void)add(audit, "\"kind\":\"spawn\",\"decision\":\"denied\",\"principal\":\"p\"");
}

static void each_has_an_end(void **state)
{
	struct coop_audit *audit = open_with(UINT64_MAX, 8);
	struct coop_backlog *backlog = NULL;
	struct coop_store *store = NULL;
	struct coop_audit_chain chain = {0};
	struct coop_err err = {0};
	uint64_t lost = 0, done = 0;

	write_starts(audit);
	assert_int_equal(coop_backlog_open(NULL, &backlog), 0);
	assert_int_equal(coop_store_open(folder, &store, &err), 0);
	assert_int_equal(coop_store_set_meta(store, "audit_open", "1", &err), 0);
	/* The second keeper finds nothing that the first one has not told the end of. */
	for (unsigned keepers = 0; keepers < 2; keepers++) {
		struct coop_audit_anchor anchor = anchor_of(audit);
		coop_audit_chain_begin(&chain, backlog, &anchor);
		assert_int_equal(coop_lost_audit(store, audit, &chain, folder, &lost, &err), 0);
		assert_int_equal(lost, 0);
		assert_int_equal(coop_audit_carry(audit, backlog,
						  coop_backlog_end(backlog, COOP_LANE_AUDIT),
						  &done),
				 0);
		coop_backlog_advance(backlog, COOP_LANE_AUDIT, done);
		coop_audit_chain_clear(&chain);
		lost_ends = other_ends = 0;
		assert_int_equal(coop_audit_each(folder, 1, count_end, NULL), 0);
		assert_int_equal(other_ends, STARTS / ENDED);
		assert_int_equal(lost_ends, STARTS - STARTS / ENDED);
		/* As if it had been killed before it noted how far it has looked. */
		assert_int_equal(coop_store_set_meta(store, "audit_open", "1", &err), 0);
	}
	struct coop_audit_anchor anchor = anchor_of(audit);
	assert_good(&anchor);
	coop_store_close(store);
	coop_backlog_close(backlog);
	coop_audit_close(audit);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(each_has_an_end, folder_make, folder_remove),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
