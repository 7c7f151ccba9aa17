#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "policy/glob.h"
#include "policy/match.h"
#include "policy/policy.h"
#include "policy/risk.h"
#include "policy/rules.h"

/* Steps that all patterns of all levels may take together: some milliseconds. */
#define PATTERN_BUDGET ((size_t)4 * 1024 * 1024)

struct judge {
	const struct coop_policy *const *levels;
	size_t count;
	const struct coop_policy_command *command;
	struct coop_runs runs;
	struct coop_findings found;
	struct coop_verdict *verdict;
	double confidence; /* of what is not about one label */
};

/* The place for a decision, the strictest first and the earlier of equals; NULL where it would come after the last place. */
static struct coop_decision *insert(struct coop_verdict *verdict, enum coop_action action)
{
	size_t at = verdict->count;

	while (at && verdict->decisions[at - 1].action < action)
		at--;
	if (at == COOP_DECISIONS_MAX)
		return NULL;
	if (verdict->count < COOP_DECISIONS_MAX)
		verdict->count++;
	memmove(&verdict->decisions[at + 1], &verdict->decisions[at],
		(verdict->count - 1 - at) * sizeof *verdict->decisions);
	if (verdict->action < action)
		verdict->action = action;
	return &verdict->decisions[at];
}

__attribute__((format(printf, 6, 7))) static void say(struct judge *judge, enum coop_action action,
						      uint32_t labels, double confidence,
						      const char *source, const char *format, ...)
{
	struct coop_decision *decision = insert(judge->verdict, action);
	va_list list;

	if (!decision)
		return;
	decision->action = action;
	decision->labels = labels;
	decision->confidence = confidence;
	(void)snprintf(decision->source, sizeof decision->source, "%s", source);
	va_start(list, format);
	(void)vsnprintf(decision->reason, sizeof decision->reason, format, list);
	va_end(list);
}

static void say_finding(struct judge *judge, enum coop_action action, uint32_t labels,
			const char *source, const char *rule, const struct coop_finding *finding)
{
	say(judge, action, labels, finding->confidence, source, "%s: %.60s %s%s%.80s", rule,
	    finding->program, finding->what, finding->word ? " " : "",
	    finding->word ? finding->word : "");
}

/* One decision for each level and label that the level names. */
static void judge_labels(struct judge *judge, const struct coop_policy *level)
{
	for (unsigned i = 0; i < COOP_RISK_COUNT; i++) {
		const struct coop_choice *choice = &level->risk[i];

		if (i != COOP_RISK_DENY_PATTERN && judge->found.labels & 1u << i &&
		    coop_choice_made(choice))
			say_finding(judge, choice->action, 1u << i, choice->source,
				    coop_risk_name((enum coop_risk)i), &judge->found.of[i]);
	}
}

static const struct coop_rule *pattern_hit(const struct coop_rules *patterns, const char *text,
					   size_t *budget)
{
	for (size_t i = 0; i < patterns->count; i++) {
		const char *pattern = patterns->items[i].text;
		if (coop_glob_special(pattern) ? coop_glob_match(pattern, text, budget)
					       : strstr(text, pattern) != NULL)
			return &patterns->items[i];
	}
	return NULL;
}

static void judge_patterns(struct judge *judge)
{
	const uint32_t label = 1u << COOP_RISK_DENY_PATTERN;
	size_t budget = PATTERN_BUDGET;

	for (size_t i = 0; i < judge->count; i++) {
		const struct coop_policy *level = judge->levels[i];
		const struct coop_choice *choice = &level->risk[COOP_RISK_DENY_PATTERN];
		const struct coop_rule *rule =
			judge->command->display
				? pattern_hit(&level->patterns, judge->command->display, &budget)
				: NULL;

		if (!rule)
			continue;
		judge->found.labels |= label;
		say(judge, coop_choice_made(choice) ? choice->action : COOP_ACTION_DENY, label, 1.0,
		    rule->source, "deny_patterns: the command matches %.160s", rule->text);
	}
	/* A level without the pattern may have its say about the label all the same. */
	for (size_t i = 0; i < judge->count && judge->found.labels & label; i++) {
		const struct coop_choice *choice = &judge->levels[i]->risk[COOP_RISK_DENY_PATTERN];
		if (choice->action > COOP_ACTION_ALLOW)
			say(judge, choice->action, label, 1.0, choice->source,
			    "deny_pattern: a pattern of this or another level matches");
	}
}

/* The shell's own: a builtin, or a function that the line itself makes. A program of that name is not hidden by the
 * function: the line may never come to making it. */
static bool of_shell(const struct judge *judge, const struct coop_run *run,
		     struct coop_match *match)
{
	const struct coop_words *words = &judge->runs.words;

	/* Behind sudo or env it is a program again. */
	if (!coop_runs_command(&judge->runs, run)->shell || run->typed != run->name || run->wrapped)
		return false;
	if (run->program->traits & COOP_TRAIT_BUILTIN)
		return true;
	for (size_t i = 0; i < words->function_count; i++) {
		if (!strcmp(words->functions[i].name, run->name))
			return !coop_match_exists(match);
	}
	return false;
}

/* Once for each list: one program that is not allowed says enough. */
static void judge_lists(struct judge *judge, const struct coop_policy *level)
{
	bool denied = !level->denied.count, refused = !level->allowed.present;

	for (size_t i = 0; i < judge->runs.count && !(denied && refused); i++) {
		const struct coop_run *run = &judge->runs.items[i];
		struct coop_match match = {.run = run,
					   .cwd = coop_runs_command(&judge->runs, run)->cwd,
					   .path = judge->command->path};
		const struct coop_rule *rule =
			denied ? NULL : coop_match_find(&level->denied, &match);

		if (rule) {
			denied = true;
			say(judge, COOP_ACTION_DENY, 0, 1.0, rule->source,
			    "denied_commands: %.80s is denied by %.80s", run->typed, rule->text);
		}
		if (refused || of_shell(judge, run, &match))
			continue;
		if (run->flags & COOP_WORD_COMPUTED) {
			refused = true;
			say(judge, COOP_ACTION_DENY, 0, 0.6, level->allowed.source,
			    "allowed_commands: the program %.80s is known only when it runs",
			    run->typed);
		} else if (!coop_match_find(&level->allowed, &match)) {
			refused = true;
			say(judge, COOP_ACTION_DENY, 0, 1.0, level->allowed.source,
			    "allowed_commands: %.80s is not in the list", run->typed);
		}
	}
	if (!refused && judge->runs.words.too_long)
		say(judge, COOP_ACTION_DENY, 0, 0.5, level->allowed.source,
		    "allowed_commands: the command is too long to judge");
	else if (!refused && judge->runs.unknown)
		say(judge, COOP_ACTION_DENY, 0, 0.6, level->allowed.source,
		    "allowed_commands: what a shell reads here is known only when it runs");
}

static void judge_level(struct judge *judge, const struct coop_policy *level)
{
	if (level->denied.count || level->allowed.present)
		judge_lists(judge, level);
	judge_labels(judge, level);
	if (level->mode.action != COOP_ACTION_ALLOW)
		say(judge, level->mode.action, 0, 1.0, level->mode.source,
		    "%s: this policy only explains", coop_action_name(level->mode.action));
}

/* What was seen and left alone: an answer without it would read as praise. */
static void note_rest(struct judge *judge)
{
	char names[200] = "";
	size_t used = 0, decided = judge->verdict->count;
	uint32_t rest = judge->found.labels;

	for (size_t i = 0; i < decided; i++)
		rest &= ~judge->verdict->decisions[i].labels;
	for (unsigned i = 0; i < COOP_RISK_COUNT; i++) {
		if (rest & 1u << i && used < sizeof names)
			used += (size_t)snprintf(names + used, sizeof names - used, "%s%s",
						 used ? ", " : "",
						 coop_risk_name((enum coop_risk)i));
	}
	if (used)
		say(judge, COOP_ACTION_ALLOW, rest, judge->confidence, "built-in",
		    "no rule forbids %s", names);
	else if (!decided && judge->runs.words.too_long)
		say(judge, COOP_ACTION_ALLOW, 0, judge->confidence, "built-in",
		    "the command is too long to judge; no rule forbids what was read of it");
	else if (!decided && judge->confidence < 1.0)
		say(judge, COOP_ACTION_ALLOW, 0, judge->confidence, "built-in",
		    "some of this is known only when it runs; no rule forbids what was read");
}

static void judge_all(struct judge *judge)
{
	struct coop_scene scene = {
		.runs = &judge->runs, .command = judge->command, .found = &judge->found};

	coop_risk_find(&scene);
	judge->confidence = judge->runs.words.too_long ? 0.5 : judge->runs.unknown ? 0.6 : 1.0;
	if (judge->found.catastrophic)
		say_finding(judge, COOP_ACTION_DENY, judge->found.labels, "built-in",
			    "no policy allows this", &judge->found.catastrophe);
	judge_patterns(judge);
	for (size_t i = 0; i < judge->count; i++)
		judge_level(judge, judge->levels[i]);
	note_rest(judge);
	judge->verdict->labels = judge->found.labels;
}

int coop_policy_decide(const struct coop_policy *const *levels, size_t count,
		       const struct coop_policy_command *command, struct coop_verdict *ret)
{
	/* Not zeroed: it is large, and only what its counts say is ever read. */
	struct judge judge;

	judge.levels = levels;
	judge.count = count;
	judge.command = command;
	judge.verdict = ret;
	ret->action = COOP_ACTION_ALLOW;
	ret->labels = 0;
	ret->count = 0;
	coop_runs_init(&judge.runs, command->home);
	coop_runs_read(&judge.runs, command->argv, command->shell_command, command->cwd);
	bool no_memory = judge.runs.words.no_memory;
	if (!no_memory)
		judge_all(&judge);
	coop_runs_clear(&judge.runs);
	return no_memory ? -ENOMEM : 0;
}

static void write_labels(uint32_t labels, struct coop_jsonw *w)
{
	coop_jsonw_array(w, "risk_labels");
	for (unsigned i = 0; i < COOP_RISK_COUNT; i++) {
		if (labels & 1u << i)
			coop_jsonw_string(w, NULL, coop_risk_name((enum coop_risk)i));
	}
	coop_jsonw_array_end(w);
}

void coop_verdict_write(const struct coop_verdict *verdict, const char *display,
			struct coop_jsonw *w, const char *name)
{
	coop_jsonw_array(w, name);
	for (size_t i = 0; i < verdict->count; i++) {
		const struct coop_decision *decision = &verdict->decisions[i];

		coop_jsonw_begin(w, NULL);
		coop_jsonw_string(w, "action", coop_action_name(decision->action));
		coop_jsonw_string(w, "reason", decision->reason);
		coop_jsonw_string(w, "source", decision->source);
		write_labels(decision->labels, w);
		coop_jsonw_fixed(w, "confidence", decision->confidence);
		coop_jsonw_string(w, "display", display);
		coop_jsonw_end(w);
	}
	coop_jsonw_array_end(w);
}
