/* What the programs of this folder share. They measure; they do not recover: whatever fails ends
 * them with one line. */
#ifndef COOP_BENCH_H
#define COOP_BENCH_H

#include <coop.h>
#include <stddef.h>
#include <stdint.h>

/* Monotonic nanoseconds. */
uint64_t bench_now(void);

/* Ends the program with that line on stderr; `why` may be NULL. */
_Noreturn void bench_fail(const char *what, const char *why);
/* The same with the text of errno. */
_Noreturn void bench_fail_errno(const char *what);

/* A whole number from the command line, at least 1. */
size_t bench_number(const char *text);

/* Connects to the keeper at COOP_SOCKET, which must be there already. */
struct coop *bench_connect(void);
/* The same as the agent whose token this is; "" is none, NULL what COOP_TOKEN says. */
struct coop *bench_connect_as(const char *token);

/* Copies the id out of a spawn's answer. */
void bench_id(const char *json, char ret_id[COOP_ID_SIZE]);

/* Ends the program unless that wait's answer tells of an exit with code 0. */
void bench_check_end(const char *json);

/* Ends the program unless the record in that answer says that a sandbox of the default kind is
 * enforced. */
void bench_check_confined(const char *json);

/* The number behind `"name":` in a JSON text, of its first appearance. */
uint64_t bench_json_number(const char *json, const char *name);

/* The arguments of a spawn of that argv (ends with NULL) in /; to be freed by the caller. `more` is
 * appended as it is, beginning with a comma, or "". */
char *bench_spawn_args(char *const *argv, const char *more);

#endif
