#include "keeper/ops/op_operator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json/jsonw.h"
#include "base/list.h"
#include "base/mem.h"
#include "interface/err.h"
#include "interface/schema.h"
#include "keeper/conf/conf.h"
#include "keeper/conf/config.h"
#include "keeper/confine/groups.h"
#include "keeper/core/books.h"
#include "keeper/core/keeper.h"
#include "keeper/link/connection.h"
#include "keeper/link/job.h"
#include "keeper/link/request.h"
#include "keeper/owner/agent.h"
#include "keeper/process/eviction.h"
#include "keeper/process/lookup.h"
#include "keeper/store/archive.h"
#include "keeper/store/journal.h"
#include "keeper/store/spawn_audit.h"
#include "records/audit.h"
#include "records/backlog.h"
#include "records/store.h"

/* A question to the disk: what was asked, and what was found. */
struct question {
	struct coop_job job;
	struct coop_link in_keeper; /* until its turn has come */
	struct coop_store_query query;
	char path[1024];
	struct coop_buf found; /* JSON text, elements separated by commas */
	struct coop_jsonw w;
	uint64_t rows;
	size_t most; /* bytes of an answer that can go on in another */
	bool more, known;
	bool forget;    /* the fault that was noted */
	uint64_t count; /* lines of the audit */
	uint64_t end;   /* in the backlog, of those that were there when it was asked */
	struct coop_audit_anchor anchor, then;
	struct coop_audit_report report;
};

struct coop_questions {
	struct coop_link waiting;
	bool asking; /* one of them is with the helper thread */
};

struct coop_questions *coop_questions_new(void)
{
	struct coop_questions *questions = coop_mem_zalloc(sizeof *questions);

	if (questions)
		coop_list_init(&questions->waiting);
	return questions;
}

static void free_question(struct question *question)
{
	coop_buf_clear(&question->found);
	free(question);
}

/* One at a time is with the helper thread, so that what must be written is never far behind; and
 * none whose client does not take the answers that it has. */
static void go_on(struct coop_keeper *keeper)
{
	struct coop_questions *questions = coop_questions_of(keeper);

	if (questions->asking)
		return;
	COOP_LIST_EACH(&questions->waiting, link)
	{
		struct question *question = COOP_LIST_ITEM(link, struct question, in_keeper);
		struct coop_request *request = question->job.request;
		if (coop_conn_has_room(request->conn)) {
			coop_list_remove(&question->in_keeper);
			questions->asking = true;
			coop_job_begin(keeper, &question->job);
			return;
		}
		/* One that closes takes no further answer: it drops its requests. */
		if (!request->conn->closing && !request->in_process.next)
			coop_conn_when_room(request->conn, request);
	}
}

static void on_room(struct coop_request *request)
{
	go_on(request->keeper);
}

/* The helper thread is done with the one that it had. */
static void next(struct coop_keeper *keeper)
{
	coop_questions_of(keeper)->asking = false;
	go_on(keeper);
}

/* It goes before its turn. */
static void forget(struct coop_request *request)
{
	struct question *question = request->state;

	coop_list_remove(&question->in_keeper);
	free_question(question);
}

/* Begins one, or answers the request that there is no memory. */
static void ask(struct coop_request *request, struct question *question,
		void (*run)(struct coop_job *job), void (*done)(struct coop_job *job))
{
	if (!question) {
		coop_request_no_memory(request);
		return;
	}
	question->job.request = request;
	question->most = coop_conn_answer_max(request->conn);
	question->job.run = run;
	question->job.done = done;
	request->state = question;
	request->on_drop = forget;
	request->on_room = on_room;
	coop_list_add(&coop_questions_of(request->keeper)->waiting, &question->in_keeper);
	go_on(request->keeper);
}

/* Answers with the list that was found, or with the error; true if the caller has to add to the
 * answer and end it. */
static bool begin_answer(struct question *question, const char *name, struct coop_request **ret,
			 struct coop_jsonw *w)
{
	struct coop_request *request = coop_job_release(&question->job);

	next(question->job.keeper);
	if (request && (question->job.result < 0 || question->w.failed ||
			coop_buf_append(&question->found, "", 1) < 0)) {
		if (question->job.result < 0)
			coop_request_fail(request, &question->job.err);
		else
			coop_request_no_memory(request);
		request = NULL;
	}
	if (!request)
		return false;
	coop_request_result(request, w);
	if (name)
		coop_jsonw_raw(w, name, (const char *)coop_buf_front(&question->found));
	*ret = request;
	return true;
}

static int on_row(void *user, const struct coop_store_process *row)
{
	struct question *question = user;

	/* One more than was asked for tells that there are more. */
	question->more = question->rows + 1 == question->query.limit ||
			 coop_buf_size(&question->found) > question->most;
	if (question->more)
		return 1;
	question->rows++;
	coop_archive_write(row, question->query.agent, &question->w);
	return 0;
}

static void run_history(struct coop_job *job)
{
	struct question *question = (struct question *)job;

	question->w.out = &question->found;
	coop_jsonw_array(&question->w, NULL);
	job->result = coop_store_history(coop_books_of(job->keeper)->store, &question->query,
					 on_row, question, &job->err);
	coop_jsonw_array_end(&question->w);
	/* Where the database is, is not every agent's business. */
	if (job->result < 0)
		(void)coop_err_set(&job->err, COOP_UNAVAILABLE, "the database cannot be read: %s",
				   strerror(-job->result));
	else if (question->query.path && !question->known && !question->rows)
		job->result = coop_agent_none(&job->err);
}

static void history_done(struct coop_job *job)
{
	struct question *question = (struct question *)job;
	struct coop_request *request;
	struct coop_jsonw w;

	if (begin_answer(question, "processes", &request, &w)) {
		coop_jsonw_bool(&w, "more", question->more);
		coop_request_end(request, &w);
	}
	free_question(question);
}

/* Which rows are meant. An agent is named as in lists: self, a label that is one's, a path from
 * here or from the top. */
static int choose(const struct coop_request *request, struct question *question,
		  struct coop_err *err)
{
	const struct coop_agent *viewer = request->conn->agent;
	const char *agent = coop_arg_string(request->args, "agent", NULL),
		   *before = coop_arg_string(request->args, "before", NULL);
	size_t size = strlen(viewer->path);
	struct coop_err unused;

	question->query = (struct coop_store_query){
		.agent = viewer->id,
		.since = coop_arg_int(request->args, "since", 0),
		.until = coop_arg_int(request->args, "until", 0),
		.limit = (uint64_t)coop_arg_int(request->args, "limit", 100) + 1,
	};
	if (before && !(question->query.before = coop_lookup_number(before)))
		return coop_err_field(err, COOP_INVALID_INPUT, "before",
				      "before must be the id of a process");
	if (!agent)
		return 0;
	if (!coop_agent_valid_path(agent))
		return coop_agent_none(err);
	question->query.path = question->path;
	if (!strcmp(agent, "self"))
		agent = viewer->path;
	bool whole = !strncmp(agent, viewer->path, size) && (!agent[size] || agent[size] == '/');
	int n = whole ? snprintf(question->path, sizeof question->path, "%s", agent)
		      : snprintf(question->path, sizeof question->path, "%s/%s", viewer->path,
				 agent);
	if (n < 0 || (size_t)n >= sizeof question->path)
		return coop_agent_none(err);
	/* One that was removed is known by its rows alone. */
	question->known = coop_agent_find(request->conn->agent, question->path, &unused) != NULL;
	return 0;
}

void coop_op_history(struct coop_request *request)
{
	struct question *question = coop_mem_zalloc(sizeof *question);
	struct coop_err err = {0};

	if (!coop_books_of(request->keeper)->recording)
		(void)coop_err_set(&err, COOP_UNAVAILABLE, "this keeper keeps no records");
	else if (question)
		(void)choose(request, question, &err);
	if (!err.code) {
		ask(request, question, run_history, history_done);
		return;
	}
	free(question);
	coop_request_fail(request, &err);
}

static int no_audit(struct coop_request *request)
{
	struct coop_err err;

	if (coop_books_of(request->keeper)->audit)
		return 0;
	(void)coop_err_set(&err, COOP_UNAVAILABLE, "this keeper keeps no audit");
	coop_request_fail(request, &err);
	return -1;
}

/* What was said before the question is in the files then. What they do not take stays where it is;
 * the journal tries again. */
static void carry(const struct question *question)
{
	const struct coop_keeper *keeper = question->job.keeper;
	uint64_t done;

	(void)coop_audit_carry(coop_books_of(keeper)->audit, coop_journal_of(keeper)->backlog,
			       question->end, &done);
}

static void run_tail(struct coop_job *job)
{
	struct question *question = (struct question *)job;
	struct coop_buf lines = {0};

	carry(question);
	job->result =
		coop_audit_tail(coop_place_of(job->keeper)->state_dir, question->count, &lines);
	if (job->result < 0)
		(void)coop_err_set(&job->err, COOP_UNAVAILABLE, "the audit cannot be read: %s",
				   strerror(-job->result));
	question->w.out = &question->found;
	coop_jsonw_array(&question->w, NULL);
	if (job->result == 0 && coop_buf_append(&lines, "", 1) == 0) {
		char *rest = (char *)coop_buf_front(&lines), *line;
		while ((line = strsep(&rest, "\n"))) {
			if (*line)
				coop_jsonw_raw(&question->w, NULL, line);
		}
	}
	coop_jsonw_array_end(&question->w);
	coop_buf_clear(&lines);
}

static void tail_done(struct coop_job *job)
{
	struct question *question = (struct question *)job;
	struct coop_request *request;
	struct coop_jsonw w;

	if (begin_answer(question, "lines", &request, &w))
		coop_request_end(request, &w);
	free_question(question);
}

void coop_op_audit_tail(struct coop_request *request)
{
	if (no_audit(request) < 0)
		return;
	struct question *question = coop_mem_zalloc(sizeof *question);
	if (question) {
		question->count = (uint64_t)coop_arg_int(request->args, "count", 50);
		question->end = coop_backlog_end(coop_journal_of(request->keeper)->backlog,
						 COOP_LANE_AUDIT);
	}
	ask(request, question, run_tail, tail_done);
}

static void run_verify(struct coop_job *job)
{
	struct question *question = (struct question *)job;

	if (question->forget && coop_books_of(job->keeper)->store) {
		job->result = coop_store_set_meta(coop_books_of(job->keeper)->store, "audit_fault",
						  "", &job->err);
		if (job->result < 0)
			return;
	}
	carry(question);
	coop_audit_anchor(coop_books_of(job->keeper)->audit, &question->anchor);
	job->result = coop_audit_verify(coop_place_of(job->keeper)->state_dir, &question->anchor,
					true, &question->report);
	/* A chain that was made anew as a whole is good in itself, but not the one that an earlier
	 * keeper left. */
	if (job->result == 0 && question->report.good &&
	    question->then.last >= question->anchor.first)
		job->result = coop_audit_verify(coop_place_of(job->keeper)->state_dir,
						&question->then, true, &question->report);
	if (job->result < 0)
		(void)coop_err_set(&job->err, COOP_UNAVAILABLE, "the audit cannot be read: %s",
				   strerror(-job->result));
}

static void verify_done(struct coop_job *job)
{
	struct question *question = (struct question *)job;
	struct coop_audit_report *report = &question->report;
	const char *known = coop_books_of(job->keeper)->audit_fault;
	struct coop_request *request;
	struct coop_jsonw w;

	if (report->good && *known) {
		report->good = false;
		(void)snprintf(report->fault, sizeof report->fault, "%s", known);
	}
	if (begin_answer(question, NULL, &request, &w)) {
		coop_jsonw_bool(&w, "good", report->good);
		coop_jsonw_uint(&w, "lines", report->lines);
		coop_jsonw_uint(&w, "files", report->files);
		coop_jsonw_uint(&w, "first", report->first);
		coop_jsonw_uint(&w, "last", report->last);
		coop_jsonw_string(&w, "file", *report->file ? report->file : NULL);
		if (report->line)
			coop_jsonw_uint(&w, "line", report->line);
		else
			coop_jsonw_null(&w, "line");
		coop_jsonw_string(&w, "fault", *report->fault ? report->fault : NULL);
		coop_request_end(request, &w);
	}
	free_question(question);
}

/* The line comes first: nothing is forgotten without a trace. */
static int acknowledge(struct coop_keeper *keeper, struct coop_err *err)
{
	int r = coop_spawn_audit_acknowledged(keeper, err);

	if (r < 0)
		return r;
	*coop_books_of(keeper)->audit_fault = 0;
	/* What the earlier keeper noted is what was not there. */
	coop_books_of(keeper)->audit_then = (struct coop_audit_anchor){0};
	return 0;
}

void coop_op_audit_verify(struct coop_request *request)
{
	struct coop_err err;

	if (no_audit(request) < 0)
		return;
	bool forget = coop_arg_bool(request->args, "acknowledge", false) &&
		      *coop_books_of(request->keeper)->audit_fault;
	if (forget && acknowledge(request->keeper, &err) < 0) {
		coop_request_fail(request, &err);
		return;
	}
	struct question *question = coop_mem_zalloc(sizeof *question);
	if (question) {
		question->end = coop_backlog_end(coop_journal_of(request->keeper)->backlog,
						 COOP_LANE_AUDIT);
		question->then = coop_books_of(request->keeper)->audit_then;
		question->then.first = 0; /* the beginning may have been rotated away since */
		question->forget = forget;
	}
	ask(request, question, run_verify, verify_done);
}

void coop_op_reload(struct coop_request *request)
{
	struct coop_keeper *keeper = request->keeper;
	struct coop_err err = {0};
	struct coop_jsonw w;

	if (coop_reload(keeper, &err) < 0) {
		coop_request_fail(request, &err);
		return;
	}
	coop_request_result(request, &w);
	coop_jsonw_string(&w, "path",
			  coop_conf_of(keeper)->present ? coop_config_path(coop_config_of(keeper))
							: NULL);
	coop_request_end(request, &w);
}

/* What follows from limits is looked at anew: there may be too many of something now. */
int coop_reload(struct coop_keeper *keeper, struct coop_err *err)
{
	int r = coop_config_reload(coop_config_of(keeper), err);

	if (r < 0)
		return r;
	coop_eviction_recount(keeper);
	coop_groups_conf_changed(keeper);
	return 0;
}
