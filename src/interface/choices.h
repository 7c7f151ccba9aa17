/* The words that arguments choose from; their positions are the enums they stand for. */
#ifndef COOP_INTERFACE_CHOICES_H
#define COOP_INTERFACE_CHOICES_H

enum { COOP_STDIN_NONE, COOP_STDIN_PIPE, COOP_STDIN_DATA };

extern const char *const coop_choices_network[];
extern const char *const coop_choices_home[];
extern const char *const coop_choices_root[];
extern const char *const coop_choices_names[];
extern const char *const coop_choices_placement[];
extern const char *const coop_choices_helper[];
extern const char *const coop_choices_mode[];
extern const char *const coop_choices_env_mode[];
extern const char *const coop_choices_kind[];
extern const char *const coop_choices_stdin[];
extern const char *const coop_choices_stderr[];
extern const char *const coop_choices_overflow[];
extern const char *const coop_choices_keep_overflow[];
extern const char *const coop_choices_quota[];
extern const char *const coop_choices_on_exit[];
extern const char *const coop_choices_lease[];
extern const char *const coop_choices_state[];
extern const char *const coop_choices_stream[];
extern const char *const coop_choices_read_stream[];
extern const char *const coop_choices_follow_mode[];
extern const char *const coop_choices_until[];
extern const char *const coop_choices_target[];
extern const char *const coop_choices_if_running[];

/* Patterns of variables that a command has from whoever starts it, if he has them (base_env); the
 * operator may allow more. */
extern const char *const coop_usual_variables[];

#endif
