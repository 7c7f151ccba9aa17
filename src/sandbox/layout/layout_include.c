/* Settings of git that name further files of settings: those are sealed with them. */
#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "sandbox/layout/layout_builder.h"
#include "sandbox/layout/layout_path.h"

#define FILE_MAX (256u << 10)
#define DEPTH_MAX 10 /* git goes no deeper */
#define INCLUDES_MAX 64u
/* In all of a layout, which may have thousands of modules. */
#define ALL_INCLUDES_MAX 256u
#define ALL_BYTES_MAX (16u << 20)

struct reading {
	struct coop_builder *b;
	unsigned budget; /* files that may still be sealed */
	char text[FILE_MAX + 1];
};

static void read_settings(struct reading *reading, const char *file, int depth);

/* A value as git reads it, up to the end of its line: quotes, escapes, comments, lines that go on.
 * Returns where that is. */
static const char *read_value(const char *at, char *ret)
{
	size_t size = 0, kept = 0;
	bool quoted = false;

	while (*at == ' ' || *at == '\t')
		at++;
	for (; *at && (*at != '\n'); at++) {
		char c = *at;
		if (!quoted && (c == '#' || c == ';')) {
			at += strcspn(at, "\n");
			break;
		}
		if (c == '"') {
			quoted = !quoted;
			continue;
		}
		bool escaped = c == '\\' && at[1];
		if (escaped) {
			c = *++at;
			if (c == '\n')
				continue;
		}
		if (size < COOP_PATH_SIZE - 1)
			ret[size++] = c;
		/* Spaces at the end belong to nothing. */
		if (quoted || escaped || !isspace((unsigned char)c))
			kept = size;
	}
	ret[kept] = 0;
	return at;
}

/* What the value says, seen from the file that it stands in. */
static bool include_path(struct coop_builder *b, const char *file, const char *value, char *ret)
{
	char folder[COOP_PATH_SIZE];

	if (*value == '/' || !strncmp(value, "~/", 2))
		return coop_path_expand(value, b->input->home, ret) == 0;
	coop_path_parent(file, folder);
	int n = snprintf(ret, COOP_PATH_SIZE, "%s/%s", folder, value);
	return *value && n > 0 && (size_t)n < COOP_PATH_SIZE;
}

/* A plain file stands for one that is missing: git takes anything else for a fault. */
static void seal_include(struct reading *reading, const char *file, const char *value, int depth)
{
	char path[COOP_PATH_SIZE];

	if (!include_path(reading->b, file, value, path))
		return;
	if (!reading->budget || reading->b->included == ALL_INCLUDES_MAX) {
		coop_builder_note(reading->b, "too many files are included by %.80s", file);
		return;
	}
	reading->budget--;
	reading->b->included++;
	coop_layout_seal_in(reading->b, "/", path, COOP_SEAL_READONLY,
			    (struct coop_stand_in){.content = ""});
	if (depth < DEPTH_MAX)
		read_settings(reading, path, depth + 1);
}

/* Whether the section that begins here is one that includes; *at is then behind its `]`. */
static bool section_includes(const char **at)
{
	const char *name = *at + 1;
	size_t size = strcspn(name, " \t\"].\n");
	bool includes = (size == 7 && !strncasecmp(name, "include", 7)) ||
			(size == 9 && !strncasecmp(name, "includeIf", 9));

	for (bool quoted = false; **at && **at != '\n' && (quoted || **at != ']'); (*at)++) {
		if (**at == '\\' && (*at)[1])
			(*at)++;
		else if (**at == '"')
			quoted = !quoted;
	}
	*at += **at == ']';
	return includes;
}

/* The values of `path` in such sections, each with its NUL; how many bytes. */
static size_t collect(const char *text, char *ret, size_t room)
{
	char value[COOP_PATH_SIZE];
	bool includes = false;
	size_t used = 0;

	for (const char *at = text; *at;) {
		if (isspace((unsigned char)*at)) {
			at++;
		} else if (*at == '[') {
			includes = section_includes(&at);
		} else if (*at == '#' || *at == ';') {
			at += strcspn(at, "\n");
		} else {
			size_t size = strcspn(at, " \t=\n#;");
			bool wanted = includes && size == 4 && !strncasecmp(at, "path", 4);
			at += size;
			at += strspn(at, " \t");
			*value = 0;
			if (*at == '=')
				at = read_value(at + 1, value);
			else
				at += strcspn(at, "\n");
			size = strlen(value) + 1;
			if (wanted && size > 1 && size <= room - used) {
				memcpy(ret + used, value, size);
				used += size;
			}
		}
	}
	return used;
}

/* The text is read whole before what it names is, which is read into the same room. */
static void read_settings(struct reading *reading, const char *file, int depth)
{
	COOP_AUTO_FD int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	char values[4 * COOP_PATH_SIZE];
	struct stat st;
	ssize_t size;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return;
	if (reading->b->settings_read >= ALL_BYTES_MAX) {
		coop_builder_note(reading->b, "too many settings of git to look through: %.80s",
				  file);
		return;
	}
	if ((size = read(fd, reading->text, FILE_MAX)) <= 0)
		return;
	reading->b->settings_read += (size_t)size;
	reading->text[size] = 0;
	/* Most include nothing. */
	if (!strcasestr(reading->text, "[include"))
		return;
	size_t used = collect(reading->text, values, sizeof values);
	for (size_t at = 0; at < used && !reading->b->failed; at += strlen(values + at) + 1)
		seal_include(reading, file, values + at, depth);
}

void coop_layout_includes(struct coop_builder *b, const char *file)
{
	struct reading reading; /* large: its text is not to be cleared for each process */

	reading.b = b;
	reading.budget = INCLUDES_MAX;
	read_settings(&reading, file, 0);
}
