#include "keeper/launch/helpers.h"

#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include "base/io/memfd.h"
#include "keeper/launch/launcher_start.h"

extern const uint8_t coop_files_image[], coop_files_image_end[];

static const struct {
	const char *name;
	const uint8_t *image, *end;
} table[COOP_HELPERS] = {
	[COOP_HELPER_FILES] = {"coop-files", coop_files_image, coop_files_image_end},
};

const char *coop_helper_name(enum coop_helper helper)
{
	return table[helper].name;
}

int coop_helper_fd(struct coop_helpers *helpers, enum coop_helper helper)
{
	int *fd = &helpers->fds[helper];

	if (*fd > 0)
		return *fd;
	/* Sealed: neither the helper nor whoever finds it in /proc can change what runs next. */
	int made = coop_launcher_raise_fd(
		coop_memfd_sealed(table[helper].name, table[helper].image,
				  (size_t)(table[helper].end - table[helper].image)));
	if (made > 0)
		*fd = made;
	return made;
}

void coop_helpers_close(struct coop_helpers *helpers)
{
	for (int i = 0; i < COOP_HELPERS; i++) {
		if (helpers->fds[i] > 0)
			(void)close(helpers->fds[i]);
		helpers->fds[i] = 0;
	}
}
