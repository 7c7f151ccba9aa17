/* A map from 64-bit keys to pointers: open addressing, grows as needed. Key 0 is not allowed. */
#ifndef COOP_BASE_MAP_H
#define COOP_BASE_MAP_H

#include <stddef.h>
#include <stdint.h>

struct coop_map {
	struct coop_map_slot *slots;
	size_t capacity, used; /* used counts values */
};

void coop_map_clear(struct coop_map *map);
/* The value, or NULL. */
void *coop_map_get(const struct coop_map *map, uint64_t key);
/* Sets or replaces. 0 or -ENOMEM, with nothing changed. */
int coop_map_put(struct coop_map *map, uint64_t key, void *value);
/* Returns what was there, or NULL. */
void *coop_map_remove(struct coop_map *map, uint64_t key);

#endif
