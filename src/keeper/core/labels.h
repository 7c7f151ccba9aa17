/* What the request said of the process, kept for the record: how it is called and what was asked to
 * run. Bounded, however large the request was. */
#ifndef COOP_KEEPER_LABELS_H
#define COOP_KEEPER_LABELS_H

#include <jansson.h>
#include <stdbool.h>

struct coop_labels {
	char *tag, *why, *task, *alias, *call_id;
	char *label;     /* the tag, else the program's name */
	char *argv_json; /* the list as JSON text, cut where it is very long */
	char *command;   /* for reading: quoted where needed, cut likewise */
	char *cwd;
	char *env_names; /* JSON text */
	bool shell;      /* mode */
	bool truncated;  /* argv or command was cut */
};

/* Fills all but cwd and shell. 0 or -ENOMEM: clear it. */
int coop_labels_take(struct coop_labels *labels, const json_t *args, const char *const *argv,
		     const char *const *environment);

/* A text of a caller's without control characters, at most 128 bytes, whole characters; the
 * caller's to free. NULL without memory. */
char *coop_label_clean(const char *text);

/* Cuts it down to what a receipt keeps. */
void coop_labels_shorten(struct coop_labels *labels);

void coop_labels_clear(struct coop_labels *labels);

#endif
