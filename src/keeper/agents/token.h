/* Tokens: whoever shows one acts as its agent. The keeper knows only their keyed hashes. */
#ifndef COOP_KEEPER_TOKEN_H
#define COOP_KEEPER_TOKEN_H

#include <stdint.h>

#include "base/list.h"
#include "interface/err.h"
#include "records/secret.h"
#include "records/store.h"

#define COOP_TOKEN_MAX 256u /* bytes of one that is shown */

struct coop_agent;
struct coop_keeper;
struct coop_request;

struct coop_token {
	struct coop_agent *agent; /* holds the token, not the other way round */
	struct coop_link in_agent;
	int64_t id;
	char *label;
	uint8_t hash[COOP_HASH_SIZE];
	int64_t created_at, expires_at; /* 0: never */
};

/* How many there are; the one of that number, or NULL. */
int64_t coop_tokens_count(const struct coop_keeper *keeper);
struct coop_token *coop_token_find(const struct coop_keeper *keeper, int64_t id);

/* As the database has it. 0 or -ENOMEM. */
int coop_token_load(struct coop_agent *agent, const struct coop_store_token *row);
/* Out of the keeper: nobody can log in with it any more, and connections that did, end. */
void coop_token_drop(struct coop_token *token);

/* Drops those of all agents that have expired. */
void coop_token_drop_expired(struct coop_keeper *keeper);

/* Drops all tokens of an agent. */
void coop_token_drop_all(struct coop_agent *agent);

/* The keyed hash of a token's secret part. 0 or -ENOMEM. */
int coop_token_hash(const struct coop_keeper *keeper, const char *text,
		    uint8_t ret[COOP_HASH_SIZE]);

void coop_op_login(struct coop_request *request);
/* What is not even a text is a wrong token, too. */
void coop_op_login_invalid(struct coop_request *request, const struct coop_err *err);
void coop_op_token_new(struct coop_request *request);
void coop_op_token_list(struct coop_request *request);
void coop_op_token_revoke(struct coop_request *request);

#endif
