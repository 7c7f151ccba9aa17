/* What is told of a file: the entry E of /runtime/v1. */
#ifndef COOP_FILES_ENTRY_H
#define COOP_FILES_ENTRY_H

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/json/jsonw.h"

/* Names of users and groups, asked for again and again. Zero-initialise it. */
struct files_names {
	struct {
		bool known;
		id_t id;
		char name[64];
	} user, group;
};

/* Writes E of what lies at `path`, which `found` (of the link itself) tells about. `directory`,
 * `name`: where its target can be read if it is a link. */
void files_entry_write(struct coop_jsonw *w, const char *name, const char *path,
		       const struct stat *found, int directory, const char *link,
		       struct files_names *names);

/* Whether it is there only for the sandbox: what protects a name that is not there is an empty file
 * or directory, mounted read-only. For clients there is nothing. `name` may be "": then it is about
 * the fd itself. */
bool files_entry_is_placeholder(int directory, const char *name, const struct stat *found);

/* Looks at a clean path without following its last part and writes E. 0 or -errno with nothing
 * written; -ENOENT also for a placeholder. */
int files_entry_of(struct coop_jsonw *w, const char *name, const char *path,
		   struct files_names *names);

#endif
