#include "doors/http/net/shared.h"

#include <stdlib.h>

#include "base/mem.h"

struct coop_http_shared *coop_shared_new(size_t capacity)
{
	struct coop_http_shared *block = coop_mem_alloc(sizeof *block + capacity);

	if (!block)
		return NULL;
	block->refs = 1;
	block->size = 0;
	block->capacity = capacity;
	return block;
}

struct coop_http_shared *coop_shared_ref(struct coop_http_shared *block)
{
	block->refs++;
	return block;
}

void coop_shared_unref(struct coop_http_shared *block)
{
	if (block && --block->refs == 0)
		free(block);
}
