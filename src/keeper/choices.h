/* The words that arguments choose from; their positions are the enums they stand for. */
#ifndef COOP_KEEPER_CHOICES_H
#define COOP_KEEPER_CHOICES_H

enum { COOP_STDIN_NONE, COOP_STDIN_PIPE, COOP_STDIN_DATA };

extern const char *const coop_choices_mode[],
	*const coop_choices_env_mode[],
		*const coop_choices_kind[],
			*const coop_choices_stdin[],
				*const coop_choices_stderr[],
					*const coop_choices_overflow[],
						*const coop_choices_quota[],
							*const coop_choices_on_exit[],
								*const coop_choices_lease[],
									*const coop_choices_state[],
										*const coop_choices_stream[],
											*const coop_choices_read_stream[],
												*const coop_choices_follow_mode[],
													*const coop_choices_until[],
														*const coop_choices_target
															[],
																*const coop_choices_if_running
																	[];

#endif
