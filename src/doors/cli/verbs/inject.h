/* Files that a command gets from here: --inject. */
#ifndef COOP_CLI_INJECT_H
#define COOP_CLI_INJECT_H

#include "base/buf.h"
#include "doors/cli/cli.h"

/* As the keeper takes them. */
#define CLI_INJECT_FILES 128u
#define CLI_INJECT_FILE_MAX (8u << 20)
#define CLI_INJECT_TOTAL_MAX (16u << 20)

/* Adds "file_injections": of "NAME=FILE" one whose path the variable holds, of "/PATH=FILE" one in
 * that place. What is in the files now, which may be pipes, is appended to `data`, the request's
 * bytes. 0, or negative with *error filled, which holds nothing of what is in the files. */
int cli_inject_args(const struct cli_list *files, json_t *args, struct coop_buf *data,
		    struct coop_error *error);

#endif
