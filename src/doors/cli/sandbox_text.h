/* What is said to people about the sandbox of a process, and about limits. */
#ifndef COOP_CLI_SANDBOX_TEXT_H
#define COOP_CLI_SANDBOX_TEXT_H

#include <jansson.h>
#include <stddef.h>

/* Of the member `sandbox` of a record: "workspace-write /w, network loopback: files, network
 * enforced; ipc partial (why); without kill".
 * "" if there is none. Cut to the room. */
void cli_sandbox_line(const json_t *sandbox, char *ret_text, size_t size);

/* Of an object with limits: "timeout 30s, memory 512M, cpus 1.5". "" if there are none. Cut to the
 * room. */
void cli_limits_line(const json_t *limits, char *ret_text, size_t size);

#endif
