/* What an agent may run: rules of one level (the operator's, or one agent's), and the verdict of
 * all levels on one command.
 *
 * This is an early filter over words, decided before anything is started; it contains nothing and
 * never says so. The strictest level wins, so adding a level can only narrow. Lines for a shell are
 * read as the shell would, wrappers (env, sudo, xargs, …) and texts for further shells included;
 * programs in other languages, scripts in files and what runs on other machines are not. Nothing
 * here runs a program or keeps state; the file system is looked at only to resolve a program's
 * path, and only where a rule needs it.
 *
 * A command is judged whole or denied ("built-in"). An argv has no limit of its own here: up to
 * 131072 words and 2 MiB are judged without a copy. What a shell reads (mode shell, sh -c, eval)
 * may have 1 MiB of text, 2 MiB with all texts inside it, 16384 commands, 131072 words, 256
 * variables, and 24 things inside each other; the body of a here-document counts as text only.
 * Searches through such a line have a limit of their own, which only lines that were made for it
 * reach. */
#ifndef COOP_POLICY_POLICY_H
#define COOP_POLICY_POLICY_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json/jsonw.h"
#include "interface/err.h"

/* From the mildest to the strictest. */
enum coop_action {
	COOP_ACTION_ALLOW,
	COOP_ACTION_EXPLAIN_ONLY,
	COOP_ACTION_DRY_RUN,
	COOP_ACTION_REQUIRE_APPROVAL,
	COOP_ACTION_DENY,
};
const char *coop_action_name(enum coop_action action); /* "require_approval" */

enum coop_risk {
	COOP_RISK_DESTRUCTIVE,
	COOP_RISK_WRITE_INTENT,
	COOP_RISK_CURL_PIPE_SHELL,
	COOP_RISK_CREDENTIAL_FILE_READ,
	COOP_RISK_NETWORK_EXFIL,
	COOP_RISK_SUDO,
	COOP_RISK_PACKAGE_INSTALL,
	COOP_RISK_GIT_FORCE_PUSH,
	COOP_RISK_PROCESS_KILL,
	COOP_RISK_OUTSIDE_WORKSPACE,
	COOP_RISK_DENY_PATTERN,
	COOP_RISK_COUNT,
};
const char *coop_risk_name(enum coop_risk risk);

struct coop_policy; /* the rules of one level */

/* Says nothing: allows all. NULL without memory. */
struct coop_policy *coop_policy_new(void);
void coop_policy_free(struct coop_policy *policy); /* NULL is fine */

/* What holds where the operator says nothing else: deny destructive, curl_pipe_shell,
 * credential_file_read, network_exfil. */
void coop_policy_standard(struct coop_policy *policy);

/* The lists name programs: an entry with a slash is a path and fits the file that it leads to, any
 * other fits a name as typed or of the file found. They hold for argv[0], so a shell line needs its
 * shell in an allow list too, and for every program that the line runs; what a shell does itself
 * (cd, echo, if) needs no entry. A file that . or source reads is a program here, too. A name or
 * text that is computed when it runs is not in an allow list. The deny list has such a name judged
 * by its sure parts: b${x}sh fits bash, /opt/$x/nmap fits nmap, r?m fits rm. A name without any
 * sure part ($x) fits nothing there; who minds that needs an allow list.
 *
 * Files are looked up anew in every decision, each program and each entry once: so an entry fits a
 * file that comes later or is replaced. More than 4096 lookups, or more than 1024 programs with a
 * list to judge them by, are too long to be judged.
 *
 * One rule, as coop.conf and `coop agent set` say it. Keys: denied_commands, allowed_commands,
 * deny_patterns (each adds one entry; allowed_commands with an empty value makes the list present
 * and empty), risk.<label> (allow, require_approval, deny), mode (enforce, dry_run, explain_only).
 * `source` is where it stands ("coop.conf:12"), copied, for explanations. At most 256 entries a
 * list, 1024 bytes each. 0, or the error filled with the field named by key. */
int coop_policy_set(struct coop_policy *policy, const char *key, const char *value,
		    const char *source, struct coop_err *err);

/* {"denied_commands": [..], "allowed_commands": [..] | absent, "deny_patterns": [..], "risk":
 * {label: action}, "mode": ".."}, every member may be absent or null. Unknown members, wrong types:
 * the error filled, field "policy.…". */
int coop_policy_from_json(const json_t *json, const char *source, struct coop_policy **ret,
			  struct coop_err *err);
/* The same shape. */
void coop_policy_write(const struct coop_policy *policy, struct coop_jsonw *w, const char *name);

/* One command, as it would be started. All borrowed. */
struct coop_policy_command {
	/* NULL-terminated; of mode shell: the shell's own, ["/bin/bash","-c",command] */
	const char *const *argv;
	const char *shell_command; /* mode shell: the command line; NULL otherwise */
	const char *display;       /* for deny_patterns; NULL: none apply */
	bool display_cut;          /* there is more of it: a level with deny_patterns denies */
	const char *cwd;           /* resolved, absolute */
	const char *home;
	const char *path;             /* the PATH that it will get; NULL: none */
	const char *const *workspace; /* roots, absolute, NULL-terminated; NULL: not bound to any */
	/* Whether a path may be looked at; one that may not is as one that is not there. NULL: all
	 * may. */
	bool (*may_look)(void *user, const char *path);
	void *user;
};

struct coop_decision {
	enum coop_action action;
	char reason[240]; /* a sentence */
	char source[96];  /* "coop.conf:12", "agent main/tester", "built-in" */
	uint32_t labels;  /* bits of enum coop_risk */
	/* 1.0: read from literal words; less where something is computed only when it runs */
	double confidence;
};

#define COOP_DECISIONS_MAX 16u

struct coop_verdict {
	enum coop_action action; /* the strictest */
	uint32_t labels;         /* all that were found, also those that are allowed */
	size_t count;
	/* every rule that had something to say; the strictest first */
	struct coop_decision decisions[COOP_DECISIONS_MAX];
};

/* Judges. levels[0] is the operator's. The built-in list of catastrophic commands comes first and
 * cannot be allowed. 0 or -ENOMEM. */
int coop_policy_decide(const struct coop_policy *const *levels, size_t count,
		       const struct coop_policy_command *command, struct coop_verdict *ret);

/* "decisions": [{action, reason, source, risk_labels, confidence, display}…] */
void coop_verdict_write(const struct coop_verdict *verdict, const char *display,
			struct coop_jsonw *w, const char *name);

#endif
