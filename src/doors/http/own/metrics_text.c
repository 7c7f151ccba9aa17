#include "doors/http/own/metrics_text.h"

#include <stdio.h>
#include <string.h>

static void put(struct coop_metrics_text *x, const char *text, size_t size)
{
	if (!x->failed && coop_buf_append(x->out, text, size) < 0)
		x->failed = true;
}

static void put_text(struct coop_metrics_text *x, const char *text)
{
	put(x, text, strlen(text));
}

/* Whole numbers as such; others with as many digits as tell them from their neighbours. */
static void put_number(struct coop_metrics_text *x, double number)
{
	char text[40];
	bool whole = number > -9e15 && number < 9e15 && (double)(int64_t)number == number;

	(void)snprintf(text, sizeof text, whole ? "%.0f" : "%.15g", number);
	put_text(x, text);
}

static void put_label(struct coop_metrics_text *x, const char *label, const char *value)
{
	put_text(x, label);
	put_text(x, "=\"");
	for (; *value; value++) {
		if (*value == '\n')
			put_text(x, "\\n");
		else if (*value == '"' || *value == '\\')
			put(x, (const char[]){'\\', *value}, 2);
		else
			put(x, value, 1);
	}
	put_text(x, "\"");
}

void coop_metrics_head(struct coop_metrics_text *x, const char *name, const char *type,
		       const char *help)
{
	char text[512];

	(void)snprintf(text, sizeof text, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
	put_text(x, text);
}

static void put_value(struct coop_metrics_text *x, double number)
{
	put_text(x, " ");
	put_number(x, number);
	put_text(x, "\n");
}

static void put_plain(struct coop_metrics_text *x, const char *name, double number)
{
	put_text(x, name);
	put_value(x, number);
}

static void put_sample(struct coop_metrics_text *x, const char *name, const char *label,
		       const char *value, double number)
{
	put_text(x, name);
	put_text(x, "{");
	put_label(x, label, value);
	put_text(x, "}");
	put_value(x, number);
}

void coop_metrics_sample2(struct coop_metrics_text *x, const char *name, const char *label,
			  const char *value, const char *label2, const char *value2, double number)
{
	put_text(x, name);
	put_text(x, "{");
	put_label(x, label, value);
	put_text(x, ",");
	put_label(x, label2, value2);
	put_text(x, "}");
	put_value(x, number);
}

void coop_metrics_gauge(struct coop_metrics_text *x, const char *name, const char *help,
			double number)
{
	coop_metrics_head(x, name, "gauge", help);
	put_plain(x, name, number);
}

void coop_metrics_counter(struct coop_metrics_text *x, const char *name, const char *help,
			  double number)
{
	coop_metrics_head(x, name, "counter", help);
	put_plain(x, name, number);
}

void coop_metrics_members(struct coop_metrics_text *x, const char *name, const char *type,
			  const char *help, const char *label, const json_t *members)
{
	const char *key;
	json_t *value;

	coop_metrics_head(x, name, type, help);
	/* jansson's iteration takes no const; nothing is changed. */
	json_object_foreach((json_t *)(uintptr_t)members, key, value)
	{
		if (json_is_number(value))
			put_sample(x, name, label, key, json_number_value(value));
	}
}

void coop_metrics_histogram(struct coop_metrics_text *x, const char *name, const char *help,
			    const json_t *histogram)
{
	const json_t *buckets = json_object_get(histogram, "buckets");
	double count = json_number_value(json_object_get(histogram, "count"));
	char sample[128], edge[40];

	if (!json_is_array(buckets))
		return;
	coop_metrics_head(x, name, "histogram", help);
	(void)snprintf(sample, sizeof sample, "%s_bucket", name);
	for (size_t i = 0; i < json_array_size(buckets); i++) {
		const json_t *bucket = json_array_get(buckets, i);
		const json_t *limit = json_array_get(bucket, 0);
		if (!json_is_number(limit))
			continue; /* the one without a limit is written below */
		(void)snprintf(edge, sizeof edge, "%.15g", json_number_value(limit));
		put_sample(x, sample, "le", edge, json_number_value(json_array_get(bucket, 1)));
	}
	put_sample(x, sample, "le", "+Inf", count);
	(void)snprintf(sample, sizeof sample, "%s_sum", name);
	put_plain(x, sample, json_number_value(json_object_get(histogram, "sum")));
	(void)snprintf(sample, sizeof sample, "%s_count", name);
	put_plain(x, sample, count);
}
