/* A name as somebody typed it: where it leads, and that no link takes it out of the folder that he
 * stands in. A command that ran there may have left one. */
#ifndef COOP_CLI_TYPED_H
#define COOP_CLI_TYPED_H

#include <limits.h>

#include "doors/cli/cli.h"

/* Opens it (O_PATH); *ret_path is where it is, without links. What is relative, or lies in the
 * current folder by its words, must stay in there: links that do so are followed. With `..` it may
 * lead elsewhere, then no link is. What else is absolute is taken as the kernel does. The
 * descriptor, or -errno with *error filled where a link is in the way (-EXDEV) and else empty. */
int cli_typed_open(const char *name, char ret_path[PATH_MAX], struct coop_error *error);

#endif
