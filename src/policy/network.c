/* Files or input sent away: label network_exfil. What stays on this machine does not count. */
#include <ctype.h>
#include <string.h>

#include "policy/paths.h"
#include "policy/programs.h"
#include "policy/risk.h"
#include "policy/runs.h"
#include "policy/words.h"

static void add(const struct coop_scene *scene, const struct coop_run *run, const char *what,
		const struct coop_word *word)
{
	coop_risk_add(scene, COOP_RISK_NETWORK_EXFIL, run->name, what, word);
}

static bool loopback_host(const char *host, size_t size)
{
	if (size == 9 && !strncmp(host, "localhost", 9))
		return true;
	if ((size == 3 && !strncmp(host, "::1", 3)) || (size == 5 && !strncmp(host, "[::1]", 5)))
		return true;
	if (size < 4 || strncmp(host, "127.", 4) != 0)
		return false;
	/* Only a number is an address: 127.evil.example is a name. */
	for (size_t i = 0; i < size; i++) {
		if (!isdigit((unsigned char)host[i]) && host[i] != '.')
			return false;
	}
	return true;
}

/* Whether a URL, host:port or user@host names this machine. */
static bool loopback(const char *text)
{
	const char *scheme = strstr(text, "://");
	const char *host = scheme ? scheme + 3 : text;
	size_t size = strcspn(host, "/?#");

	/* What stands before the last @ is a user's name, however it looks. */
	for (size_t i = size; i-- > 0;) {
		if (host[i] == '@') {
			host += i + 1;
			size -= i + 1;
			break;
		}
	}
	if (*host == '[')
		return loopback_host(host, strcspn(host, "]") + 1);
	if (size == 3 && loopback_host(host, size))
		return true;
	size_t name = strcspn(host, ":");
	return loopback_host(host, name < size ? name : size);
}

static bool is_option(const char *option, const char *name)
{
	size_t size = strlen(name);

	return !strncmp(option, name, size) && (!option[size] || option[size] == '=');
}

/* Whether the option sends a file or the input. */
static bool uploads(const struct coop_args *args)
{
	const char *value = args->value;

	if (!value)
		return false;
	if (args->letter == 'T' || is_option(args->option, "--upload-file") ||
	    is_option(args->option, "--post-file") || is_option(args->option, "--body-file"))
		return true;
	if (args->letter == 'F' || is_option(args->option, "--form"))
		return strstr(value, "=@") || strstr(value, "=<");
	if (is_option(args->option, "--data-urlencode"))
		return strchr(value, '@') &&
		       !memchr(value, '=', (size_t)(strchr(value, '@') - value));
	if (args->letter == 'd' || is_option(args->option, "--data") ||
	    is_option(args->option, "--data-ascii") || is_option(args->option, "--data-binary") ||
	    is_option(args->option, "--json"))
		return *value == '@';
	return false;
}

/* Whether a word's text is (partly) what a file holds: "$(cat FILE)". */
static bool holds_file(const struct coop_scene *scene, const struct coop_run *run,
		       const struct coop_word *word)
{
	const struct coop_runs *runs = scene->runs;

	if (!(word->flags & COOP_WORD_SUBSTITUTED) ||
	    !coop_risk_spend(scene, runs->words.command_count))
		return false;
	for (size_t i = 0; i < runs->words.command_count; i++) {
		const struct coop_simple *simple = &runs->words.commands[i];

		if (simple->parent != run->command || simple->word != word->id)
			continue;
		/* $(<file), $(cmd < file) */
		if (simple->redirects &&
		    coop_words_of(&runs->words, simple)[simple->arguments].role == COOP_ROLE_READ)
			return true;
		/* Without an argument it only passes on what something else made. */
		if (simple->arguments > 1 &&
		    coop_program_find(coop_path_name(coop_words_of(&runs->words, simple)->text))
				    ->traits &
			    COOP_TRAIT_COPIES)
			return true;
	}
	return false;
}

/* curl, wget. */
static void find_upload(const struct coop_scene *scene, const struct coop_run *run)
{
	struct coop_args args = coop_runs_args(scene->runs, run);
	const struct coop_word *sent = NULL;
	bool local = false, away = false;

	while (coop_args_next(&args)) {
		if (holds_file(scene, run, args.word) || (args.option && uploads(&args)))
			sent = args.word;
		if (!args.option || is_option(args.option, "--url")) {
			bool here = args.value && loopback(args.value);
			local |= here;
			away |= !here;
		} else if (args.letter == 'x' || is_option(args.option, "--proxy") ||
			   is_option(args.option, "--connect-to") ||
			   is_option(args.option, "--resolve")) {
			away = true;
		}
	}
	if (sent && (away || !local))
		add(scene, run, "sends", sent);
}

/* host:path, host::module, rsync://; a path with a slash before the colon is local. */
static bool remote(const char *text)
{
	size_t colon = strcspn(text, ":");

	if (!text[colon])
		return false;
	return strstr(text, "://") || (colon && !memchr(text, '/', colon));
}

static void find_copy(const struct coop_scene *scene, const struct coop_run *run)
{
	struct coop_args args = coop_runs_args(scene->runs, run);
	const struct coop_word *last = NULL;
	size_t plain = 0;

	while (coop_args_next(&args)) {
		if (coop_args_plain(&args)) {
			last = args.word;
			plain++;
		}
	}
	if (plain > 1 && remote(last->text) && !loopback(last->text))
		add(scene, run, "copies to", last);
}

/* aws s3 cp FILE s3://…, gsutil cp, rclone copy. */
static void find_cloud(const struct coop_scene *scene, const struct coop_run *run)
{
	static const char verbs[] = " cp mv sync copy move put rsync copyto moveto ";
	const struct coop_word *words = coop_runs_words(scene->runs, run);
	const struct coop_word *last = NULL, *before = NULL;
	bool copies = false;

	for (size_t i = 0; i < run->count; i++) {
		copies |= coop_program_listed(verbs, words[i].text);
		if (words[i].text[0] != '-') {
			before = last;
			last = &words[i];
		}
	}
	if (copies && before && remote(last->text) && !remote(before->text))
		add(scene, run, "copies to", last);
}

/* nc, socat, telnet, ssh: what is fed to them goes out. */
static void find_sender(const struct coop_scene *scene, const struct coop_run *run)
{
	const struct coop_word *words = coop_runs_words(scene->runs, run);
	bool fed = coop_runs_redirect(scene->runs, run, COOP_ROLE_READ) ||
		   coop_runs_piped(scene->runs, run, NULL);

	for (size_t i = 0; fed && i < run->count; i++) {
		const char *text = words[i].text;
		/* socat's TCP:host:port */
		const char *colon = strchr(text, ':');
		if (text[0] != '-' &&
		    (loopback(text) ||
		     (colon && isalpha((unsigned char)text[0]) && loopback(colon + 1))))
			fed = false;
	}
	if (fed && run->count)
		add(scene, run, "sends what it is fed", NULL);
}

void coop_network_find(const struct coop_scene *scene, const struct coop_run *run)
{
	if (run->program->kind == COOP_KIND_CURL || run->program->kind == COOP_KIND_WGET)
		find_upload(scene, run);
	else if (run->program->kind == COOP_KIND_SCP)
		find_copy(scene, run);
	else if (run->program->kind == COOP_KIND_CLOUD)
		find_cloud(scene, run);
	else if (run->program->traits & COOP_TRAIT_SEND)
		find_sender(scene, run);
	else if (run->program->kind == COOP_KIND_OPENSSL && run->count &&
		 !strcmp(coop_runs_words(scene->runs, run)->text, "s_client"))
		find_sender(scene, run);
}

/* bash opens a connection for > /dev/tcp/host/port. */
void coop_network_redirect(const struct coop_scene *scene, uint32_t command,
			   const struct coop_word *word)
{
	if (word->role != COOP_ROLE_WRITE ||
	    (strncmp(word->text, "/dev/tcp/", 9) != 0 && strncmp(word->text, "/dev/udp/", 9) != 0))
		return;
	const char *host = word->text + 9;
	if (!loopback_host(host, strcspn(host, "/")))
		coop_risk_add(scene, COOP_RISK_NETWORK_EXFIL, coop_risk_program(scene, command),
			      "sends to", word);
}
