/* coop.conf: what the operator says. Read at start and on SIGHUP; a file with a fault changes
 * nothing. */
#ifndef COOP_KEEPER_CONF_H
#define COOP_KEEPER_CONF_H

#include <stdbool.h>
#include <stddef.h>

#include "interface/err.h"
#include "keeper/conf/env.h"
#include "keeper/conf/settings.h"
#include "sandbox/policy/policy.h"

struct coop_policy;

#define COOP_CONF_FILE_MAX (1u << 20) /* bytes of the file */
#define COOP_CONF_LINE_MAX 8192u      /* bytes of a line, its end not counted */

struct coop_conf {
	struct coop_settings settings;
	struct coop_policy *policy; /* the operator's level; never NULL once loaded */
	struct coop_env_rules env;
	struct coop_profiles profiles; /* [sandbox] and [profile NAME] */
	bool records, audit; /* whether they are kept; looked at when the keeper starts only */
	bool present;        /* there was a file */
};

/* Where it is: COOP_CONF; else for root /etc/coop/coop.conf, else $XDG_CONFIG_HOME/coop/coop.conf
 * or ~/.config/coop/coop.conf. 0 or -ENAMETOOLONG. */
int coop_conf_path(char *ret_path, size_t size);

/* Defaults, then the file (one that is not there is as an empty one, unless COOP_CONF named it),
 * then `overrides`: "NAME=VALUE" texts, NULL-terminated, of COOP_SET and --set; NULL: none. `path`
 * NULL or "": no file. Refused, with details.field "configuration": an unknown section or key, a
 * value out of range, a single-valued key twice, a line that is no INI (all of these with the line
 * in the message and in details.line), a file of more than 1 MiB, one that others may write to, or
 * that belongs to another user than this one or root. A wrong override has the setting's name as
 * its field. 0 with *ret filled (to be cleared), or the error filled and *ret untouched. */
int coop_conf_load(const char *path, const char *const *overrides, struct coop_conf *ret,
		   struct coop_err *err);

/* What holds without a file. 0 with *ret filled (to be cleared), or the error filled and *ret
 * untouched. */
int coop_conf_init(struct coop_conf *ret, struct coop_err *err);

/* The parser alone: lays what `text` says over `conf`, which is initialised. `name` is the file's
 * for messages ("coop.conf"). 0, or the error filled; then conf is half changed and only to be
 * cleared. */
int coop_conf_parse(const char *text, size_t size, const char *name, struct coop_conf *conf,
		    struct coop_err *err);

void coop_conf_clear(struct coop_conf *conf);

#endif
