#include "keeper/conf/conf.h"

#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/text/utf8.h"
#include "keeper/conf/env_rules.h"
#include "policy/policy.h"

/* The reader hands over one line at a time and the handler is called before the next, so the
 * reader's count is the handler's line number, which the library does not tell. */
struct parser {
	const char *at, *end;
	const char *name;
	unsigned line;
	uint32_t once; /* keys that were met and may not be met again */
	/* Where the sections stand first, for what is wrong with them as a whole. */
	unsigned sandbox_line, profile_lines[COOP_SANDBOX_PROFILES_MAX];
	const char *profile; /* of the section that a key stands in */
	/* A key to be found again and where it was; NULL profile: in [sandbox]. */
	const char *wanted_key, *wanted_profile;
	unsigned found;
	bool failed; /* err says why */
	struct coop_conf *conf;
	struct coop_err *err;
};

/* Bits of `once`; those below are the risk labels. */
enum { ONCE_MODE = 29, ONCE_RECORDS, ONCE_AUDIT };
_Static_assert(COOP_RISK_COUNT <= (int)ONCE_MODE, "struct parser.once has a bit for each");

/* Never given the value itself: it may be one of an environment variable. */
static void fail(struct parser *parser, const char *what, const char *why)
{
	(void)coop_err_field(parser->err, COOP_INVALID_INPUT, "configuration",
			     "%.80s:%u: %.80s%s%s", parser->name, parser->line, what,
			     *what ? ": " : "", why);
	coop_err_detail_int(parser->err, "line", parser->line);
	parser->failed = true;
}

/* Takes over what a part said about a value, with the line. Want of memory is nobody's mistake and
 * stays as it is. */
static void fail_with(struct parser *parser, const struct coop_err *why)
{
	if (why->code != COOP_INTERNAL) {
		fail(parser, "", why->message);
		return;
	}
	*parser->err = *why;
	parser->failed = true;
}

/* False, with the failure told, if the key was met before. */
static bool first_time(struct parser *parser, unsigned bit, const char *key)
{
	if (parser->once & 1u << bit)
		fail(parser, key, "said twice");
	parser->once |= 1u << bit;
	return !parser->failed;
}

/* A key that is said twice is refused: one of the two is easily overlooked. */
static void take_setting(struct parser *parser, const char *key, const char *value)
{
	struct coop_settings *settings = &parser->conf->settings;
	uint64_t bit = coop_settings_bit(key);
	char assignment[COOP_CONF_LINE_MAX + 2];
	struct coop_err err;

	if (!bit)
		fail(parser, key, "no such key in [keeper]");
	else if (settings->given & bit)
		fail(parser, key, "said twice");
	if (parser->failed)
		return;
	(void)snprintf(assignment, sizeof assignment, "%s=%s", key, value);
	if (coop_settings_set(settings, assignment, &err) < 0)
		fail_with(parser, &err);
}

/* Lists grow with each line; `mode` and a risk's action are said once. */
static void take_policy(struct parser *parser, const char *key, const char *value)
{
	char source[96];
	struct coop_err err;

	if (!strcmp(key, "mode") && !first_time(parser, ONCE_MODE, key))
		return;
	for (unsigned i = 0; !strncmp(key, "risk.", 5) && i < COOP_RISK_COUNT; i++) {
		if (!strcmp(key + 5, coop_risk_name((enum coop_risk)i)) &&
		    !first_time(parser, i, key))
			return;
	}
	(void)snprintf(source, sizeof source, "%.80s:%u", parser->name, parser->line);
	if (coop_policy_set(parser->conf->policy, key, value, source, &err) < 0)
		fail_with(parser, &err);
}

static void take_environment(struct parser *parser, const char *key, const char *value)
{
	struct coop_err err;

	if (coop_env_rules_set(&parser->conf->env, key, value, &err) < 0)
		fail_with(parser, &err);
}

static void take_enabled(struct parser *parser, unsigned once, const char *key, const char *value,
			 bool *ret)
{
	if (strcmp(key, "enabled") != 0)
		fail(parser, key, "no such key; there is only \"enabled\" here");
	else if (strcmp(value, "yes") != 0 && strcmp(value, "no") != 0)
		fail(parser, key, "must be yes or no");
	else if (first_time(parser, once, key))
		*ret = !strcmp(value, "yes");
}

static void take_records(struct parser *parser, const char *key, const char *value)
{
	take_enabled(parser, ONCE_RECORDS, key, value, &parser->conf->records);
}

static void take_audit(struct parser *parser, const char *key, const char *value)
{
	take_enabled(parser, ONCE_AUDIT, key, value, &parser->conf->audit);
}

static void take_sandbox(struct parser *parser, const char *key, const char *value)
{
	struct coop_err err;

	if (coop_profiles_set(&parser->conf->profiles, NULL, key, value, &err) < 0)
		fail_with(parser, &err);
}

static void take_profile(struct parser *parser, const char *key, const char *value)
{
	struct coop_err err;

	if (coop_profiles_set(&parser->conf->profiles, parser->profile, key, value, &err) < 0)
		fail_with(parser, &err);
}

/* Those with a name of their own behind the section's have a space there. */
static const struct section {
	const char *name;
	void (*take)(struct parser *parser, const char *key, const char *value);
} sections[] = {
	{"keeper", take_setting},   {"policy", take_policy}, {"environment", take_environment},
	{"records", take_records},  {"audit", take_audit},   {"sandbox", take_sandbox},
	{"profile ", take_profile},
};

static const struct section *find_section(const char *name, size_t size)
{
	for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++) {
		size_t length = strlen(sections[i].name);
		bool named = sections[i].name[length - 1] == ' ';
		if ((named ? size > length : size == length) &&
		    !memcmp(sections[i].name, name, length))
			return &sections[i];
	}
	return NULL;
}

static int take_key(void *user, const char *section, const char *key, const char *value)
{
	struct parser *parser = user;
	const struct section *found = find_section(section, strlen(section));

	if (parser->failed)
		return 0;
	if (!found)
		fail(parser, key, "stands before the first section");
	else if (!*key)
		fail(parser, "", "a value without a key");
	else {
		parser->profile = section + strlen(found->name);
		found->take(parser, key, value);
	}
	return !parser->failed;
}

/* A profile is there once its section begins, with keys or without. */
static void begin_profile(struct parser *parser, const char *name, size_t size)
{
	char text[COOP_PROFILE_NAME_MAX + 2];
	struct coop_err err;
	size_t index;

	/* Cut where it is too long in any case, and then refused. */
	(void)snprintf(text, sizeof text, "%.*s", (int)size, name);
	if (coop_profiles_open(&parser->conf->profiles, text, &index, &err) < 0)
		fail_with(parser, &err);
	else if (!parser->profile_lines[index])
		parser->profile_lines[index] = parser->line;
}

/* The library forgets a section without keys, cuts the name of a long one and overlooks what
 * follows the bracket. */
static void check_header(struct parser *parser, const char *line, size_t size)
{
	const struct section *found;

	while (size && strchr(" \t\r", line[size - 1]))
		size--;
	if (size < 2 || line[size - 1] != ']' || memchr(line, ']', size) != line + size - 1)
		fail(parser, "", "a section is a name in brackets, alone in its line");
	else if (!(found = find_section(line + 1, size - 2)))
		fail(parser, "",
		     "no such section; there are keeper, policy, environment, sandbox, profile "
		     "NAME, records and audit");
	else if (found->take == take_profile)
		begin_profile(parser, line + 1 + strlen(found->name),
			      size - 2 - strlen(found->name));
	else if (found->take == take_sandbox && !parser->sandbox_line)
		parser->sandbox_line = parser->line;
}

/* Refuses what the library would cut or take for the end of the text. */
static void check_line(struct parser *parser, const char *line, size_t size)
{
	size_t at = 0, length;

	if (size > COOP_CONF_LINE_MAX) {
		fail(parser, "", "the line is longer than 8192 bytes");
		return;
	}
	for (; at < size && !parser->failed; at += length) {
		length = coop_utf8_char((const uint8_t *)line + at, size - at);
		if (!length)
			fail(parser, "", "not UTF-8");
		else if (((unsigned char)line[at] < ' ' && line[at] != '\t' &&
			  !(line[at] == '\r' && at + 1 == size)) ||
			 line[at] == 0x7f)
			fail(parser, "", "a control character");
		if (parser->failed)
			return;
	}
	for (at = 0; at < size && (line[at] == ' ' || line[at] == '\t');)
		at++;
	if (at < size && line[at] == '[')
		check_header(parser, line + at, size - at);
}

/* As fgets, for the library. */
static char *next_line(char *ret_line, int room, void *stream)
{
	struct parser *parser = stream;
	const char *line = parser->at;

	if (parser->failed || line == parser->end)
		return NULL;
	const char *newline = memchr(line, '\n', (size_t)(parser->end - line));
	size_t size = (size_t)((newline ? newline : parser->end) - line);
	parser->at = newline ? newline + 1 : parser->end;
	parser->line++;
	check_line(parser, line, size);
	if (!parser->failed && (room < 1 || size >= (size_t)room))
		fail(parser, "", "the line is too long for the INI library of this system");
	if (parser->failed)
		return NULL;
	memcpy(ret_line, line, size);
	ret_line[size] = 0;
	return ret_line;
}

/* A value is all of its line: a pattern may well hold " ;", and a line that goes on in the next
 * would be one that is easily overlooked. These are variables of the library; nobody else here uses
 * it. */
static void set_up_library(void)
{
	ini_allow_bom = false; /* the parser does that */
	ini_allow_multiline = false;
	ini_allow_inline_comments = false;
	ini_stop_on_first_error = true;
	ini_max_line = (int)COOP_CONF_LINE_MAX + 8;
}

/* 0, which ends the reading, once the wanted key is met. */
static int meet_key(void *user, const char *section, const char *key, const char *value)
{
	struct parser *parser = user;
	const char *profile = parser->wanted_profile;
	bool there = profile ? !strncmp(section, "profile ", 8) && !strcmp(section + 8, profile)
			     : !strcmp(section, "sandbox");

	(void)value;
	if (!parser->found && there && !strcmp(key, parser->wanted_key))
		parser->found = parser->line;
	return !parser->found;
}

/* What can only be said when all is read is said of the line that has the key. */
static void finish_profiles(struct parser *parser, const char *text)
{
	struct coop_profiles *profiles = &parser->conf->profiles;
	struct coop_err err;
	size_t index;

	if (coop_profiles_finish(profiles, &index, &parser->wanted_key, &err) == 0)
		return;
	bool own = index < profiles->own_count;
	parser->wanted_profile = own ? profiles->own[index].name : NULL;
	parser->at = text;
	parser->line = 0;
	(void)ini_parse_stream(next_line, parser, meet_key, parser);
	parser->line = parser->found ? parser->found
		       : own         ? parser->profile_lines[index]
				     : parser->sandbox_line;
	fail_with(parser, &err);
}

int coop_conf_parse(const char *text, size_t size, const char *name, struct coop_conf *conf,
		    struct coop_err *err)
{
	static const char bom[] = "\xef\xbb\xbf";
	struct parser parser = {.name = name, .conf = conf, .err = err};

	if (size >= 3 && !memcmp(text, bom, 3)) {
		text += 3;
		size -= 3;
	}
	parser.at = text;
	parser.end = text + size;
	set_up_library();
	int line = ini_parse_stream(next_line, &parser, take_key, &parser);
	if (!parser.failed && line < 0)
		return coop_err_no_memory(err);
	if (!parser.failed && line > 0)
		fail(&parser, "", "neither a section nor KEY = VALUE nor a comment");
	if (!parser.failed)
		finish_profiles(&parser, text);
	return parser.failed ? (err->code == COOP_INTERNAL ? -ENOMEM : -EINVAL) : 0;
}

static int refuse_file(const char *path, const char *why, struct coop_err *err)
{
	return coop_err_field(err, COOP_INVALID_INPUT, "configuration", "%.300s: %s", path, why);
}

/* What others may change would let them widen what agents may do. Asked of the open file, so that
 * it cannot be another one by the time it is read. */
static int check_file(int fd, const char *path, struct coop_err *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return refuse_file(path, strerror(errno), err);
	if (!S_ISREG(st.st_mode))
		return refuse_file(path, "not a regular file", err);
	if (st.st_uid != geteuid() && st.st_uid != 0)
		return refuse_file(path, "belongs to another user", err);
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return refuse_file(path, "others may write to it: chmod go-w", err);
	return 0;
}

static int read_all(int fd, const char *path, char **ret_text, size_t *ret_size,
		    struct coop_err *err)
{
	size_t size = 0;
	ssize_t n;

	char *text = coop_mem_alloc(COOP_CONF_FILE_MAX + 1);
	if (!text)
		return coop_err_no_memory(err);
	do {
		n = read(fd, text + size, COOP_CONF_FILE_MAX + 1 - size);
		size += n > 0 ? (size_t)n : 0;
	} while ((n > 0 && size <= COOP_CONF_FILE_MAX) || (n < 0 && errno == EINTR));
	if (n < 0 || size > COOP_CONF_FILE_MAX) {
		const char *why = n < 0 ? strerror(errno) : "larger than 1 MiB";
		free(text);
		return refuse_file(path, why, err);
	}
	*ret_text = text;
	*ret_size = size;
	return 0;
}

/* Leaves *ret_text as it is if there is no file and need not be one. */
static int read_file(const char *path, char **ret_text, size_t *ret_size, struct coop_err *err)
{
	const char *named = getenv("COOP_CONF");
	/* Without O_NONBLOCK a FIFO would hold the keeper up before it can be refused. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR) && !(named && !strcmp(named, path)))
		return 0;
	if (fd < 0)
		return refuse_file(path, strerror(errno), err);
	int r = check_file(fd, path, err);
	if (r == 0)
		r = read_all(fd, path, ret_text, ret_size, err);
	(void)close(fd);
	return r;
}

int coop_conf_init(struct coop_conf *ret, struct coop_err *err)
{
	struct coop_policy *policy = coop_policy_new();

	if (!policy)
		return coop_err_no_memory(err);
	coop_policy_standard(policy);
	*ret = (struct coop_conf){.policy = policy, .records = true, .audit = true};
	coop_settings_defaults(&ret->settings);
	coop_profiles_init(&ret->profiles);
	return 0;
}

/* All or nothing: what is in force stays until the whole file has been found good. */
int coop_conf_load(const char *path, const char *const *overrides, struct coop_conf *ret,
		   struct coop_err *err)
{
	struct coop_conf conf = {0};
	char *text = NULL;
	size_t size = 0;
	int r = coop_conf_init(&conf, err);

	if (r == 0 && path && *path)
		r = read_file(path, &text, &size, err);
	if (r == 0 && text) {
		const char *slash = strrchr(path, '/');
		r = coop_conf_parse(text, size, slash ? slash + 1 : path, &conf, err);
	}
	for (; r == 0 && overrides && *overrides; overrides++)
		r = coop_settings_set(&conf.settings, *overrides, err);
	conf.present = text != NULL;
	free(text);
	if (r < 0) {
		coop_conf_clear(&conf);
		return r;
	}
	coop_settings_finish(&conf.settings);
	*ret = conf;
	return 0;
}

void coop_conf_clear(struct coop_conf *conf)
{
	coop_policy_free(conf->policy);
	coop_env_rules_clear(&conf->env);
	coop_profiles_clear(&conf->profiles);
	*conf = (struct coop_conf){0};
}

/* Set and empty is as unset: scripts clear variables so. */
static const char *variable(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

int coop_conf_path(char *ret_path, size_t size)
{
	const char *named = variable("COOP_CONF");
	const char *xdg = variable("XDG_CONFIG_HOME");
	const char *home = variable("HOME");
	int n;

	if (named)
		n = snprintf(ret_path, size, "%s", named);
	else if (geteuid() == 0)
		n = snprintf(ret_path, size, "/etc/coop/coop.conf");
	else if (xdg)
		n = snprintf(ret_path, size, "%s/coop/coop.conf", xdg);
	else
		n = snprintf(ret_path, size, "%s/.config/coop/coop.conf",
			     home ? home : coop_env_home());
	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}
