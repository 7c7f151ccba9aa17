/* Finds the programs that belong together with this library. */
#ifndef COOP_CLIENT_LOCATE_H
#define COOP_CLIENT_LOCATE_H

#include <stddef.h>

/* Writes the path of the program `name`: the value of the variable `variable` if set (not
 * checked), else the first that can be executed beside the running program, beside this library
 * (its folder, ../bin, ../libexec), or in PATH. 0, -ENOENT, -ENAMETOOLONG. */
int coop_locate_program(const char *name, const char *variable, char *ret_path, size_t size);

#endif
