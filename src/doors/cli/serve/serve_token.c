#include "doors/cli/serve/serve_token.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io/log.h"
#include "coop.h"
#include "doors/cli/record.h"
#include "doors/cli/token_file.h"

#define LABEL "serve"

/* Reads a file that nobody else can have seen or changed. */
static int read_private(const char *path, char ret_token[CLI_TOKEN_SIZE])
{
	struct stat st;
	char text[CLI_TOKEN_SIZE + 1];
	COOP_AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || (st.st_mode & 077) || st.st_uid != geteuid())
		return -EPERM;
	const ssize_t n = read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return -EIO;
	text[n] = '\0';
	const size_t length = strcspn(text, "\n");
	if (length == 0 || length >= CLI_TOKEN_SIZE || strlen(text) < length)
		return -EBADMSG;
	memcpy(ret_token, text, length);
	ret_token[length] = '\0';
	return 0;
}

/* Is it a token of the agent that this connection acts as? */
static bool is_taken(struct cli *cli, const char *token)
{
	struct cli other = {.verb = cli->verb};
	struct coop_error error;
	json_t *mine = NULL, *theirs = NULL;
	const struct coop_options options = {.no_start = true, .token = token};
	bool same = coop_open(&options, &other.coop, &error) == 0 &&
		    cli_call(&other, "info", json_object(), &theirs, &error) == 0 &&
		    cli_call(cli, "info", json_object(), &mine, &error) == 0;
	if (same) {
		const json_t *a = json_object_get(mine, "you"), *b = json_object_get(theirs, "you");
		same = strcmp(cli_text(a, "agent"), cli_text(b, "agent")) == 0 &&
		       strcmp(cli_text(a, "principal"), cli_text(b, "principal")) == 0;
	}
	json_decref(mine);
	json_decref(theirs);
	cli_close(&other);
	return same;
}

/* All of this label but one. A failure leaves tokens that nobody knows, which is no reason not to
 * serve. */
static void revoke_others(struct cli *cli, int64_t kept)
{
	struct coop_error error;
	json_t *list = NULL, *token, *result = NULL;
	size_t i;
	if (cli_call(cli, "token_list", json_pack("{s:s}", "agent", "main"), &list, &error) < 0)
		return;
	json_array_foreach(json_object_get(list, "tokens"), i, token)
	{
		const long long id = (long long)cli_number(token, "id");
		if (strcmp(cli_text(token, "label"), LABEL) != 0 || id == kept ||
		    strcmp(cli_text(token, "agent"), "main") != 0)
			continue;
		if (cli_call(cli, "token_revoke", json_pack("{s:I}", "id", (json_int_t)id), &result,
			     &error) == 0)
			json_decref(result);
	}
	json_decref(list);
}

/* Replaced whole: whoever reads it meanwhile has the old one or the new one. */
static int write_private(const char *path, const char *token)
{
	char temporary[4200];
	const int n = snprintf(temporary, sizeof(temporary), "%s.new", path);
	if (n < 0 || (size_t)n >= sizeof(temporary))
		return -ENAMETOOLONG;
	(void)unlink(temporary);
	COOP_AUTO_FD int fd =
		open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	char line[CLI_TOKEN_SIZE + 1];
	const int size = snprintf(line, sizeof(line), "%s\n", token);
	const bool good = size > 0 && (size_t)size < sizeof(line) &&
			  write(fd, line, (size_t)size) == size && fsync(fd) == 0 &&
			  rename(temporary, path) == 0;
	const int r = good ? 0 : errno ? -errno : -EIO;
	explicit_bzero(line, sizeof(line));
	if (r < 0)
		(void)unlink(temporary);
	return r;
}

static int make(struct cli *cli, const char *path, struct coop_error *error)
{
	json_t *made = NULL;
	int r = cli_call(cli, "token_new", json_pack("{s:s, s:s}", "agent", "main", "label", LABEL),
			 &made, error);
	if (r < 0)
		return r;
	r = write_private(path, cli_text(made, "token"));
	if (r < 0)
		cli_error(error, "unavailable", "cannot write the token to %s: %s", path,
			  strerror(-r));
	else
		revoke_others(cli, cli_number(made, "id"));
	json_decref(made);
	return r;
}

int cli_serve_token(struct cli *cli, const char *state_dir, char *ret_path, size_t size,
		    struct coop_error *error)
{
	char token[CLI_TOKEN_SIZE];
	const int n = snprintf(ret_path, size, "%s/" CLI_SERVE_TOKEN_FILE, state_dir);
	if (n < 0 || (size_t)n >= size) {
		cli_error(error, "unavailable", "the path of the state folder is too long");
		return -ENAMETOOLONG;
	}
	int r = read_private(ret_path, token);
	const bool good = r == 0 && is_taken(cli, token);
	explicit_bzero(token, sizeof(token));
	if (good)
		return 0;
	if (r == -EPERM)
		coop_log(COOP_LOG_WARN, "others could see or change %s: it gets a new token",
			 ret_path);
	return make(cli, ret_path, error);
}
