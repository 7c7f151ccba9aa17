/* The kernel's texts about control groups: whatever they say, every place is found or explained,
 * and what was found lies in its mount. The input is a mountinfo, a NUL and a list of own
 * groups. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sandbox/cgroup/cgroup_file.h"
#include "sandbox/cgroup/cgroup_find.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

static void check_place(const struct coop_cgroup_place *place)
{
	if (!place->folder) {
		assert(place->why[0]);
		return;
	}
	size_t size = strlen(place->folder);
	assert(!place->why[0] && place->top <= size);
	assert(size == place->top || place->folder[place->top] == '/');
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	struct coop_cgroup_places places;
	char *text = malloc(size + 2);

	assert(text);
	memcpy(text, input, size);
	text[size] = text[size + 1] = 0;
	const char *own = text + strlen(text) + 1;
	assert(coop_cgroup_find(text, own, &places) == 0);
	check_place(&places.unified);
	for (unsigned i = 0; i < COOP_CG_COUNT; i++)
		check_place(&places.v1[i]);
	coop_cgroup_places_clear(&places);
	(void)coop_cgfile_number(text, "oom_kill");
	free(text);
	return 0;
}
