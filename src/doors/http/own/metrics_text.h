/* Writes the text format 0.0.4 of Prometheus. Failure to get memory is remembered; look once, at
 * the end. */
#ifndef COOP_HTTP_METRICS_TEXT_H
#define COOP_HTTP_METRICS_TEXT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

struct coop_metrics_text {
	struct coop_buf *out;
	bool failed;
};

/* The two lines before the samples of a metric; `type` is "counter", "gauge" or "histogram". */
void coop_metrics_head(struct coop_metrics_text *x, const char *name, const char *type,
		       const char *help);

/* One sample with two labels, whose values are any text. */
void coop_metrics_sample2(struct coop_metrics_text *x, const char *name, const char *label,
			  const char *value, const char *label2, const char *value2, double number);

/* A metric with one sample, head and all. */
void coop_metrics_gauge(struct coop_metrics_text *x, const char *name, const char *help,
			double number);
void coop_metrics_counter(struct coop_metrics_text *x, const char *name, const char *help,
			  double number);

/* A metric whose samples are the members of an object: {label's value: number}. What is no number
 * is left out. */
void coop_metrics_members(struct coop_metrics_text *x, const char *name, const char *type,
			  const char *help, const char *label, const json_t *members);

/* A histogram {"buckets": [[le, cumulative count]…], "count", "sum"}. Nothing is written of what is
 * none. */
void coop_metrics_histogram(struct coop_metrics_text *x, const char *name, const char *help,
			    const json_t *histogram);

#endif
