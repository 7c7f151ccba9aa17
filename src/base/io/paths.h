/* Where coop's socket, state and data are for this user (docs/PROTOCOL.md section 1). */
#ifndef COOP_BASE_PATHS_H
#define COOP_BASE_PATHS_H

#include <stdbool.h>
#include <stddef.h>

#define COOP_PATHS_MAX 4096u

/* Writes the socket's path: COOP_SOCKET, else the user's runtime folder. 0, or -ENAMETOOLONG if it
 * does not fit sun_path. */
int coop_paths_socket(char *ret_path, size_t size);

/* Writes the state folder's path: COOP_STATE, XDG_STATE_HOME/coop, root: /var/lib/coop, else
 * ~/.local/state/coop. */
int coop_paths_state(char *ret_path, size_t size);

/* Writes the path of the folder for agents' own folders: COOP_DATA, root: /srv/coop, else
 * XDG_DATA_HOME/coop or ~/.local/share/coop. */
int coop_paths_data(char *ret_path, size_t size);

/* Makes the folder that `path` lies in, mode 0700, parents as needed. If it exists it must be a
 * folder of this user (or root's) that no other user can write to. 0; -EPERM: it belongs to
 * somebody else or others may write there; other -errno. */
int coop_paths_make_parent(const char *path);

/* Makes a folder likewise. */
int coop_paths_make_dir(const char *path);

/* Takes "." and ".." out of an absolute path by its words, and slashes that say nothing. In
 * place. */
void coop_paths_plain(char *path);

/* What follows, in the words of an absolute name, the part of it that leads to `folder` (without
 * links): "/x/y", "" if that is all. NULL: no part of it does. */
const char *coop_paths_behind(const char *folder, const char *name);

/* Whether `name` in the open folder `parent` ("." is that one) is a folder with nothing in it. No
 * link is followed. */
bool coop_paths_is_empty(int parent, const char *name);

/* Removes a folder and what is in it, as far as that is possible. A link is removed, never
 * followed. */
void coop_paths_remove_all(const char *path);

/* Says in words why one of the two above failed with `status`, and the way out where there is one:
 * "/x belongs to another user (uid 1000)", "others may write to /x: chmod go-w /x". `path` is the
 * folder, or (make_parent) what was to lie in it. */
void coop_paths_explain_dir(const char *path, int status, char *ret_text, size_t size);
void coop_paths_explain_parent(const char *path, int status, char *ret_text, size_t size);

#endif
