#include "keeper/conf/shells.h"

#include <string.h>
#include <unistd.h>

/* In order of preference: the first that is there is the default. */
static const struct coop_shell table[] = {
	{"bash", "Bash", "/bin/bash", true, true},     {"sh", "POSIX shell", "/bin/sh", true, true},
	{"dash", "Dash", "/bin/dash", true, true},     {"zsh", "Z shell", "/bin/zsh", true, true},
	{"fish", "fish", "/usr/bin/fish", true, true},
};

bool coop_shells_available(const struct coop_shell *shell)
{
	return access(shell->path, X_OK) == 0;
}

const struct coop_shell *coop_shells_row(size_t index)
{
	return index < sizeof table / sizeof table[0] ? &table[index] : NULL;
}

/* By the table alone: no other program is taken for a shell, whatever path is named. */
const struct coop_shell *coop_shells_find(const char *name)
{
	for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
		bool wanted = !name || !strcmp(table[i].id, name) || !strcmp(table[i].path, name);
		if (wanted && coop_shells_available(&table[i]))
			return &table[i];
	}
	return NULL;
}
