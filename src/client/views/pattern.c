#include "client/views/pattern.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "client/views/compiled.h"

/* Depth of parentheses: each costs the compiler a frame of the stack. */
#define NESTING_MAX 100

static void *allocate(size_t size, void *data)
{
	(void)data;
	return coop_mem_alloc(size);
}

static void release(void *memory, void *data)
{
	(void)data;
	free(memory);
}

static int refuse(char reason[COOP_PATTERN_REASON], const char *what, size_t at)
{
	(void)snprintf(reason, COOP_PATTERN_REASON, "%s at position %zu", what, at);
	return -EINVAL;
}

static int check(const char *text, size_t size, char reason[COOP_PATTERN_REASON])
{
	const char *what;
	char message[128];
	size_t at;

	if (!size)
		return refuse(reason, "an empty pattern", 0);
	if (size > COOP_PATTERN_TEXT_MAX)
		return refuse(reason, "a pattern of more than 4096 bytes", COOP_PATTERN_TEXT_MAX);
	if (coop_syntax_check(text, size, &what, &at) == 0)
		return 0;
	(void)snprintf(message, sizeof message, "%s is not supported,", what);
	return refuse(reason, message, at);
}

/* PCRE2's own message. */
static int explain(int code, size_t at, char reason[COOP_PATTERN_REASON])
{
	PCRE2_UCHAR message[160];

	if (code == PCRE2_ERROR_NOMEMORY || code == PCRE2_ERROR_HEAP_FAILED)
		return -ENOMEM;
	if (pcre2_get_error_message(code, message, sizeof message) < 0)
		return refuse(reason, "an invalid pattern", at);
	return refuse(reason, (const char *)message, at);
}

/* What the compiled form says about itself; it has the last word on what is refused. */
static int look(struct coop_pattern *pattern, size_t size, char reason[COOP_PATTERN_REASON])
{
	uint32_t groups = 0, references = 0, behind = 0, newlines = 0;

	(void)pcre2_pattern_info(pattern->code, PCRE2_INFO_CAPTURECOUNT, &groups);
	(void)pcre2_pattern_info(pattern->code, PCRE2_INFO_BACKREFMAX, &references);
	(void)pcre2_pattern_info(pattern->code, PCRE2_INFO_MAXLOOKBEHIND, &behind);
	(void)pcre2_pattern_info(pattern->code, PCRE2_INFO_HASCRORLF, &newlines);
	if (references)
		return refuse(reason, "a back reference is not supported,", size);
	/* ^ and \b look at one character. */
	if (behind > 1)
		return refuse(reason, "look-behind is not supported,", size);
	if (groups >= COOP_PATTERN_GROUPS)
		return refuse(reason, "more than 99 groups", size);
	pattern->groups = groups + 1;
	pattern->has_newlines = newlines;
	return 0;
}

static int compile(struct coop_pattern *pattern, const char *text, size_t size,
		   char reason[COOP_PATTERN_REASON])
{
	const uint32_t options =
		PCRE2_UTF | PCRE2_NEVER_UCP | PCRE2_NEVER_BACKSLASH_C | PCRE2_USE_OFFSET_LIMIT;
	int code = 0, ignored_code;
	size_t at = 0, ignored_at;

	pattern->memory = pcre2_general_context_create(allocate, release, NULL);
	if (!pattern->memory)
		return -ENOMEM;
	pcre2_compile_context *context = pcre2_compile_context_create(pattern->memory);
	if (!context)
		return -ENOMEM;
	(void)pcre2_set_newline(context, PCRE2_NEWLINE_ANYCRLF);
	(void)pcre2_set_parens_nest_limit(context, NESTING_MAX);
	pattern->code = pcre2_compile((PCRE2_SPTR)text, size, options, &code, &at, context);
	if (pattern->code)
		pattern->patient =
			pcre2_compile((PCRE2_SPTR)text, size, options | PCRE2_AUTO_CALLOUT,
				      &ignored_code, &ignored_at, context);
	pcre2_compile_context_free(context);
	return pattern->code ? look(pattern, size, reason) : explain(code, at, reason);
}

static int keep_text(struct coop_pattern *pattern, const char *text, size_t size)
{
	pattern->text = coop_mem_alloc(size);
	if (!pattern->text)
		return -ENOMEM;
	memcpy(pattern->text, text, size);
	pattern->size = size;
	pattern->groups = 1;
	return 0;
}

int coop_pattern_new(const char *text, size_t size, bool regex, struct coop_pattern **ret,
		     char reason[COOP_PATTERN_REASON])
{
	int r = 0;

	reason[0] = 0;
	if (!size || size > COOP_PATTERN_TEXT_MAX || regex)
		r = check(text, size, reason);
	if (r < 0)
		return r;
	struct coop_pattern *pattern = coop_mem_zalloc(sizeof *pattern);
	if (!pattern)
		return -ENOMEM;
	r = regex ? compile(pattern, text, size, reason) : keep_text(pattern, text, size);
	if (r < 0) {
		coop_pattern_free(pattern);
		return r;
	}
	*ret = pattern;
	return 0;
}

void coop_pattern_free(struct coop_pattern *pattern)
{
	if (!pattern)
		return;
	pcre2_code_free(pattern->code);
	pcre2_code_free(pattern->patient);
	pcre2_general_context_free(pattern->memory);
	free(pattern->text);
	free(pattern);
}
