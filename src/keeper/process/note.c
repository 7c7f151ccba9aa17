#include "keeper/process/note.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/json/jsonw.h"
#include "base/mem.h"
#include "base/text/signame.h"
#include "base/text/utf8.h"
#include "interface/err.h"
#include "interface/schema.h"
#include "keeper/link/request.h"
#include "keeper/output/index.h"
#include "keeper/process/lookup.h"
#include "keeper/process/observer.h"
#include "keeper/process/phase.h"
#include "keeper/process/process.h"

#define PREFIX "coop: "
#define PREFIX_SIZE (sizeof PREFIX - 1)

void coop_notes_clear(struct coop_notes *notes)
{
	while (notes->count)
		free(notes->texts[--notes->count]);
}

/* What is shown among output must not steer a terminal, and is one line. Returns its size. */
static size_t clean(const char *text, char ret[COOP_NOTE_MAX])
{
	size_t used = PREFIX_SIZE, size;

	memcpy(ret, PREFIX, PREFIX_SIZE);
	for (size_t left = strlen(text); left; text += size, left -= size) {
		uint8_t first = (uint8_t)*text;
		size = coop_utf8_char((const uint8_t *)text, left);
		bool control = !size || first < 0x20 || first == 0x7f ||
			       (first == 0xc2 && (uint8_t)text[1] < 0xa0);
		size = size ? size : 1;
		if (used + size > COOP_NOTE_MAX - 2)
			break;
		if (control)
			ret[used++] = '?';
		else
			memcpy(ret + used, text, size);
		used += control ? 0 : size;
	}
	ret[used++] = '\n';
	ret[used] = 0;
	return used;
}

/* Returns whether it is there from now on. */
static bool add(struct coop_process *process, const char *text, unsigned most)
{
	struct coop_notes *notes = &process->notes;
	char line[COOP_NOTE_MAX];

	/* After the end has been told events are complete: a note then would have a number behind
	 * the exit's. */
	if (coop_process_told(process) || coop_process_receipt(process) || notes->count >= most)
		return false;
	(void)clean(text, line);
	char *copy = coop_mem_strdup(line);
	if (!copy)
		return false;
	uint64_t age_ms =
		process->times.started ? (coop_clock_now() - process->times.started) / 1000000u : 0;
	(void)coop_index_add(&process->output.index,
			     (struct coop_index_event){
				     .offset = notes->count,
				     .at_ms = age_ms > UINT32_MAX ? UINT32_MAX : (uint32_t)age_ms,
				     .stream = COOP_NOTE_STREAM,
			     });
	notes->texts[notes->count++] = copy;
	coop_observer_news(process);
	return true;
}

void coop_note_add(struct coop_process *process, const char *format, ...)
{
	char text[2 * COOP_NOTE_MAX];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof text, format, args);
	va_end(args);
	(void)add(process, text, COOP_NOTES_MAX);
}

/* Who asked for the end, where somebody did. */
static void note_request(struct coop_process *process, const char *what)
{
	const struct coop_evidence *evidence = &process->end.evidence;
	char signal[COOP_SIGNAME_TEXT] = "";
	int status = process->end.wait_status;

	if (WIFSIGNALED(status))
		coop_signame_format(WTERMSIG(status), signal);
	if (evidence->request)
		coop_note_add(process, "%s%s%s: asked for by %s (%s)", what, *signal ? " by " : "",
			      signal, evidence->agent ? evidence->agent : "its owner",
			      evidence->request);
	else
		coop_note_add(process, "%s%s%s: its connection went", what, *signal ? " by " : "",
			      signal);
}

/* With the number that was set, so that whoever reads the output alone knows which limit to
 * raise. */
static void note_limit(struct coop_process *process, const char *what, const char *unit)
{
	coop_note_add(process, "%s %lld%s", what, (long long)process->end.evidence.value, unit);
}

/* An exit of its own, or a signal from outside, is not noted; what a rule, or somebody through
 * coop, did to it is. */
void coop_note_end(struct coop_process *process)
{
	const struct coop_evidence *evidence = &process->end.evidence;

	switch (process->end.cause) {
	case COOP_CAUSE_NONE:
	case COOP_CAUSE_SELF_EXIT:
	case COOP_CAUSE_SIGNAL:
	case COOP_CAUSE_LOST:
	case COOP_CAUSE_COUNT:
	case COOP_CAUSE_SPAWN_FAILED: /* noted where the reason is known */
		break;
	case COOP_CAUSE_TIMED_OUT:
		note_limit(process, "timed out after", " ms");
		break;
	case COOP_CAUSE_LIFETIME:
		note_limit(process, "ended at its greatest age,", " ms");
		break;
	case COOP_CAUSE_IDLE:
		note_limit(process, "ended: no output, input or call for", " ms");
		break;
	case COOP_CAUSE_OUTPUT_QUOTA:
		coop_note_add(process, "ended: its output is larger than may be kept on disk");
		break;
	case COOP_CAUSE_OOM:
		note_limit(process, "killed at its memory limit of", " bytes");
		break;
	case COOP_CAUSE_CPU_TIME:
		note_limit(process, "killed at its limit of CPU time,", " s");
		break;
	case COOP_CAUSE_SANDBOX_DENIED:
		coop_note_add(process, "killed by SIGSYS: the sandbox allows no such system call");
		break;
	case COOP_CAUSE_SHUTDOWN:
		coop_note_add(process, "killed: the keeper is shutting down");
		break;
	case COOP_CAUSE_SESSION_END:
	case COOP_CAUSE_OWNER_RETIRED:
		if (evidence->limit)
			coop_note_add(process, "killed: its %s",
				      process->end.cause == COOP_CAUSE_SESSION_END
					      ? "session has ended"
					      : "agent has expired");
		else
			note_request(process, "killed");
		break;
	case COOP_CAUSE_KILLED_BY_REQUEST:
	case COOP_CAUSE_CANCELLED:
		note_request(process, WIFSIGNALED(process->end.wait_status) ? "killed" : "ended");
		break;
	}
}

const char *coop_note_text(const struct coop_process *process, uint64_t number)
{
	return number < process->notes.count ? process->notes.texts[number] : "";
}

const char *coop_note_failure(const struct coop_process *process, char ret_text[COOP_NOTE_MAX])
{
	if (process->end.cause != COOP_CAUSE_SPAWN_FAILED || !process->notes.count)
		return NULL;
	(void)snprintf(ret_text, COOP_NOTE_MAX, "%s", process->notes.texts[0] + PREFIX_SIZE);
	ret_text[strcspn(ret_text, "\n")] = 0;
	return ret_text;
}

/* By the text as it would be shown: two that differ in what is cleaned away look the same. */
static bool known(const struct coop_process *process, const char *text)
{
	char line[COOP_NOTE_MAX];

	(void)clean(text, line);
	for (unsigned i = 0; i < process->notes.count; i++) {
		if (!strcmp(process->notes.texts[i], line))
			return true;
	}
	return false;
}

void coop_op_note(struct coop_request *request)
{
	const char *text = coop_arg_string(request->args, "text", "");
	struct coop_process *process = coop_lookup_named(request);
	struct coop_err err = {0};
	struct coop_jsonw w;

	if (!process)
		return;
	if (!*text) {
		(void)coop_err_field(&err, COOP_INVALID_INPUT, "text", "a note needs a text");
		coop_request_fail(request, &err);
		return;
	}
	bool again = coop_arg_bool(request->args, "once", false) && known(process, text);
	bool added = !again && add(process, text, COOP_NOTES_OWNERS);
	coop_request_result(request, &w);
	coop_jsonw_bool(&w, "added", added);
	if (added)
		coop_jsonw_uint(&w, "cursor", process->output.index.next - 1);
	else
		coop_jsonw_null(&w, "cursor");
	coop_request_end(request, &w);
}
