/* Before a request is carried out that names paths, or makes the keeper look at some for it: each
 * is asked about without waiting (silence.h), and if all are at hand, as mostly, the request goes
 * on at once. Else a thread looks them up first (scouts.h). */
#ifndef COOP_KEEPER_PREFLIGHT_H
#define COOP_KEEPER_PREFLIGHT_H

#include <stdbool.h>

struct coop_keeper;
struct coop_request;

/* True: the request may be carried out now. False: it waits, or has been answered. */
bool coop_preflight(struct coop_request *request);

/* The same for coop.conf, when nobody's request asks for it to be read again. True: that may be
 * done now. False: coop_reload is called once a thread has been there, however often this
 * was asked meanwhile. */
bool coop_preflight_conf(struct coop_keeper *keeper);

/* Something was missed, and the draft has come to nothing: a thread looks it up, and the request is
 * carried out from its beginning. */
void coop_preflight_again(struct coop_request *request);

#endif
