/* Tokens that are kept in files: a command line and an environment can be seen by more eyes. */
#ifndef COOP_CLI_TOKEN_FILE_H
#define COOP_CLI_TOKEN_FILE_H

#include <coop.h>

#define CLI_TOKEN_SIZE (COOP_TOKEN_MAX + 1u)

/* The first line of the file. Refused: a file that others may read or change, an empty line, one
 * that is too long for a token. 0, or a negative errno with *error filled; the error never holds
 * what was read. */
int cli_token_read(const char *path, char ret_token[CLI_TOKEN_SIZE], struct coop_error *error);

#endif
