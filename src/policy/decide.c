#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/json/jsonw.h"
#include "base/text/glob.h"
#include "policy/match.h"
#include "policy/policy.h"
#include "policy/risk.h"
#include "policy/rules.h"
#include "policy/runs.h"

/* Steps that all patterns of all levels may take together: some milliseconds. A plain text is found
 * much faster. */
#define PATTERN_BUDGET ((size_t)8 * 1024 * 1024)
#define PLAIN_SPEED 16u

struct judge {
	const struct coop_policy *const *levels;
	size_t count;
	const struct coop_policy_command *command;
	struct coop_runs runs;
	struct coop_findings found;
	struct coop_verdict *verdict;
	double confidence; /* of what is not about one label */
	struct coop_matches matches;
	bool no_memory;
};

/* The place for a decision, the strictest first and the earlier of equals; NULL where it would come
 * after the last place. */
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

/* Whoever is not judged is not let through: padding would be a way around every rule. */
static void say_too_long(struct judge *judge)
{
	say(judge, COOP_ACTION_DENY, judge->found.labels, 1.0, "built-in",
	    "the command is too long to be judged; put it into a script file and run that");
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

/* One that runs out of budget counts as found, as in coop_glob_match. */
static bool plain_hit(const char *pattern, const char *text, size_t *budget)
{
	size_t steps = strlen(text) / PLAIN_SPEED + 1;

	if (*budget < steps) {
		*budget = 0;
		return true;
	}
	*budget -= steps;
	return strstr(text, pattern) != NULL;
}

static const struct coop_rule *pattern_hit(const struct coop_rules *patterns, const char *text,
					   size_t *budget)
{
	for (size_t i = 0; i < patterns->count; i++) {
		const char *pattern = patterns->items[i].text;
		if (coop_glob_special(pattern) ? coop_glob_match(pattern, text, budget)
					       : plain_hit(pattern, text, budget))
			return &patterns->items[i];
	}
	return NULL;
}

/* A pattern may fit what is not there to be seen. */
static void judge_cut(struct judge *judge)
{
	const uint32_t label = 1u << COOP_RISK_DENY_PATTERN;

	for (size_t i = 0; i < judge->count && judge->command->display_cut; i++) {
		const struct coop_rules *patterns = &judge->levels[i]->patterns;
		if (!patterns->count)
			continue;
		judge->found.labels |= label;
		say(judge, COOP_ACTION_DENY, label, 1.0, patterns->source,
		    "deny_patterns: the command is too long to look for patterns in; "
		    "put it into a script file and run that");
	}
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

/* The shell's own: a builtin, or a function that the line itself makes. A program of that name is
 * not hidden by the function: the line may never come to making it. */
static bool of_shell(struct judge *judge, struct coop_match *match)
{
	const struct coop_words *words = &judge->runs.words;

	if (!match->shell)
		return false;
	if (match->run->program->traits & COOP_TRAIT_BUILTIN)
		return true;
	for (size_t i = 0; i < words->function_count; i++) {
		if (!strcmp(words->functions[i].name, match->run->name))
			return !coop_match_exists(&judge->matches, match);
	}
	return false;
}

static bool judge_denied(struct judge *judge, struct coop_match_list *list,
			 struct coop_match *match)
{
	const char *typed = match->run->typed;
	const struct coop_rule *rule = coop_match_find(&judge->matches, list, match);

	if (rule) {
		say(judge, COOP_ACTION_DENY, 0, 1.0, rule->source,
		    "denied_commands: %.80s is denied by %.80s", typed, rule->text);
		return true;
	}
	rule = coop_match_could(list->rules, match);
	if (rule)
		say(judge, COOP_ACTION_DENY, 0, 0.6, rule->source,
		    "denied_commands: %.80s may turn out to be %.80s", typed, rule->text);
	return rule != NULL;
}

static bool judge_refused(struct judge *judge, struct coop_match_list *list,
			  struct coop_match *match)
{
	const char *typed = match->run->typed, *source = list->rules->source;

	if (of_shell(judge, match))
		return false;
	if (match->run->flags & COOP_WORD_COMPUTED) {
		say(judge, COOP_ACTION_DENY, 0, 0.6, source,
		    "allowed_commands: the program %.80s is known only when it runs", typed);
		return true;
	}
	if (coop_match_find(&judge->matches, list, match))
		return false;
	say(judge, COOP_ACTION_DENY, 0, 1.0, source, "allowed_commands: %.80s is not in the list",
	    typed);
	return true;
}

/* Once for each list: one program that is not allowed says enough. */
static void judge_lists(struct judge *judge, const struct coop_policy *level)
{
	bool denied = !level->denied.count, refused = !level->allowed.present;
	struct coop_match_list deny, allow;

	coop_match_list_init(&deny, &level->denied);
	coop_match_list_init(&allow, &level->allowed);
	for (size_t i = 0; i < judge->matches.count && !(denied && refused); i++) {
		struct coop_match *match = &judge->matches.items[i];

		denied = denied || judge_denied(judge, &deny, match);
		refused = refused || judge_refused(judge, &allow, match);
	}
	if (!refused && judge->runs.unknown)
		say(judge, COOP_ACTION_DENY, 0, 0.6, level->allowed.source,
		    "allowed_commands: what a shell reads here is known only when it runs");
}

static bool has_list(const struct coop_policy *level)
{
	return level->denied.count || level->allowed.present;
}

/* Which programs there are is found out once for all levels, and only where one asks. */
static void judge_programs(struct judge *judge)
{
	bool wanted = false;

	for (size_t i = 0; i < judge->count; i++)
		wanted |= has_list(judge->levels[i]);
	if (!wanted)
		return;
	coop_matches_make(&judge->matches, &judge->runs, judge->command);
	for (size_t i = 0; i < judge->count && !judge->matches.too_long; i++) {
		if (has_list(judge->levels[i]))
			judge_lists(judge, judge->levels[i]);
	}
	judge->no_memory |= judge->matches.no_memory;
	if (judge->matches.too_long)
		say_too_long(judge);
	coop_matches_clear(&judge->matches);
}

static void judge_level(struct judge *judge, const struct coop_policy *level)
{
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
	else if (!decided && judge->confidence < 1.0)
		say(judge, COOP_ACTION_ALLOW, 0, judge->confidence, "built-in",
		    "some of this is known only when it runs; no rule forbids what was read");
}

static void judge_all(struct judge *judge)
{
	struct coop_scene scene = {
		.runs = &judge->runs, .command = judge->command, .found = &judge->found};

	judge->found.labels = 0;
	if (!judge->runs.words.too_long)
		coop_risk_find(&scene);
	judge->verdict->labels = judge->found.labels;
	if (judge->runs.words.too_long || judge->found.too_long) {
		say_too_long(judge);
		return;
	}
	judge->confidence = judge->runs.unknown ? 0.6 : 1.0;
	if (judge->found.catastrophic)
		say_finding(judge, COOP_ACTION_DENY, judge->found.labels, "built-in",
			    "no policy allows this", &judge->found.catastrophe);
	judge_patterns(judge);
	judge_cut(judge);
	judge_programs(judge);
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
	judge.no_memory = judge.runs.words.no_memory;
	if (!judge.no_memory)
		judge_all(&judge);
	coop_runs_clear(&judge.runs);
	return judge.no_memory ? -ENOMEM : 0;
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
