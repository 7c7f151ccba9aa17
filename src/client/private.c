/* A keeper of this program's own. The socketpair is its life line: it ends all it owns, then
 * itself, at end of file, which the kernel brings about however this program ends. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io/paths.h"
#include "client/child.h"
#include "client/client.h"
#include "client/locate.h"
#include "coop.h"

static int start(const char *program, int fd, int errors, struct coop_child *ret)
{
	char name[] = "coop-keeper", option[] = "--private", number[12];
	char *argv[] = {name, option, number, NULL};
	COOP_AUTO_FREE char **env = coop_client_environment(NULL);

	if (!env)
		return -ENOMEM;
	(void)snprintf(number, sizeof number, "%d", COOP_CHILD_FD);
	return coop_child_start(&(struct coop_child_plan){.program = program,
							  .argv = argv,
							  .env = env,
							  .error_fd = errors,
							  .pass_fd = fd,
							  .new_session = true},
				ret);
}

/* The connection with its child, before the hello. */
static int begin(const char *program, int errors, struct coop **ret)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	COOP_AUTO_FD int theirs = pair[1];
	struct coop *coop = coop_client_new(pair[0]);
	if (!coop) {
		(void)close(pair[0]);
		return -ENOMEM;
	}
	int r = start(program, theirs, errors, &coop->child);
	if (r < 0) {
		coop_close(coop);
		return r;
	}
	*ret = coop;
	return 0;
}

COOP_PUBLIC int coop_open_private(const struct coop_options *options, struct coop **ret,
				  struct coop_error *error)
{
	char found[COOP_PATHS_MAX], line[400];
	const char *program = options && options->keeper ? options->keeper : found;
	struct coop *coop = NULL;
	int r = 0;

	if (options && options->token && options->token[0])
		return coop_client_refuse(error, -EINVAL, "invalid_input", "token",
					  "a private keeper knows none");
	if (program == found)
		r = coop_locate_program("coop-keeper", "COOP_KEEPER", found, sizeof found);
	if (r < 0)
		return coop_client_fail(error, r, "unreachable",
					"cannot find the program coop-keeper; set COOP_KEEPER to "
					"its path");
	COOP_AUTO_FD int errors = coop_child_error_file();
	r = errors < 0 ? errors : begin(program, errors, &coop);
	if (r < 0)
		return coop_client_fail(error, r, "unreachable", "cannot start %s: %s", program,
					strerror(-r));
	r = coop_client_greet(coop, error);
	if (r == 0) {
		*ret = coop;
		return 0;
	}
	coop_close(coop);
	coop_child_error_line(errors, line, sizeof line);
	if (line[0])
		return coop_client_fail(error, r, "unreachable", "cannot start the keeper: %s",
					line);
	return r;
}
