/* How much the arguments of operations may hold: the tables say it to callers, and whoever takes
 * the values relies on it. */
#ifndef COOP_INTERFACE_BOUNDS_H
#define COOP_INTERFACE_BOUNDS_H

/* Larger integers are not the same to every JSON parser. */
#define COOP_JSON_INT_MAX ((1LL << 53) - 1)

#define COOP_MS_MAX 315360000000LL /* milliseconds: ten years */
#define COOP_POSITION_MAX COOP_JSON_INT_MAX
#define COOP_ID_MAX 512
#define COOP_PATH_SIZE 4096u /* of a path, with its NUL */

/* What a request may bring: for stdin at the start and later, in one file and in all of them. */
#define COOP_STDIN_MAX (4u << 20)
#define COOP_STDIN_WRITE_MAX (1u << 20)
#define COOP_INJECTION_BYTES_MAX (8u << 20)
#define COOP_INJECTIONS_BYTES_MAX (16u << 20)
#define COOP_INJECTIONS_MAX 128u
#define COOP_SPAWN_BYTES_MAX (COOP_STDIN_MAX + COOP_INJECTIONS_BYTES_MAX)

#define COOP_ENV_MAX 256u        /* variables in a request */
#define COOP_NAME_BYTES_MAX 255u /* of a file's name or a variable's */
#define COOP_NOTE_MAX 512u       /* bytes of a note, its line end included */
#define COOP_READER_NAME_MAX 64u

#define COOP_WORKSPACE_MAX 16u /* folders of an agent */
#define COOP_AGENT_METADATA_MAX 64u
#define COOP_AGENT_FOLDER_MARK 33u /* with its NUL */

#define COOP_SANDBOX_PATHS_MAX 256u /* in each list */
#define COOP_PROFILE_NAME_MAX 40u

#endif
