/* Reading process records, and saying them to people. */
#ifndef COOP_CLI_RECORD_H
#define COOP_CLI_RECORD_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Room for what the functions below write. */
#define CLI_TEXT_MAX 96

/* A member as text; "" where it is absent or null. Lives as long as the object. */
const char *cli_text(const json_t *object, const char *name);
/* A member as a number; 0 where it is absent or null. */
int64_t cli_number(const json_t *object, const char *name);
/* The same below another member: record.stats.pids. */
const json_t *cli_member(const json_t *object, const char *outer, const char *inner);

bool cli_record_finished(const json_t *record);
/* Its keeper died, and nobody knows how and when it ended. */
bool cli_record_lost(const json_t *record);

/* Is this process's output to be taken, for it to go on: has it backpressure, and no coop run of
 * its own (ephemeral) that takes it? Another agent's may only be looked at. */
bool cli_record_wants_reader(const json_t *record);
/* Is there no more room in a stream of the record? */
bool cli_stream_full(const json_t *stream);

/* The exit code of a program that stands for the command: its own, 128+n for a signal, 124 if its
 * time was up, 125 if it was lost. */
int cli_record_exit_code(const json_t *record);

/* "running", "running (frozen)", "exited 3", "SIGKILL (timed_out)", "lost". */
void cli_record_state(const json_t *record, char ret_text[CLI_TEXT_MAX]);

/* "150ms", "12s", "3m12s", "2h05m", "1d03h". */
void cli_format_duration(int64_t ms, char ret_text[CLI_TEXT_MAX]);
/* The same without loss, in one unit, as it can be typed: "90s", "3650d". */
void cli_format_exact_duration(int64_t ms, char ret_text[CLI_TEXT_MAX]);
/* A size in the same way: "512M", "1000". */
void cli_format_exact_bytes(int64_t bytes, char ret_text[CLI_TEXT_MAX]);
/* "512", "1.5K", "20M". */
void cli_format_bytes(int64_t bytes, char ret_text[CLI_TEXT_MAX]);
/* The same of a value that may be null: "-". */
void cli_format_bytes_or_dash(const json_t *value, char ret_text[CLI_TEXT_MAX]);
/* CPU percent, or "-". */
void cli_format_cpu(const json_t *record, char ret_text[CLI_TEXT_MAX]);

/* Says on stderr what the kernel tells about a bad end, a line each; nothing if there is none. */
void cli_record_say_facts(const json_t *record);

/* Says on stderr what a finished command left running and how to end it; nothing if there is
 * none. */
void cli_record_say_left_behind(const json_t *record);

#endif
