/* The configuration in force: what was loaded last, from where, and why a later attempt failed. */
#ifndef COOP_KEEPER_CONFIG_H
#define COOP_KEEPER_CONFIG_H

#include <stdint.h>

#include "keeper/conf/conf.h"

struct coop_config;

/* Loads coop.conf (`named` false: there is none) and `overrides` over it, which must live as long
 * as the result. NULL with the error filled. */
struct coop_config *coop_config_open(bool named, const char *const *overrides,
				     struct coop_err *err);
void coop_config_free(struct coop_config *config); /* NULL is fine */

/* Reads the file again. 0, or the error filled: then what held before stays in force. */
int coop_config_reload(struct coop_config *config, struct coop_err *err);

const struct coop_conf *coop_config_now(const struct coop_config *config);
const char *coop_config_path(const struct coop_config *config); /* absolute; "": there is no file */
int64_t coop_config_loaded_at(const struct coop_config *config);
/* Why the last attempt to load it failed; "" if it did not. */
const char *coop_config_error(const struct coop_config *config);

#endif
