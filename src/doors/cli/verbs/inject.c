#include "doors/cli/verbs/inject.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "doors/cli/parse.h"
#include "doors/cli/typed.h"

#define PIECE (64u << 10)

/* Appends all of the file. 0, -EFBIG, or another negative errno. */
static int read_file(const char *path, struct coop_buf *buf, struct coop_error *error)
{
	const size_t before = coop_buf_size(buf);
	char where[PATH_MAX], link[64];
	COOP_AUTO_FD int found = cli_typed_open(path, where, error);
	if (found < 0)
		return found;
	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", found);
	COOP_AUTO_FD int fd = open(link, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return -errno;
	for (;;) {
		uint8_t *room = coop_buf_reserve(buf, PIECE);
		if (!room)
			return -ENOMEM;
		ssize_t n = read(fd, room, PIECE);
		if (n == 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return -errno;
		coop_buf_commit(buf, n > 0 ? (size_t)n : 0);
		if (coop_buf_size(buf) - before > CLI_INJECT_FILE_MAX)
			return -EFBIG;
	}
}

/* Where it is to be found: {"placement", "name" or "path"}. NULL: it is neither, or not UTF-8. */
static json_t *make_entry(const char *target, const char **ret_file)
{
	char name[CLI_ENV_NAME_MAX];
	if (target[0] != '/')
		return cli_parse_env(target, name, ret_file) == 0 && *ret_file
			       ? json_pack("{s:s, s:s}", "placement", "env", "name", name)
			       : NULL;
	const size_t length = strcspn(target, "=");
	*ret_file = target + length + 1;
	return target[length]
		       ? json_pack("{s:s, s:s%}", "placement", "path", "path", target, length)
		       : NULL;
}

static int add_file(const char *typed, json_t *list, struct coop_buf *data,
		    struct coop_error *error)
{
	const size_t before = coop_buf_size(data);
	const char *file = NULL;
	json_t *entry = make_entry(typed, &file);
	if (!entry) {
		cli_error(error, "invalid_input",
			  "--inject %.200s: expected NAME=FILE or /PATH=FILE", typed);
		return -EINVAL;
	}
	char why[sizeof(error->message)];
	int r = read_file(file, data, error);
	if (r == 0 && coop_buf_size(data) <= CLI_INJECT_TOTAL_MAX) {
		const size_t size = coop_buf_size(data) - before;
		(void)json_object_set_new(entry, "content_bytes", json_integer((json_int_t)size));
		(void)json_array_append_new(list, entry);
		return 0;
	}
	json_decref(entry);
	(void)snprintf(why, sizeof(why), "%s", error->message);
	if (r == -EXDEV && *why)
		cli_error(error, "invalid_input", "--inject %.60s: %.420s", typed, why);
	else if (r < 0 && r != -EFBIG)
		cli_error(error, "invalid_input", "--inject: cannot read %.200s: %s", file,
			  strerror(-r));
	else
		cli_error(error, "too_large",
			  r < 0 ? "--inject: %.200s is larger than 8 MiB"
				: "--inject: with %.200s it is more than 16 MiB in all",
			  file);
	return r < 0 ? r : -EFBIG;
}

int cli_inject_args(const struct cli_list *files, json_t *args, struct coop_buf *data,
		    struct coop_error *error)
{
	int r = 0;
	if (!files->count)
		return 0;
	if (files->count > CLI_INJECT_FILES) {
		cli_error(error, "too_large", "--inject: more than %u files", CLI_INJECT_FILES);
		return -E2BIG;
	}
	json_t *list = json_array();
	(void)json_object_set_new(args, "file_injections", list);
	for (size_t i = 0; r == 0 && i < files->count; i++)
		r = add_file(files->items[i], list, data, error);
	return r;
}
