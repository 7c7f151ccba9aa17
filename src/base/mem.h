/* Allocation with failure injection, so that tests can see every out-of-memory path of the keeper.
 *
 * COOP_FAULT=alloc:N lets the N-th allocation fail, COOP_FAULT=alloc:N:M that one and every M-th
 * after it. Without the variable these are malloc, calloc, realloc. Memory from here goes back with
 * free(). */
#ifndef COOP_BASE_MEM_H
#define COOP_BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>

/* Reads COOP_FAULT. Called once by main, before the first allocation that should count. */
void coop_mem_init(void);

/* How many allocations have failed so far. */
unsigned long coop_mem_failures(void);

/* Sets memory aside for what gives memory back. Without it everything works as before. Called once
 * by main. */
void coop_mem_reserve(size_t size);

/* From now on allocations of this thread that would fail are made from what was set aside, or no
 * more. It is set aside anew where that has ended, as far as there is memory. Returns what was
 * before, to be given back: sections may lie in each other. For one thread of the program alone. */
bool coop_mem_relief(bool on);

/* Whether what was set aside is being used: answers should be small. */
bool coop_mem_short(void);

/* NULL on failure, as malloc. A size of 0 gives a pointer that can be freed. */
void *coop_mem_alloc(size_t size);
void *coop_mem_zalloc(size_t size);
void *coop_mem_realloc(void *old, size_t size);
char *coop_mem_strdup(const char *text);

#endif
