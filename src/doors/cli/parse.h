/* What people write on a command line, as numbers: "30s", "512M", "NAME=VALUE". No I/O, no
 * allocation. */
#ifndef COOP_CLI_PARSE_H
#define COOP_CLI_PARSE_H

#include <stddef.h>
#include <stdint.h>

/* Largest name that cli_parse_env() accepts, its NUL included. */
#define CLI_ENV_NAME_MAX 256

/* A duration in milliseconds: a number, which may have a fraction, and one of ms, s, m, h, d;
 * without a unit it is seconds. -EINVAL: no such thing; -ERANGE: more than fits. *ret_ms is
 * untouched on failure. */
int cli_parse_duration(const char *text, uint64_t *ret_ms);

/* A size in bytes: a number, which may have a fraction, and one of B, K, M, G, T (powers of 1024;
 * "KiB" and "KB" are taken too, in either case); without a unit it is bytes. Failures as above. */
int cli_parse_size(const char *text, uint64_t *ret_bytes);

/* A plain decimal number. Failures as above. */
int cli_parse_count(const char *text, uint64_t *ret);

/* A duration as above in whole seconds; one that is not whole is -EINVAL. Failures as above. */
int cli_parse_seconds(const char *text, uint64_t *ret);

/* A moment in milliseconds since 1970: an age (a duration, counted back from now), or an RFC 3339
 * time, of which the end may be left out: "2026-01-02", "2026-01-02T03:04",
 * "2026-01-02T03:04:05.678Z", "2026-01-02 03:04:05+02:00". Without a zone it is local time.
 * Failures as above. */
int cli_parse_time(const char *text, uint64_t *ret_ms);

/* "NAME=VALUE" or "NAME". Writes the name, and gives the value, which points into `text`, NULL
 * without a "=". -EINVAL: the name is empty or holds something else than letters, digits and "_";
 * -ENAMETOOLONG. */
int cli_parse_env(const char *text, char name[CLI_ENV_NAME_MAX], const char **ret_value);

#endif
