/* The database: what is put in comes out again, after a restart too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "storing.h"

static int see_agent(void *user, const struct coop_store_agent *agent)
{
	size_t used = strlen(seen);

	(void)snprintf(seen + used, sizeof seen - used, "%s%s/%s", used ? " " : "",
		       agent->principal, agent->path);
	assert_int_equal(agent->removed_at, 0);
	return 0;
}

static int see_token(void *user, const struct coop_store_token *token)
{
	size_t used = strlen(seen);

	(void)snprintf(seen + used, sizeof seen - used, "%s%lld:%s:%d:%lld", used ? " " : "",
		       (long long)token->agent, token->label, token->hash[31],
		       (long long)token->expires_at);
	return 0;
}

static const char *receipts(struct coop_store *store, uint64_t limit)
{
	seen[0] = 0;
	good(coop_store_each_receipt(store, limit, see_process, NULL, &err));
	return seen;
}

static const char *agents(struct coop_store *store)
{
	seen[0] = 0;
	good(coop_store_each_agent(store, see_agent, NULL, &err));
	return seen;
}

static const char *tokens(struct coop_store *store)
{
	seen[0] = 0;
	good(coop_store_each_token(store, see_token, NULL, &err));
	return seen;
}

static void keeps_agents(void **state)
{
	struct coop_store *store = open_store();
	int64_t main = add_agent(store, 0, "uid:1", "main");
	int64_t a = add_agent(store, main, "uid:1", "main/a");
	int64_t b = add_agent(store, a, "uid:1", "main/a/b");

	assert_string_equal(agents(store), "uid:1/main uid:1/main/a uid:1/main/a/b");
	good(coop_store_set_agent(store, a, "{\"b\":2}", &err));
	good(coop_store_remove_agent(store, b, 7, &err));
	store = open_again(store);
	assert_string_equal(agents(store), "uid:1/main uid:1/main/a");
	/* Ids are never used again, also not after the row is gone. */
	good(coop_store_prune(store, 100, &err));
	assert_true(add_agent(store, main, "uid:1", "main/c") > b);
	/* An id that is given is taken, once. */
	struct coop_store_agent agent = {.id = 70,
					 .parent = main,
					 .principal = "p",
					 .name = "n",
					 .path = "x",
					 .settings = "{}"};
	good(coop_store_add_agent(store, &agent, NULL, &err));
	assert_int_equal(coop_store_add_agent(store, &agent, NULL, &err), -EEXIST);
	agent.id = 71;
	agent.parent = 71; /* its own parent */
	assert_int_equal(coop_store_add_agent(store, &agent, NULL, &err), -EEXIST);
	/* What is not there is no error. */
	good(coop_store_set_agent(store, 1000, "{}", &err));
	good(coop_store_remove_agent(store, 1000, 7, &err));
	coop_store_close(store);
}

static int check_row(void *user, const struct coop_store_agent *agent)
{
	assert_int_equal(agent->id, *(int64_t *)user);
	assert_int_equal(agent->parent, 0);
	assert_string_equal(agent->principal, "uid:1");
	assert_string_equal(agent->name, "main");
	assert_string_equal(agent->path, "main");
	assert_string_equal(agent->settings, "{\"b\":2}");
	assert_int_equal(agent->created_at, 5);
	return -ECANCELED;
}

static void gives_whole_rows(void **state)
{
	struct coop_store *store = open_store();
	int64_t id = add_agent(store, 0, "uid:1", "main");

	(void)add_agent(store, id, "uid:1", "main/a");
	good(coop_store_set_agent(store, id, "{\"b\":2}", &err));
	/* It ends with the first row, by what the callback says; and can be asked again. */
	assert_int_equal(coop_store_each_agent(store, check_row, &id, &err), -ECANCELED);
	assert_int_equal(coop_store_each_agent(store, check_row, &id, &err), -ECANCELED);
	coop_store_close(store);
}

static void keeps_tokens(void **state)
{
	struct coop_store *store = open_store();
	int64_t a = add_agent(store, 0, "uid:1", "main"),
		b = add_agent(store, a, "uid:1", "main/b");
	struct coop_store_token token = {.agent = a, .label = "ci", .expires_at = 50};
	int64_t first = 0, second = 0;

	token.hash[31] = 200;
	good(coop_store_add_token(store, &token, &first, &err));
	token = (struct coop_store_token){.agent = b};
	good(coop_store_add_token(store, &token, &second, &err));
	assert_true(second > first);
	good(coop_store_add_token(store, &token, NULL, &err));
	assert_string_equal(tokens(store), "1:ci:200:50 2::0:0 2::0:0");
	good(coop_store_revoke_token(store, second, 9, &err));
	store = open_again(store);
	assert_string_equal(tokens(store), "1:ci:200:50 2::0:0");
	good(coop_store_remove_agent(store, b, 9, &err));
	assert_string_equal(tokens(store), "1:ci:200:50");
	good(coop_store_revoke_token(store, 1000, 9, &err));
	coop_store_close(store);
}

static int check_process(void *user, const struct coop_store_process *process)
{
	assert_int_equal(process->n, 7);
	assert_string_equal(process->id, "p-7");
	assert_int_equal(process->agent, 1);
	assert_string_equal(process->principal, "uid:1");
	assert_string_equal(process->agent_path, "main");
	assert_int_equal(process->started_at, 1007);
	assert_int_equal(process->ended_at, 2007);
	assert_false(process->released);
	assert_string_equal(process->about, "{\"n\":7}");
	assert_string_equal(process->outcome, "{\"exit\":0}");
	return 0;
}

static void keeps_processes(void **state)
{
	struct coop_store *store = open_store();
	int64_t main = add_agent(store, 0, "uid:1", "main");

	assert_int_equal(last_n(store), 0);
	put(store, 7, main);
	assert_string_equal(history_of(store, main), "7*");
	good(coop_store_end_process(store, 7, 2007, "{\"exit\":0}", &err));
	store = open_again(store);
	good(coop_store_each_receipt(store, 10, check_process, NULL, &err));
	assert_int_equal(last_n(store), 7);
	/* Put again, it is replaced. */
	put(store, 7, main);
	assert_string_equal(history_of(store, main), "7*");
	/* No row: no error, and none is made. */
	good(coop_store_end_process(store, 8, 1, "{}", &err));
	good(coop_store_release(store, 8, &err));
	assert_string_equal(history_of(store, main), "7*");
	assert_int_equal(coop_store_end_process(store, UINT64_MAX, 1, "{}", &err), -EINVAL);
	coop_store_close(store);
}

static void loses_what_had_no_end(void **state)
{
	struct coop_store *store = open_store();
	int64_t main = add_agent(store, 0, "uid:1", "main");

	put_ended(store, 7, main);
	put(store, 8, main);
	put(store, 9, main);
	good(coop_store_lose(store, 5000, "{\"lost\":true}", &err));
	assert_string_equal(history_of(store, main), "9 8 7");
	good(coop_store_each_receipt(store, 10, see_process, NULL, &err));
	good(coop_store_prune(store, 2, &err));
	assert_string_equal(history_of(store, main), "9 8");
	coop_store_close(store);
}

static void receipts_by_principal(void **state)
{
	struct coop_store *store = open_store();
	int64_t a = add_agent(store, 0, "uid:1", "main"), b = add_agent(store, 0, "uid:2", "main");
	int64_t c = add_agent(store, a, "uid:1", "main/c"),
		d = add_agent(store, a, "uid:1", "main/d");

	put_ended(store, 1, a);
	put_ended(store, 2, b);
	for (uint64_t n = 3; n < 10; n++)
		put_ended(store, n, n % 2 ? a : c);
	put_ended(store, 10, d);
	put_ended(store, 11, a);
	put_ended(store, 12, 4711); /* an agent that nobody knows */
	good(coop_store_remove_agent(store, d, 1, &err));
	good(coop_store_release(store, 8, &err));
	assert_string_equal(receipts(store, 3), "2 7 9 11");
	assert_string_equal(receipts(store, 1), "2 11");
	assert_string_equal(receipts(store, 0), "");
	assert_string_equal(receipts(store, UINT64_MAX), "1 2 3 4 5 6 7 9 11");
	coop_store_close(store);
}

static void history_asks(void **state)
{
	struct coop_store *store = open_store();
	int64_t main = add_agent(store, 0, "uid:1", "main");
	int64_t a = add_agent(store, main, "uid:1", "main/a");
	int64_t b = add_agent(store, a, "uid:1", "main/a/b");
	int64_t other = add_agent(store, 0, "uid:2", "main");

	put_ended(store, 1, main);
	put_ended(store, 2, a);
	put_ended(store, 3, b);
	put_ended(store, 4, other);
	put(store, 5, b);
	put_ended(store, 6, main);
	assert_string_equal(history_of(store, main), "6 5* 3 2 1");
	assert_string_equal(history_of(store, a), "5* 3 2");
	assert_string_equal(history_of(store, other), "4");
	assert_string_equal(history_of(store, 4711), "");
	/* Removed ones stay visible, also below removed ones. */
	good(coop_store_remove_agent(store, b, 1, &err));
	good(coop_store_remove_agent(store, a, 1, &err));
	good(coop_store_prune(store, 100, &err));
	assert_string_equal(history_of(store, main), "6 5* 3 2 1");

	struct coop_store_query query = {.agent = main, .limit = 2};
	assert_string_equal(history(store, &query), "6 5*");
	query.before = 5;
	assert_string_equal(history(store, &query), "3 2");
	query = (struct coop_store_query){.agent = main, .limit = 10, .since = 1002, .until = 1005};
	assert_string_equal(history(store, &query), "3 2");
	query = (struct coop_store_query){.agent = main, .limit = 10, .path = "main/a/b"};
	assert_string_equal(history(store, &query), "5* 3");
	query.path = "main/x";
	assert_string_equal(history(store, &query), "");
	query = (struct coop_store_query){.agent = main};
	assert_string_equal(history(store, &query), "");
	coop_store_close(store);
}

static void prunes(void **state)
{
	struct coop_store *store = open_store();
	int64_t main = add_agent(store, 0, "uid:1", "main");
	int64_t a = add_agent(store, main, "uid:1", "main/a");
	int64_t b = add_agent(store, a, "uid:1", "main/a/b");
	struct coop_store_token token = {.agent = b};

	good(coop_store_add_token(store, &token, NULL, &err));
	put(store, 1, main); /* it still runs: it stays whatever is kept */
	put_ended(store, 2, b);
	for (uint64_t n = 3; n < 8; n++)
		put_ended(store, n, main);
	good(coop_store_remove_agent(store, b, 1, &err));
	good(coop_store_remove_agent(store, a, 1, &err));
	good(coop_store_prune(store, 6, &err));
	assert_string_equal(history_of(store, main), "7 6 5 4 3 2 1*");
	assert_string_equal(history_of(store, a), "2");
	good(coop_store_prune(store, 3, &err));
	assert_string_equal(history_of(store, main), "7 6 5 1*");
	/* With the last row that named it the agent went, with those above it that were only kept
	 * for it. */
	put_ended(store, 8, b);
	assert_string_equal(history_of(store, a), "");
	good(coop_store_prune(store, 0, &err));
	assert_string_equal(history_of(store, main), "1*");
	/* Numbers go on all the same. */
	assert_int_equal(last_n(store), 8);
	store = open_again(store);
	assert_int_equal(last_n(store), 8);
	coop_store_close(store);
}

static void transactions(void **state)
{
	struct coop_store *store = open_store();
	int64_t main = add_agent(store, 0, "uid:1", "main");

	good(coop_store_begin(store, &err));
	put(store, 1, main);
	good(coop_store_remove_agent(store, main, 1, &err)); /* what joins does not end it */
	good(coop_store_prune(store, 10, &err));
	coop_store_rollback(store);
	coop_store_rollback(store);
	assert_string_equal(agents(store), "uid:1/main");
	assert_string_equal(history_of(store, main), "");
	good(coop_store_begin(store, &err));
	put(store, 2, main);
	good(coop_store_commit(store, &err));
	assert_int_equal(coop_store_commit(store, &err), -EIO);
	store = open_again(store);
	assert_string_equal(history_of(store, main), "2*");
	coop_store_close(store);
}

static void meta(void **state)
{
	struct coop_store *store = open_store();
	char *text = (char *)"x";

	good(coop_store_get_meta(store, "anchor", &text, &err));
	assert_null(text);
	good(coop_store_set_meta(store, "anchor", "one", &err));
	good(coop_store_set_meta(store, "anchor", "two", &err));
	store = open_again(store);
	good(coop_store_get_meta(store, "anchor", &text, &err));
	assert_string_equal(text, "two");
	free(text);
	coop_store_close(store);
}

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, folder_make, folder_remove)
	const struct CMUnitTest tests[] = {
		IN_FOLDER(keeps_agents),          IN_FOLDER(gives_whole_rows),
		IN_FOLDER(keeps_tokens),          IN_FOLDER(keeps_processes),
		IN_FOLDER(loses_what_had_no_end), IN_FOLDER(receipts_by_principal),
		IN_FOLDER(history_asks),          IN_FOLDER(prunes),
		IN_FOLDER(transactions),          IN_FOLDER(meta),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
