/* Allocation with failure injection, so that tests can see every out-of-memory path of the keeper.
 *
 * COOP_FAULT=alloc:N lets the N-th allocation fail, COOP_FAULT=alloc:N:M that one and every M-th after it. Without the
 * variable these are malloc, calloc, realloc. Memory from here goes back with free(). */
#ifndef COOP_BASE_MEM_H
#define COOP_BASE_MEM_H

#include <stddef.h>

/* Reads COOP_FAULT. Called once by main, before the first allocation that should count. */
void coop_mem_init(void);

/* How many allocations have failed so far. */
unsigned long coop_mem_failures(void);

/* NULL on failure, as malloc. A size of 0 gives a pointer that can be freed. */
void *coop_mem_alloc(size_t size);
void *coop_mem_zalloc(size_t size);
void *coop_mem_realloc(void *old, size_t size);
char *coop_mem_strdup(const char *text);

#endif
