#include "doors/cli/token_file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "doors/cli/cli.h"

#define WRITER_MS 2000

static int refuse(struct coop_error *error, const char *path, const char *why)
{
	cli_error(error, "invalid_input", "--token-file %s: %s", path, why);
	return -EBADMSG;
}

/* A pipe (as of a shell's <(…)) has no mode that means anything. */
static int check(int fd, const char *path, struct coop_error *error)
{
	struct stat st;
	if (fstat(fd, &st) < 0 || S_ISDIR(st.st_mode))
		return refuse(error, path, "it is no file");
	if (S_ISREG(st.st_mode) && (st.st_mode & 066)) {
		cli_error(
			error, "invalid_input",
			"--token-file %s: others can %s it (mode %04o); chmod 600 mends that, and "
			"coop token revoke ends a token that was seen",
			path, st.st_mode & 044 ? "read" : "change", st.st_mode & 07777);
		return -EBADMSG;
	}
	return 0;
}

/* Fills the buffer as far as the file goes. A pipe with a writer is waited for, as the writer may
 * be waiting for a password; one without gets a moment for somebody to come. The number of bytes,
 * or -errno. */
static ssize_t read_start(int fd, char *buffer, size_t size)
{
	struct pollfd pollfd = {.fd = fd, .events = POLLIN};
	size_t used = 0;
	bool waited = false;
	while (used < size) {
		ssize_t n = read(fd, buffer + used, size - used);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN) {
			(void)poll(&pollfd, 1, -1);
			continue;
		}
		if (n == 0 && used == 0 && !waited) {
			waited = true;
			(void)poll(&pollfd, 1, WRITER_MS);
			continue;
		}
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		used += (size_t)n;
	}
	return (ssize_t)used;
}

int cli_token_read(const char *path, char ret_token[CLI_TOKEN_SIZE], struct coop_error *error)
{
	/* A byte more than a line ended by CR and LF, to see that there is more. */
	char text[COOP_TOKEN_MAX + 3];
	/* Opening a FIFO must not wait for its writer. */
	COOP_AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0) {
		cli_error(error, "invalid_input", "--token-file %s: %s", path, strerror(errno));
		return -EBADMSG;
	}
	int r = check(fd, path, error);
	if (r < 0)
		return r;
	const ssize_t n = read_start(fd, text, sizeof(text));
	if (n < 0)
		return refuse(error, path, strerror((int)-n));
	const char *end = memchr(text, '\n', (size_t)n);
	size_t length = end ? (size_t)(end - text) : (size_t)n;
	if (length && text[length - 1] == '\r')
		length--;
	if (length > COOP_TOKEN_MAX)
		return refuse(error, path, "its first line is longer than a token can be");
	if (length == 0)
		return refuse(error, path, "its first line is empty");
	if (memchr(text, '\0', length))
		return refuse(error, path, "its first line has characters that no token has");
	memcpy(ret_token, text, length);
	ret_token[length] = '\0';
	explicit_bzero(text, sizeof(text));
	return 0;
}
