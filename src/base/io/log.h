/* One log, on stderr: time, level, words, key=value. Never a value of an environment variable,
 * never bytes of a process. */
#ifndef COOP_BASE_LOG_H
#define COOP_BASE_LOG_H

enum coop_log_level {
	COOP_LOG_INFO,
	COOP_LOG_WARN,
	COOP_LOG_ERROR,
};

void coop_log(enum coop_log_level level, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Where lines go once nobody reads the pipe that stderr is (log_relay.h). Takes the descriptor
 * over. */
void coop_log_spare(int fd);

#endif
