/* SPDX-License-Identifier: Apache-2.0 */
/* log: diagnostics on stderr; FAKE_CUDA_LOG chooses the level.
 * Owns: nothing.  Threads: any.  Blocks: never, but for the write.  Fails: cannot. */
#ifndef FAKE_CUDA_LOG_H
#define FAKE_CUDA_LOG_H

enum { LOG_ERROR, LOG_INFO, LOG_LAUNCH, LOG_DETAIL, LOG_TRACE };
extern int log_level;
void log_print(const char *format, ...) __attribute__((format(printf, 1, 2)));
#define LOG(level, ...)                                                                            \
  do {                                                                                             \
    if (log_level >= (level))                                                                      \
      log_print(__VA_ARGS__);                                                                      \
  } while (0)

#endif
