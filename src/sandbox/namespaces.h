/* A net namespace, from inside. In the child and the launcher: only system calls. */
#ifndef COOP_SANDBOX_NAMESPACES_H
#define COOP_SANDBOX_NAMESPACES_H

/* Brings its loopback device up. 0 or -errno. */
int coop_namespaces_loopback(void);

#endif
