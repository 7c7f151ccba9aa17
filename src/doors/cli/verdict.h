/* What policy says about a command, told to people: from the envelope of a blocked spawn and of
 * check (docs/PROTOCOL.md section 12). */
#ifndef COOP_CLI_VERDICT_H
#define COOP_CLI_VERDICT_H

#include <jansson.h>
#include <stddef.h>

#define CLI_VERDICT_MAX 512

/* Which rule it was and how somebody can allow it: "standard policy; risk.sudo = allow in [policy]
 * of coop.conf, then coop reload, allows it". "" if the details are no envelope. */
void cli_verdict_hint(const json_t *envelope, char ret_text[CLI_VERDICT_MAX]);

/* The whole verdict on stdout, a line for each rule that had something to say. */
void cli_verdict_print(const json_t *envelope);

#endif
