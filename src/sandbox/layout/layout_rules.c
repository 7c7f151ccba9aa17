/* Landlock: behind the mounts everything may be read and the writable places be written; without
 * mounts the rules are all there is. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "sandbox/layout/layout_builder.h"
#include "sandbox/layout/layout_path.h"

#define RULES_MAX 2048u

static enum coop_plan_access access_of(const char *path)
{
	if (!strcmp(path, "/proc"))
		return COOP_ACCESS_PROC;
	return !strcmp(path, "/dev") ? COOP_ACCESS_DEVICES : COOP_ACCESS_READ;
}

static void add_home(struct coop_builder *b)
{
	if (b->input->home && b->input->home[1] && b->out->home != COOP_HOME_READ_ONLY)
		coop_builder_rule(b, COOP_ACCESS_WRITE, b->input->home);
}

void coop_layout_base_rules(struct coop_builder *b)
{
	if (b->degraded)
		return;
	coop_builder_rule(b, COOP_ACCESS_READ, "/");
	coop_builder_rule(b, COOP_ACCESS_WRITE, COOP_LAYOUT_TMP);
	coop_builder_rule(b, COOP_ACCESS_DEVICES, "/dev");
	coop_builder_rule(b, COOP_ACCESS_WRITE, "/dev/shm");
	coop_builder_rule(b, COOP_ACCESS_PROC, "/proc");
	if (!b->home_later)
		add_home(b);
}

/* A tree in the folder of which nothing else is seen. */
static bool brought_into(const struct coop_builder *b, const char *sealed, const char *path)
{
	return b->input->emptied && !strcmp(sealed, b->input->emptied) &&
	       strcmp(path, sealed) != 0 && coop_path_below(path, sealed);
}

/* What stands in the way of a rule for all below path. */
static bool leads_to_denied(const struct coop_builder *b, const char *path,
			    enum coop_plan_access access, bool *ret_denied)
{
	const struct coop_seal *list = (const void *)coop_buf_front(&b->seals);
	size_t count = coop_buf_size(&b->seals) / sizeof *list;
	bool leads = false;

	*ret_denied = false;
	for (size_t i = 0; i < count; i++) {
		bool firm = access == COOP_ACCESS_WRITE && list[i].firm;
		if ((list[i].kind != COOP_SEAL_COVER && !firm) ||
		    brought_into(b, list[i].path, path))
			continue;
		/* What is pinned is a link, or a folder on the way. */
		if (list[i].kind != COOP_SEAL_PIN && coop_path_below(path, list[i].path))
			*ret_denied = true;
		leads |= coop_path_below(list[i].path, path);
	}
	return leads;
}

static void allow(struct coop_builder *b, const char *path, enum coop_plan_access access,
		  size_t *budget);

/* Landlock cannot take back what lies below an allowed folder: all that is beside the denied is
 * allowed, name by name. */
static void allow_beside(struct coop_builder *b, const char *folder, enum coop_plan_access access,
			 size_t *budget)
{
	char path[COOP_PATH_SIZE];
	DIR *dir = opendir(folder);

	if (!dir)
		return;
	for (const struct dirent *entry; *budget && (entry = readdir(dir));) {
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
		    entry->d_type != DT_LNK && coop_path_join(folder, entry->d_name, path) == 0)
			allow(b, path, access, budget);
	}
	(void)closedir(dir);
}

static void allow(struct coop_builder *b, const char *path, enum coop_plan_access access,
		  size_t *budget)
{
	bool denied, unread;

	if (leads_to_denied(b, path, access, &denied) && !denied) {
		/* What is only not to be written can be read as ever. */
		if (access == COOP_ACCESS_WRITE &&
		    !leads_to_denied(b, path, COOP_ACCESS_READ, &unread) && !unread)
			coop_builder_rule(b, COOP_ACCESS_READ, path);
		allow_beside(b, path, access, budget);
	} else if (!denied && *budget) {
		(*budget)--;
		coop_builder_rule(b, access == COOP_ACCESS_READ ? access_of(path) : access, path);
	}
}

/* What holds on no host without mounts comes first, then what else there was to say. */
static void tell_degraded(struct coop_builder *b)
{
	static const char *const beside = "beside denied ones what is made later cannot be read";
	char *note = b->out->note, more[sizeof b->out->note];
	bool denied, leads = leads_to_denied(b, "/", COOP_ACCESS_READ, &denied);

	(void)snprintf(more, sizeof more, "%s", *note ? note : leads ? beside : "");
	(void)snprintf(note, sizeof b->out->note,
		       "landlock only: protected paths can be written%s%.*s", *more ? "; " : "",
		       (int)sizeof more / 2 + 30, more);
}

static void add_degraded(struct coop_builder *b, size_t *budget)
{
	tell_degraded(b);
	allow(b, "/", COOP_ACCESS_READ, budget);
	/* A rule for the root says nothing of devices and processes. */
	coop_builder_rule(b, COOP_ACCESS_DEVICES, "/dev");
	coop_builder_rule(b, COOP_ACCESS_PROC, "/proc");
}

void coop_layout_rules(struct coop_builder *b)
{
	const struct coop_zone_entry *list = (const void *)coop_buf_front(&b->zones);
	size_t count = coop_buf_size(&b->zones) / sizeof *list, budget = RULES_MAX;

	if (b->failed)
		return;
	for (size_t i = 0; i < count; i++) {
		bool hidden = b->degraded && b->input->emptied &&
			      coop_path_below(list[i].path, b->input->emptied);
		if (list[i].zone == COOP_ZONE_READABLE && hidden)
			allow(b, list[i].path, COOP_ACCESS_READ, &budget);
		if (list[i].zone != COOP_ZONE_WRITABLE)
			continue;
		if (b->degraded)
			allow(b, list[i].path, COOP_ACCESS_WRITE, &budget);
		else
			coop_builder_rule(b, COOP_ACCESS_WRITE, list[i].path);
	}
	/* Behind the command's own: whoever makes thousands of names beside something denied
	 * must not use up what that needs. */
	if (b->degraded)
		add_degraded(b, &budget);
	if (!b->degraded && b->home_later)
		add_home(b);
	/* The one in the base is of the private one. */
	if (!b->degraded && b->input->tmp)
		coop_builder_rule(b, COOP_ACCESS_WRITE, COOP_LAYOUT_TMP);
}
