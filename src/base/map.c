#include "base/map.h"

#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"

struct coop_map_slot {
	uint64_t key; /* 0: empty */
	void *value;
};

static size_t home(const struct coop_map *map, uint64_t key)
{
	return (size_t)(key * 0x9e3779b97f4a7c15u >> 20) & (map->capacity - 1);
}

/* The slot that holds the key, or the empty one where it would go. */
static struct coop_map_slot *find(const struct coop_map *map, uint64_t key)
{
	size_t i = home(map, key);

	while (map->slots[i].key && map->slots[i].key != key)
		i = (i + 1) & (map->capacity - 1);
	return &map->slots[i];
}

void coop_map_clear(struct coop_map *map)
{
	free(map->slots);
	*map = (struct coop_map){0};
}

void *coop_map_get(const struct coop_map *map, uint64_t key)
{
	return map->capacity ? find(map, key)->value : NULL;
}

/* Makes sure that one more put of a new key cannot fail. */
static int reserve(struct coop_map *map)
{
	if ((map->used + 1) * 4 <= map->capacity * 3)
		return 0;
	struct coop_map grown = {.capacity = map->capacity ? map->capacity * 2 : 64};
	grown.slots = coop_mem_zalloc(grown.capacity * sizeof *grown.slots);
	if (!grown.slots)
		return -ENOMEM;
	for (size_t i = 0; i < map->capacity; i++) {
		if (map->slots[i].key)
			*find(&grown, map->slots[i].key) = map->slots[i];
	}
	grown.used = map->used;
	free(map->slots);
	*map = grown;
	return 0;
}

int coop_map_put(struct coop_map *map, uint64_t key, void *value)
{
	int r = reserve(map);

	if (r < 0)
		return r;
	struct coop_map_slot *slot = find(map, key);
	map->used += !slot->key;
	*slot = (struct coop_map_slot){.key = key, .value = value};
	return 0;
}

void *coop_map_remove(struct coop_map *map, uint64_t key)
{
	struct coop_map_slot *slot = map->capacity ? find(map, key) : NULL;

	if (!slot || !slot->key)
		return NULL;
	void *value = slot->value;
	size_t hole = (size_t)(slot - map->slots), mask = map->capacity - 1;
	/* Close the hole: move back every follower that may stand there, so that no search stops
	 * early. */
	for (size_t i = (hole + 1) & mask; map->slots[i].key; i = (i + 1) & mask) {
		size_t wanted = home(map, map->slots[i].key);
		if (((i - wanted) & mask) >= ((i - hole) & mask)) {
			map->slots[hole] = map->slots[i];
			hole = i;
		}
	}
	map->slots[hole] = (struct coop_map_slot){0};
	map->used--;
	return value;
}
