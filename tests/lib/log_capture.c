/* SPDX-License-Identifier: Apache-2.0 */
/* A sink that remembers. */
#include "tests/lib/log_capture.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/unit.h"

struct message {
  enum log_level level;
  char text[LOG_TEXT_MAX + 128];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct message messages[LOG_CAPTURE_MAX];
static size_t message_count;

void log_capture_keep(enum log_level level, const char *text) {
  pthread_mutex_lock(&lock);
  if (message_count < LOG_CAPTURE_MAX) {
    messages[message_count].level = level;
    snprintf(messages[message_count].text, sizeof messages[0].text, "%s", text);
  }
  message_count++;
  pthread_mutex_unlock(&lock);
}

static void keep(enum log_level level, const char *file, int line, const char *text) {
  log_capture_keep(level, text);
}

void log_capture_start(void) {
  pthread_mutex_lock(&lock);
  message_count = 0;
  pthread_mutex_unlock(&lock);
  log_set_sink(keep);
}

void log_capture_stop(void) {
  log_set_sink(NULL);
}

int log_capture_set_up(void **state) {
  log_capture_start();
  return 0;
}

int log_capture_tear_down(void **state) {
  log_capture_stop();
  return 0;
}

static size_t kept_count(void) {
  return message_count < LOG_CAPTURE_MAX ? message_count : LOG_CAPTURE_MAX;
}

size_t log_capture_count(enum log_level level) {
  size_t count = 0;
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < kept_count(); i++) {
    count += messages[i].level == level;
  }
  pthread_mutex_unlock(&lock);
  return count;
}

size_t log_capture_find(const char *part) {
  size_t count = 0;
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < kept_count(); i++) {
    count += strstr(messages[i].text, part) != NULL;
  }
  pthread_mutex_unlock(&lock);
  return count;
}

const char *log_capture_text(size_t index) {
  pthread_mutex_lock(&lock);
  const char *text = index < kept_count() ? messages[index].text : "";
  pthread_mutex_unlock(&lock);
  return text;
}

void log_capture_print(void) {
  for (size_t i = 0; *log_capture_text(i); i++) {
    print_error("logged: %s\n", log_capture_text(i));
  }
}
