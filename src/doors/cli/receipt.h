/* What an answer says of those who were to end, in words. */
#ifndef COOP_CLI_RECEIPT_H
#define COOP_CLI_RECEIPT_H

#include "doors/cli/cli.h"

/* Of an answer that counts `survivors`: says how many are still alive; `id` (may be NULL) stands in
 * front. True: none is. */
bool cli_none_alive(const char *id, const json_t *result);

/* A cli_show: one line that says who ended. False: something survived. */
bool cli_receipt_show(const struct cli *cli, const char *id, const json_t *receipt);

/* The same of a release that had to kill: its receipt has no record. */
bool cli_receipt_show_released(const struct cli *cli, const char *id, bool released,
			       const json_t *receipt);

#endif
