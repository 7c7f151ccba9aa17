/* The token that coop serve keeps for those who use its gateway. */
#ifndef COOP_CLI_SERVE_TOKEN_H
#define COOP_CLI_SERVE_TOKEN_H

#include "doors/cli/cli.h"

#define CLI_SERVE_TOKEN_FILE "gateway.token"

/* Makes sure that the file in the state folder (mode 0600) holds a token of main that the keeper
 * takes. One that is there is used again; where a new one is made, those made before by this
 * function are revoked, as nobody may know them any more. `cli` is connected as the operator.
 * Writes the file's path. 0, or a negative errno with *error filled. */
int cli_serve_token(struct cli *cli, const char *state_dir, char *ret_path, size_t size,
		    struct coop_error *error);

#endif
