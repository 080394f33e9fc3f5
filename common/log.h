/* SPDX-License-Identifier: Apache-2.0 */
/* log: messages for the user, passed to a sink, which the abi layer of a plugin sets to NCCL's
 * logger. Owns: the sink, the threshold and the state of each rate-limited message.  Threads: any.
 * Blocks: only as the sink does.  Fails: cannot; a text over LOG_TEXT_MAX bytes is cut.
 *
 * Until a sink is set, WARN goes to stderr and other levels are dropped. Nothing is ever written to
 * stdout, which belongs to the program that loaded the plugin. errno is kept. */
#ifndef COMMON_LOG_H
#define COMMON_LOG_H

#include <stdbool.h>
#include <stdint.h>

enum log_level {
  LOG_LEVEL_WARN,  /* a problem that the user can act on */
  LOG_LEVEL_INFO,  /* findings and decisions, at start-up and when they change */
  LOG_LEVEL_TRACE, /* single events; off unless STRATUS_LOG=trace */
};

enum { LOG_TEXT_MAX = 2048 };

/* Takes one finished text without a newline. `text` lives until the sink returns. The sink may be
 * called by several threads at once. */
typedef void log_sink_fn(enum log_level level, const char *file, int line, const char *text);

/* Sets the sink; NULL restores the default. */
void log_set_sink(log_sink_fn *sink);

/* Drops messages above `level`; LOG_LEVEL_INFO at start. The sink may drop more. */
void log_set_threshold(enum log_level level);
bool log_is_enabled(enum log_level level);

void log_write(enum log_level level, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#define LOG_AT(level, ...)                                                                         \
  do {                                                                                             \
    if (log_is_enabled(level)) {                                                                   \
      log_write(level, __FILE__, __LINE__, __VA_ARGS__);                                           \
    }                                                                                              \
  } while (0)

#define LOG_WARN(...) LOG_AT(LOG_LEVEL_WARN, __VA_ARGS__)
#define LOG_INFO(...) LOG_AT(LOG_LEVEL_INFO, __VA_ARGS__)
#define LOG_TRACE(...) LOG_AT(LOG_LEVEL_TRACE, __VA_ARGS__)

/* One rate-limited message: the first passes, then at most one per interval. */
struct log_limit {
  uint64_t next_ns;    /* atomic: when the next message may pass; 0 = at once */
  uint64_t suppressed; /* atomic: messages dropped since the last one that passed */
};

/* True if a message may pass now; stores how many were dropped since the last one that did. */
bool log_limit_pass(struct log_limit *limit, uint64_t now_ns, uint64_t interval_ns,
                    uint64_t *suppressed);

void log_write_limited(struct log_limit *limit, uint64_t interval_ns, const char *file, int line,
                       const char *format, ...) __attribute__((format(printf, 5, 6)));

/* A WARN from this place in the code at most once per interval; the next one reports the number of
 * dropped ones. */
#define LOG_WARN_EVERY(interval_ns, ...)                                                           \
  do {                                                                                             \
    static struct log_limit log_limit_here;                                                        \
    log_write_limited(&log_limit_here, interval_ns, __FILE__, __LINE__, __VA_ARGS__);              \
  } while (0)

#endif
