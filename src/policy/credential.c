/* Reading of files that hold keys, tokens and passwords: label credential_file_read. */
#include <string.h>

#include "base/text/glob.h"
#include "policy/paths.h"
#include "policy/programs.h"
#include "policy/risk.h"
#include "policy/runs.h"
#include "policy/words.h"

static const char *const names[] = {
	".env",          ".netrc",      "_netrc",           ".npmrc",       ".pypirc",
	".pgpass",       "id_rsa",      "id_dsa",           "id_ecdsa",     "id_ed25519",
	"id_ed25519_sk", "id_ecdsa_sk", ".git-credentials", ".vault-token", NULL};

/* Ends of paths, each a folder and a name. */
static const char *const places[][2] = {
	{"/.aws", "credentials"},
	{"/.docker", "config.json"},
	{"/.kube", "config"},
	{"/.config/gh", "hosts.yml"},
	{"/.cargo", "credentials"},
	{"/.cargo", "credentials.toml"},
	{"/.config/gcloud", "application_default_credentials.json"},
	{"/etc", "shadow"},
	{"/etc", "gshadow"},
	{"/.gem", "credentials"},
	{"/.azure", "accessTokens.json"},
};

static bool ends_with(const char *text, size_t size, const char *end)
{
	size_t length = strlen(end);

	return size >= length && !strncmp(text + size - length, end, length);
}

/* A pattern counts where it says something about the name: `.e*` does, `*` does not. */
static bool telling_pattern(const char *name)
{
	size_t literal = 0;

	if (!coop_glob_special(name))
		return false;
	for (const char *c = name; *c; c++)
		literal += !strchr("*?[]", *c);
	return literal >= 2 && literal < strlen(name);
}

static bool fits(const char *name, const char *known, bool pattern)
{
	return pattern ? coop_glob_match(name, known, NULL) : !strcmp(name, known);
}

static bool secret_name(const char *name, bool pattern)
{
	static const char *const ends[] = {".pem", ".key", ".p12", ".pfx", ".ppk", NULL};
	static const char *const samples[] = {".example", ".sample",   ".template",
					      ".dist",    ".defaults", NULL};
	size_t size = strlen(name);

	for (size_t i = 0; names[i]; i++) {
		if ((pattern || *name == *names[i]) && fits(name, names[i], pattern))
			return true;
	}
	for (size_t i = 0; ends[i]; i++) {
		if (ends_with(name, size, ends[i]))
			return true;
	}
	if (strncmp(name, ".env.", 5) != 0)
		return false;
	for (size_t i = 0; samples[i]; i++) {
		if (ends_with(name, size, samples[i]))
			return false;
	}
	return true;
}

/* In ~/.ssh all but the files that are no secret. */
static bool secret_in_ssh(const char *name)
{
	return !ends_with(name, strlen(name), ".pub") && strncmp(name, "known_hosts", 11) != 0 &&
	       strcmp(name, "config") != 0 && strcmp(name, "authorized_keys") != 0;
}

static bool secret_path(const char *path)
{
	const char *name = coop_path_name(path);
	size_t folder = name > path ? (size_t)(name - path) - 1 : 0;
	bool pattern = telling_pattern(name);

	if (secret_name(name, pattern))
		return true;
	if (!strcmp(name, ".ssh") || !strcmp(name, ".gnupg") || !strcmp(name, ".aws"))
		return true;
	if (strstr(path, "/.gnupg/"))
		return true;
	/* All that follows lies in /etc or in a hidden folder. */
	if (!strstr(path, "/.") && !strstr(path, "/etc/"))
		return false;
	if (ends_with(path, folder, "/.ssh"))
		return secret_in_ssh(name);
	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		if (ends_with(path, folder, places[i][0]) &&
		    (fits(name, places[i][1], pattern) || !strcmp(name, "*")))
			return true;
	}
	return false;
}

static bool secret(const struct coop_scene *scene, uint32_t command, const char *text)
{
	struct coop_path path;

	if (coop_path_make(&path, scene->runs->words.commands[command].cwd, text))
		return secret_path(path.text);
	return secret_path(text);
}

static void check(const struct coop_scene *scene, const struct coop_run *run,
		  const struct coop_word *word)
{
	const char *text = coop_risk_path(word);

	if (!text)
		return;
	/* name=@file, rev:file */
	const char *at = strstr(text, "=@");
	if (at)
		text = at + 2;
	const char *colon = run->program->kind == COOP_KIND_GIT ? strchr(text, ':') : NULL;
	if (secret(scene, run->command, text) || (colon && secret(scene, run->command, colon + 1)))
		coop_risk_add(scene, COOP_RISK_CREDENTIAL_FILE_READ, run->name, "reads", word);
}

/* Options whose file is used and not shown: a key to log in with, a certificate to check with. */
static bool used_only(const struct coop_args *args, enum coop_kind kind)
{
	static const char longs[] =
		" --env-file --cert --key --cacert --cert-file --key-file --kubeconfig --capath ";
	char name[32];
	size_t size = strcspn(args->option, "=");

	if ((kind == COOP_KIND_SCP || kind == COOP_KIND_SFTP) && args->letter == 'i')
		return true;
	if (kind == COOP_KIND_CURL && args->letter == 'E')
		return true;
	if (size >= sizeof name)
		return false;
	memcpy(name, args->option, size);
	name[size] = '\0';
	return coop_program_listed(longs, name);
}

/* Git shows content with a few verbs only. */
static bool git_shows(const struct coop_run *run, const struct coop_word *words)
{
	static const char verbs[] = " show diff blame annotate cat-file grep archive log ";

	for (size_t i = 0; i < run->count; i++) {
		if (coop_program_listed(verbs, words[i].text))
			return true;
		if (words[i].text[0] != '-' && !(i && words[i - 1].text[0] == '-'))
			return false;
	}
	return false;
}

/* Whether the program reads what it names at all. */
static bool reads(const struct coop_scene *scene, const struct coop_run *run)
{
	const struct coop_word *words = coop_runs_words(scene->runs, run);
	enum coop_kind kind = run->program->kind;

	if (kind == COOP_KIND_GIT)
		return git_shows(run, words);
	if (run->program->traits & (COOP_TRAIT_QUIET | COOP_TRAIT_WRAPPER | COOP_TRAIT_TEXT))
		return false;
	if (kind == COOP_KIND_SED)
		return !coop_args_have(run->program, words, run->count, 'i', "--in-place");
	return kind != COOP_KIND_TEE && kind != COOP_KIND_MV && kind != COOP_KIND_SSH;
}

/* What the arguments before this one make of it. */
static bool written(const struct coop_run *run, const struct coop_word *words, size_t index)
{
	static const char outputs[] = " -out -keyout --output -o --env-file -inform ";

	/* cp, ln, install: the last one is the copy. */
	if (run->program->kind == COOP_KIND_CP && index + 1 == run->count)
		return true;
	return index && coop_program_listed(outputs, words[index - 1].text) &&
	       run->program->kind != COOP_KIND_GREP;
}

/* find -name .env -exec cat {} +, find -name .env | xargs cat */
static bool feeds_reader(const struct coop_scene *scene, const struct coop_run *find)
{
	const struct coop_runs *runs = scene->runs;

	for (size_t i = 0; i < runs->count && coop_risk_spend(scene, 4); i++) {
		const struct coop_run *run = &runs->items[i];
		const struct coop_pipe *pipe;

		if (!run->fed || !reads(scene, run))
			continue;
		if (run->command == find->command ||
		    (coop_runs_piped(runs, run, &pipe) &&
		     coop_words_within(&runs->words, find->command, pipe->first, pipe->middle)))
			return true;
	}
	return false;
}

static void find_found(const struct coop_scene *scene, const struct coop_run *run)
{
	const struct coop_word *words = coop_runs_words(scene->runs, run);

	for (size_t i = 0; i + 1 < run->count; i++) {
		const char *name = words[i + 1].text;
		if (coop_program_listed(" -name -iname -path -wholename ", words[i].text) &&
		    secret_path(name) && feeds_reader(scene, run)) {
			coop_risk_add(scene, COOP_RISK_CREDENTIAL_FILE_READ, run->name, "has read",
				      &words[i + 1]);
			return;
		}
	}
}

void coop_credential_find(const struct coop_scene *scene, const struct coop_run *run)
{
	const struct coop_word *words = coop_runs_words(scene->runs, run);
	const struct coop_word *text = coop_runs_text(scene->runs, run);
	struct coop_args args = coop_runs_args(scene->runs, run);
	bool script = run->program->traits & COOP_TRAIT_SCRIPT;

	if (run->program->kind == COOP_KIND_FIND)
		find_found(scene, run);
	if (!run->count || !reads(scene, run))
		return;
	while (coop_args_next(&args)) {
		size_t index = (size_t)(args.word - words);

		if (args.option && (used_only(&args, run->program->kind) ||
				    (script && args.letter != 'f' && args.option[1] != '-'))) {
			/* -e TEXT: then the first argument is a file. */
			script &= !(args.letter && strchr("eEf", args.letter));
			continue;
		}
		if (args.word == text || written(run, words, index))
			continue;
		if (script && !args.option) {
			script = false;
			continue;
		}
		check(scene, run, args.word);
	}
}

void coop_credential_redirect(const struct coop_scene *scene, uint32_t command,
			      const struct coop_word *word)
{
	if (secret(scene, command, word->text))
		coop_risk_add(scene, COOP_RISK_CREDENTIAL_FILE_READ,
			      coop_risk_program(scene, command), "reads", word);
}
