/* What a table of options leaves to the rows of arguments. */
#ifndef COOP_CLI_OPTION_ROWS_H
#define COOP_CLI_OPTION_ROWS_H

#include "doors/cli/options.h"

/* The table with all that is said in the rows of `args` (NULL: nothing is), for the caller to free;
 * it ends with an empty name, too. NULL: no memory. */
struct cli_option *cli_options_complete(const struct cli_option *options,
					const struct coop_field *args);

#endif
