#include "interface/choices.h"

#include <stddef.h>

const char *const coop_choices_network[] = {"none", "loopback", "allowlist", "host", NULL};
const char *const coop_choices_home[] = {"cow", "read-only", "hidden", NULL};
const char *const coop_choices_root[] = {"host", "minimal", NULL};
const char *const coop_choices_names[] = {"as_typed", "resolved", NULL};
const char *const coop_choices_placement[] = {"env", "path", NULL};
const char *const coop_choices_helper[] = {"files", NULL};
const char *const coop_choices_mode[] = {"argv", "shell", NULL};
const char *const coop_choices_env_mode[] = {"inherit_clean", "patch", "merge", "replace", NULL};
const char *const coop_choices_kind[] = {"pipe", "pty", NULL};
const char *const coop_choices_stdin[] = {"none", "pipe", "data", NULL};
const char *const coop_choices_stderr[] = {"separate", "merged", NULL};
const char *const coop_choices_overflow[] = {"drop_oldest", "backpressure", "spool", NULL};
const char *const coop_choices_keep_overflow[] = {"drop_oldest", "backpressure", NULL};
const char *const coop_choices_quota[] = {"continue", "kill", NULL};
const char *const coop_choices_on_exit[] = {"keep", "kill", NULL};
const char *const coop_choices_lease[] = {"ephemeral", "awaited", "persistent", NULL};
const char *const coop_choices_state[] = {"starting", "running",  "stopped", "stopping",
					  "exited",   "signaled", NULL};
const char *const coop_choices_stream[] = {"stdout", "stderr", "pty", NULL};
const char *const coop_choices_read_stream[] = {"stdout",   "stderr", "pty",
						"combined", "output", NULL};
const char *const coop_choices_follow_mode[] = {"bytes", "events", NULL};
const char *const coop_choices_until[] = {"exit", "eof", NULL};
const char *const coop_choices_target[] = {"group", "process", "tree", "foreground", NULL};
const char *const coop_choices_if_running[] = {"kill", "refuse", NULL};

const char *const coop_usual_variables[] = {"PATH",   "HOME", "USER", "LOGNAME", "SHELL", "TERM",
					    "TMPDIR", "LANG", "TZ",   "LC_*",    NULL};
