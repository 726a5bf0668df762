// SPDX-License-Identifier: BSD-3-Clause
#include "log.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { LINE_BYTES = 1024, QUIET_S = 10 };

static struct {
	FILE *file; // NULL = stderr
	char path[256];
	enum log_level level;
	char last[LINE_BYTES];
	time_t last_written;
	uint64_t suppressed;
} log_state = {.level = LOG_LEVEL_INFO};

int log_open(const char *path, enum log_level level)
{
	log_state.level = level;
	if (path == NULL || path[0] == '\0')
		return 1;
	if (strlen(path) >= sizeof(log_state.path))
		return 0;
	strcpy(log_state.path, path);
	log_state.file = fopen(path, "ae");
	return log_state.file != NULL;
}

void log_reopen(void)
{
	if (log_state.path[0] == '\0')
		return;
	FILE *fresh = fopen(log_state.path, "ae");
	if (fresh == NULL) {
		log_line(LOG_LEVEL_WARN,
			"log file %s cannot be reopened; writing on to the old one",
			log_state.path);
		return;
	}
	if (log_state.file != NULL)
		fclose(log_state.file);
	log_state.file = fresh;
}

void log_close(void)
{
	if (log_state.file != NULL)
		fclose(log_state.file);
	log_state.file = NULL;
}

static const char *level_name(enum log_level level)
{
	static const char *const names[] = {"", "error", "warn", "info", "debug"};
	return names[level];
}

static void write_line(enum log_level level, const char *text)
{
	FILE *to = log_state.file != NULL ? log_state.file : stderr;
	struct timespec now;
	struct tm utc;
	char stamp[32];
	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &utc);
	strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%S", &utc);
	fprintf(to, "%s.%03ldZ %-5s %s\n", stamp, now.tv_nsec / 1000000, level_name(level), text);
	fflush(to);
}

// True when this line repeats the last one too soon to be written again.
static int repeats(const char *text, time_t now)
{
	if (strcmp(text, log_state.last) == 0 && now - log_state.last_written < QUIET_S) {
		log_state.suppressed++;
		return 1;
	}
	if (log_state.suppressed > 0) {
		char note[64];
		snprintf(note, sizeof(note), "(last line: %llu more suppressed)",
			(unsigned long long)log_state.suppressed);
		write_line(LOG_LEVEL_INFO, note);
	}
	log_state.suppressed = 0;
	log_state.last_written = now;
	strcpy(log_state.last, text);
	return 0;
}

void log_line(enum log_level level, const char *format, ...)
{
	if (level > log_state.level)
		return;
	char text[LINE_BYTES];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (!repeats(text, time(NULL)))
		write_line(level, text);
}
