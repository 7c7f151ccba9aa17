/* The filter of system calls of the gateway. */
#ifndef COOP_HTTP_CONFINE_CALLS_H
#define COOP_HTTP_CONFINE_CALLS_H

/* Loads it for this process, for good. 0 or a negative errno. no_new_privs must hold. */
int coop_confine_calls(void);

/* Compiled with a sanitizer? Its runtime opens files, starts threads and traces itself at the
 * end. */
#ifdef __SANITIZE_ADDRESS__
#define COOP_CONFINE_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define COOP_CONFINE_SANITIZED 1
#endif
#endif
#ifndef COOP_CONFINE_SANITIZED
#define COOP_CONFINE_SANITIZED 0
#endif

#endif
