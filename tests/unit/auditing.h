/* What the tests of the audit share. Included after cmocka.h. */
#ifndef COOP_TESTS_AUDITING_H
#define COOP_TESTS_AUDITING_H

#include "folder.h"
#include "records/audit.h"
#include "records/audit_files.h"
#include "records/audit_line.h"

#define AT INT64_C(1767323045678) /* 2026-01-02T03:04:05.678Z */

static inline struct coop_audit *open_with(uint64_t max_bytes, unsigned keep)
{
	struct coop_audit *audit = NULL;
	struct coop_err err = {0};

	if (coop_audit_open(folder, max_bytes, keep, &audit, &err) < 0)
		fail_msg("%s", err.message);
	return audit;
}

static inline struct coop_audit *open_audit(void)
{
	return open_with(1 << 20, 8);
}

static inline uint64_t add(struct coop_audit *audit, const char *members)
{
	uint64_t seq = 0;

	assert_int_equal(coop_audit_append(audit, AT, members, &seq), 0);
	return seq;
}

static inline void add_many(struct coop_audit *audit, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		(void)add(audit, "\"kind\":\"spawn\",\"argv\":[\"true\"]");
}

static inline struct coop_audit_anchor anchor_of(const struct coop_audit *audit)
{
	struct coop_audit_anchor anchor;

	coop_audit_anchor(audit, &anchor);
	return anchor;
}

static inline struct coop_audit_report verify(const struct coop_audit_anchor *anchor, bool live)
{
	struct coop_audit_report report;

	assert_int_equal(coop_audit_verify(folder, anchor, live, &report), 0);
	return report;
}

static inline void assert_good(const struct coop_audit_anchor *anchor)
{
	struct coop_audit_report report = verify(anchor, false);

	if (!report.good)
		fail_msg("%s line %llu: %s", report.file, (unsigned long long)report.line,
			 report.fault);
	assert_string_equal(report.fault, "");
	assert_string_equal(report.file, "");
}

static inline void assert_fault(const struct coop_audit_anchor *anchor, const char *file,
				uint64_t line, const char *fault)
{
	struct coop_audit_report report = verify(anchor, false);

	assert_false(report.good);
	assert_string_equal(report.fault, fault);
	assert_string_equal(report.file, file);
	assert_int_equal(report.line, line);
}

/* Ten lines, closed. */
static inline struct coop_audit_anchor ten(void)
{
	struct coop_audit *audit = open_audit();

	add_many(audit, 10);
	struct coop_audit_anchor anchor = anchor_of(audit);
	coop_audit_close(audit);
	assert_good(&anchor);
	return anchor;
}

#endif
