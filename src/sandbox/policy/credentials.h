/* Names below a home that hold secrets, as found in use: keys, tokens, passwords, cookies,
 * histories in which they were typed. Commands do not see them. The rows are data; what does with
 * them is in layout_home.c. */
#ifndef COOP_SANDBOX_CREDENTIALS_H
#define COOP_SANDBOX_CREDENTIALS_H

#include "sandbox/policy/found.h"

#define COOP_CREDENTIALS_MAX 256u

extern const char *const coop_credentials[]; /* sorted as found.h wants it */
extern const uint32_t coop_credentials_count;

/* Which of them are in that home. `ret` has COOP_CREDENTIALS_MAX members; `memory` as in
 * found.h, NULL: nothing is remembered. */
void coop_credentials_look(const char *home, struct coop_found_memory **memory,
			   struct coop_found *ret);

#endif
