/* Bytes handed to another process as a file in memory that nobody can change any more. */
#ifndef COOP_BASE_MEMFD_H
#define COOP_BASE_MEMFD_H

#include <stddef.h>

/* A sealed, close-on-exec memfd holding these bytes, or -errno. The name is for /proc only. */
int coop_memfd_sealed(const char *name, const void *bytes, size_t size);

#endif
