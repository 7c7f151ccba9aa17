/* Where coop was typed: folder and environment, as a command gets them. The keeper itself lives
 * somewhere else. */
#ifndef COOP_CLI_PLACE_H
#define COOP_CLI_PLACE_H

#include "doors/cli/cli.h"

/* The path made absolute, from the current folder if need be; NULL stands for that folder itself.
 * NULL with *error filled. */
json_t *cli_place_path(const char *path, struct coop_error *error);

enum cli_presence { CLI_MUST_EXIST, CLI_MAY_BE_MISSING, CLI_BY_ITS_WORDS };

/* The path made absolute and plain: links followed, as far as typed.h lets one that must exist, no
 * "." and ".."; one that may be missing, or is a pattern, only by its words, as with
 * CLI_BY_ITS_WORDS. One that begins with "~/" stays as it is: the keeper knows the home folder.
 * NULL with *error filled. */
json_t *cli_place_resolve(const char *path, enum cli_presence presence, struct coop_error *error);

/* Adds "cwd". 0, or negative with *error filled. */
int cli_place_cwd(const char *path, json_t *args, struct coop_error *error);

/* "base_env": what a login would set up anyway, nothing that could be a secret, and what the
 * keeper's operator lets in besides. */
json_t *cli_place_env(const struct coop *coop);

/* The words joined by spaces, as ssh and eval do. NULL: they are not UTF-8. */
json_t *cli_place_words(size_t count, char *const *words);

#endif
