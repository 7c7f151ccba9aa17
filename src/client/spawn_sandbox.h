/* The parts of coop_spawn() that say how a process is confined. */
#ifndef COOP_CLIENT_SPAWN_SANDBOX_H
#define COOP_CLIENT_SPAWN_SANDBOX_H

#include "client/arguments.h"

/* Adds `sandbox`, `limits` and `file_injections` as far as the options say something. 0, or
 * -EINVAL, -EMSGSIZE or -ENOMEM with *error filled. */
int coop_client_put_sandbox(struct coop_arguments *arguments,
			    const struct coop_spawn_options *options, struct coop_error *error);

/* The request's bytes: those of the files, as they were put, then stdin's. 0 or -ENOMEM; to be
 * cleared either way. */
int coop_client_gather(const struct coop_spawn_options *options, struct coop_buf *ret);

#endif
