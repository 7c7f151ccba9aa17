/* The table of verbs. A new verb is one file and one row here. */
#include "doors/cli/verbs.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "doors/cli/option_rows.h"

const struct cli_verb *const cli_verbs[] = {
	&cli_verb_run,
	&cli_verb_ps,
	&cli_verb_status,
	&cli_verb_logs,
	&cli_verb_wait,
	&cli_verb_stdin,
	&cli_verb_signal,
	&cli_verb_kill,
	&cli_verb_stop,
	&cli_verb_freeze,
	&cli_verb_thaw,
	&cli_verb_cancel,
	&cli_verb_rm,
	&cli_verb_gc,
	&cli_verb_attach,
	&cli_verb_screen,
	&cli_verb_top,
	&cli_verb_history,
	&cli_verb_events,
	&cli_verb_agent,
	&cli_verb_token,
	&cli_verb_session,
	&cli_verb_policy,
	&cli_verb_audit,
	&cli_verb_op,
	&cli_verb_doctor,
	&cli_verb_info,
	&cli_verb_shells,
	&cli_verb_mcp,
	&cli_verb_tool,
	&cli_verb_serve,
	&cli_verb_keeper,
	&cli_verb_reload,
	&cli_verb_shutdown,
	&cli_verb_version,
	&cli_verb_help,
	NULL,
};

int cli_failure(const struct cli_verb *verb)
{
	return verb->failure ? verb->failure : CLI_FAILED;
}

struct cli_option *cli_verb_options(const struct cli_verb *verb)
{
	return cli_options_complete(verb->options, verb->operation ? verb->operation->args : NULL);
}

const char *cli_verb_word(const struct cli_verb *verb)
{
	const char *space = strrchr(verb->name, ' ');
	return space ? space + 1 : verb->name;
}

static const struct cli_verb *find(const struct cli_verb *const *verbs, const char *word)
{
	for (; *verbs; verbs++)
		if (strcmp(cli_verb_word(*verbs), word) == 0)
			return *verbs;
	return NULL;
}

const struct cli_verb *cli_verb_find(char *const *words, size_t *ret_used)
{
	const struct cli_verb *verb = words[0] ? find(cli_verbs, words[0]) : NULL;
	const struct cli_verb *sub =
		verb && verb->subs && words[1] ? find(verb->subs, words[1]) : NULL;
	*ret_used = sub ? 2 : 1;
	return sub ? sub : verb;
}

int cli_group_run(struct cli *cli, const void *settings, size_t count, char **operands)
{
	char list[128] = "";
	for (const struct cli_verb *const *sub = cli->verb->subs; *sub; sub++) {
		const size_t used = strlen(list);
		(void)snprintf(list + used, sizeof(list) - used, "%s%s",
			       !used    ? ""
			       : sub[1] ? ", "
					: " or ",
			       cli_verb_word(*sub));
	}
	return count ? cli_misuse(cli, "there is no %s; it is %s", operands[0], list)
		     : cli_misuse(cli, "say what: %s", list);
}
