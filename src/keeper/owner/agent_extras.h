/* What an agent has been given besides limits: variables that its processes begin with, words of
 * whoever made it, the moment of its end, a folder of its own. Values of variables are never shown,
 * and neither they nor the metadata are in a log or in the audit. */
#ifndef COOP_KEEPER_AGENT_EXTRAS_H
#define COOP_KEEPER_AGENT_EXTRAS_H

#include <jansson.h>
#include <stdint.h>

#include "base/json/jsonw.h"
#include "interface/bounds.h"
#include "interface/err.h"

#define COOP_AGENT_ENV_BYTES_MAX (128u << 10)     /* names and values together */
#define COOP_AGENT_METADATA_BYTES_MAX (16u << 10) /* keys and values together */

struct coop_agent;
struct coop_agent_settings;

/* Zero-initialised there is nothing. The objects are shared, and nobody changes them. */
struct coop_agent_extras {
	json_t *env;        /* {name: value}; NULL: none */
	json_t *metadata;   /* {string: string}; NULL: none */
	int64_t expires_at; /* by the wall clock; 0: never */
	char *folder_in;    /* where its own folder lies; NULL: it has none (agent_folder.h) */
	char folder_mark[COOP_AGENT_FOLDER_MARK];
};

void coop_agent_extras_clear(struct coop_agent_extras *extras);
/* 0 or -ENOMEM: then `to` must be cleared all the same. */
int coop_agent_extras_copy(const struct coop_agent_extras *from, struct coop_agent_extras *to);

/* Lays those of `args` over what is there: absent ones stay, null ones are taken away. 0, or the
 * error filled, which holds no value. */
int coop_agent_extras_read(const json_t *args, struct coop_agent_extras *extras,
			   struct coop_err *err);

/* An agent that may not set variables by which code is slipped into a program does not get them
 * from one who may not either. */
int coop_agent_extras_narrow(const struct coop_agent_settings *settings, const json_t *args,
			     const struct coop_agent *parent, struct coop_err *err);

/* As members of the object that the database keeps, and back. What is read back holds to the same
 * rules as what clients give; its types have been checked. 0, or the error filled. */
void coop_agent_extras_store(const struct coop_agent_extras *extras, struct coop_jsonw *w);
int coop_agent_extras_restore(const json_t *json, struct coop_agent_extras *extras,
			      struct coop_err *err);

/* The members that an agent is shown with. */
void coop_agent_extras_write(const struct coop_agent *agent, struct coop_jsonw *w);

#endif
