/* Short work: one answer in one turn. */
#include <errno.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "doors/files/talk.h"

/* A part before the last that is no directory: there is nothing by that name. */
static int as_missing(int status)
{
	return status == -ENOTDIR ? -ENOENT : status;
}

enum files_turn files_stat(struct files_talk *talk, struct files_request *request)
{
	char path[FILES_PATH_MAX];

	if (files_take_path(talk, request, "path", path) < 0)
		return FILES_OVER;
	return files_send_entry(talk, path);
}

enum files_turn files_mkdir(struct files_talk *talk, struct files_request *request)
{
	char path[FILES_PATH_MAX];

	if (files_take_path(talk, request, "path", path) < 0)
		return FILES_OVER;
	int r = files_path_make(path);
	if (r < 0)
		return files_fail(talk, r, path);
	files_send_done(talk);
	return FILES_OVER;
}

enum files_turn files_move(struct files_talk *talk, struct files_request *request)
{
	char from[FILES_PATH_MAX], to[FILES_PATH_MAX];
	const char *from_name = NULL, *to_name = NULL;

	if (files_take_path(talk, request, "from", from) < 0 ||
	    files_take_path(talk, request, "to", to) < 0)
		return FILES_OVER;
	COOP_AUTO_FD int from_parent = files_path_open_parent(from, &from_name);
	if (from_parent < 0)
		return files_fail(talk, as_missing(from_parent), from);
	COOP_AUTO_FD int to_parent = files_path_open_parent(to, &to_name);
	if (to_parent < 0)
		return files_fail(talk, as_missing(to_parent), to);
	/* Of what is wrong with a rename the source is to blame where it is not there, else the
	 * target. */
	if (renameat(from_parent, from_name, to_parent, to_name) < 0)
		return files_fail(talk, -errno, errno == ENOENT ? from : to);
	return files_send_entry(talk, to);
}
