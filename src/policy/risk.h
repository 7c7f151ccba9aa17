/* What a command line would do, as labels: found in its words, never by a search through its
 * text. */
#ifndef COOP_POLICY_RISK_H
#define COOP_POLICY_RISK_H

#include "policy/paths.h"
#include "policy/policy.h"
#include "policy/runs.h"

/* Why a label was given: "PROGRAM WHAT WORD". All borrowed. */
struct coop_finding {
	const char *program, *what, *word; /* word: may be NULL */
	double confidence;
};

struct coop_findings {
	uint32_t labels;
	struct coop_finding of[COOP_RISK_COUNT]; /* of the labels that are set */
	bool catastrophic;
	bool too_long; /* a search took too many steps, and its finding may be missing */
	size_t steps;
	struct coop_finding catastrophe;
};

/* What the finders look at, and where they put what they find. */
struct coop_scene {
	const struct coop_runs *runs;
	const struct coop_policy_command *command;
	struct coop_findings *found;
};

/* Fills scene->found. */
void coop_risk_find(const struct coop_scene *scene);

/* Counts steps of a search that a line could make much of. False: enough of it. */
bool coop_risk_spend(const struct coop_scene *scene, size_t steps);

/* Notes a label; the surest finding of it is kept. `word` NULL: nothing to show. */
void coop_risk_add(const struct coop_scene *scene, enum coop_risk risk, const char *program,
		   const char *what, const struct coop_word *word);
void coop_risk_catastrophe(const struct coop_scene *scene, const char *program, const char *what,
			   const struct coop_word *word);

/* A name for messages: the command's program, or "the shell" where only redirections stand. */
const char *coop_risk_program(const struct coop_scene *scene, uint32_t command);

/* The path that an argument may name: what follows `=`, `@` or a short option's letter, else all of
 * it. NULL: none. */
const char *coop_risk_path(const struct coop_word *word);

/* The finders, one file each. */
void coop_destruction_find(const struct coop_scene *scene, const struct coop_run *run);
void coop_destruction_redirect(const struct coop_scene *scene, uint32_t command,
			       const struct coop_word *word);
void coop_catastrophe_find(const struct coop_scene *scene, const struct coop_run *run);
void coop_catastrophe_functions(const struct coop_scene *scene);
void coop_credential_find(const struct coop_scene *scene, const struct coop_run *run);
void coop_credential_redirect(const struct coop_scene *scene, uint32_t command,
			      const struct coop_word *word);
void coop_network_find(const struct coop_scene *scene, const struct coop_run *run);
void coop_network_redirect(const struct coop_scene *scene, uint32_t command,
			   const struct coop_word *word);
void coop_boundary_find(const struct coop_scene *scene, const struct coop_run *run, size_t count);
void coop_boundary_redirect(const struct coop_scene *scene, uint32_t command,
			    const struct coop_word *word);
void coop_fetched_find(const struct coop_scene *scene, const struct coop_run *run);

#endif
