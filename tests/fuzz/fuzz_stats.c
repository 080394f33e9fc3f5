/* SPDX-License-Identifier: Apache-2.0 */
/* The statistics of a process. Half of the inputs go in pieces to the socket, which answers
 * with a whole document whatever is said, and serves the next one. The other
 * half answer: two texts to `stratus stats` as what two processes, or one at two times, said.
 */
#include <errno.h>
#include <jansson.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/param.h"
#include "net_plugin/lane/tcp_socket.h"
#include "net_plugin/observe/stats_socket.h"
#include "net_plugin/tools/stats_print.h"
#include "tests/fuzz/fuzz.h"

enum { ANSWER_BYTES = 64 << 10, STEPS_MAX = 10000 };

/* ---- who asks ---- */

static struct engine *engine; /* held from the first input on: its thread stays away */
static struct sockaddr_un address = { .sun_family = AF_UNIX };
static char directory[] = "/tmp/stratus-fuzz-XXXXXX";

static void remove_directory(void) {
  unlink(address.sun_path);
  rmdir(directory);
}

static void start_server(void) {
  char variable[sizeof directory + 32];
  char *environment[] = { variable, NULL };
  const char *where;
  struct nic nic = { .name = "lo", .index = 1, .numa_node = -1, .speed_mbps = 1000 };
  ((struct sockaddr_in *)&nic.address)->sin_family = AF_INET;
  ((struct sockaddr_in *)&nic.address)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  FUZZ_CHECK(mkdtemp(directory) != NULL);
  snprintf(variable, sizeof variable, "STRATUS_STATS_DIR=%s", directory);
  param_load(environment);
  FUZZ_CHECK(engine_get(&nic, ENGINE_LISTENS, &engine) == 0);
  engine_lock(engine);
  FUZZ_CHECK(stats_socket_open(engine, &where) == 0);
  FUZZ_CHECK(strlen(where) < sizeof address.sun_path);
  strcpy(address.sun_path, where);
  atexit(remove_directory);
}

static void check_answer(const char *answer, size_t bytes) {
  FUZZ_CHECK(bytes > 0 && bytes < ANSWER_BYTES);
  json_t *document = json_loadb(answer, bytes, 0, NULL);
  FUZZ_CHECK(json_is_object(document) && json_object_get(document, "pid"));
  json_decref(document);
}

/* Up to the end, which must come. */
static size_t hear(int fd, char *answer) {
  size_t used = 0;
  for (int i = 0; i < STEPS_MAX; i++) {
    ssize_t n = recv(fd, answer + used, ANSWER_BYTES - used, MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno == ECONNRESET)) {
      return used;
    }
    FUZZ_CHECK(n > 0 || errno == EAGAIN);
    used += n > 0 ? (size_t)n : 0;
    engine_poll(engine);
  }
  abort(); /* never hung up on */
}

static void ask(struct fuzz_input *input) {
  static char answer[ANSWER_BYTES];
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  FUZZ_CHECK(fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0);
  while (input->left > 0) {
    size_t piece = 1 + fuzz_u8(input) % 24;
    piece = piece < input->left ? piece : input->left;
    if (piece > 0 && send(fd, input->at, piece, MSG_NOSIGNAL) < 0) {
      break; /* it has heard enough */
    }
    input->at += piece;
    input->left -= piece;
    engine_poll(engine);
  }
  shutdown(fd, SHUT_WR);
  check_answer(answer, hear(fd, answer));
  close(fd);
}

/* ---- who answers ---- */

/* Up to an empty line. */
static char *take_text(struct fuzz_input *input) {
  const char *end = memmem(input->at, input->left, "\n\n", 2);
  size_t length = end ? (size_t)(end + 1 - (const char *)input->at) : input->left;
  char *text = malloc(length + 1);
  FUZZ_CHECK(text != NULL);
  fuzz_bytes(input, text, length);
  text[length] = '\0';
  return text;
}

/* Each line is a sample of the metric that was named last, or names one; each has a value. */
static void check_prometheus(const json_t *processes) {
  char *text, name[256] = "";
  size_t bytes;
  FILE *to = open_memstream(&text, &bytes);
  FUZZ_CHECK(to != NULL);
  stats_prometheus_print(processes, to);
  fclose(to);
  fuzz_check_visible(text, bytes);
  for (const char *line = text; *line; line = strchr(line, '\n') + 1) {
    FUZZ_CHECK(sscanf(line, "# HELP %255s", name) == 1 || strncmp(line, "# TYPE ", 7) == 0 ||
               (strncmp(line, name, strlen(name)) == 0 && line[strlen(name)] == '{'));
  }
  free(text);
}

static void answer(struct fuzz_input *input) {
  char *first = take_text(input), *second = take_text(input);
  json_t *before = json_loads(first, 0, NULL), *now = json_loads(second, 0, NULL);
  if (now) {
    char *text;
    size_t bytes;
    FILE *to = fuzz_print_here(&text, &bytes);
    stats_table_print(now, before, true);
    json_t *both = json_pack("[O, O*]", now, before);
    check_prometheus(both);
    json_decref(both);
    fuzz_printed(to);
    fuzz_check_visible(text, bytes);
    free(text);
  }
  json_decref(before);
  json_decref(now);
  free(second);
  free(first);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct fuzz_input input = { data, size };
  log_set_sink(fuzz_swallow_log);
  if (!engine) {
    start_server();
  }
  if (fuzz_u8(&input) & 1) {
    ask(&input);
  } else {
    answer(&input);
  }
  return 0;
}
