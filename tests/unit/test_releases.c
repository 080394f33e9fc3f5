/* SPDX-License-Identifier: Apache-2.0 */
/* Several releases of NCCL in one process, as a framework's own beside the system's: each ends by
 * itself. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/log.h"
#include "net_plugin/abi/net_abi.h"
#include "net_plugin/setup/setup.h"
#include "tests/lib/job.h"
#include "tests/lib/pair.h"
#include "tests/lib/unit.h"

enum { RELEASES = 3 };

static unsigned logged[RELEASES]; /* messages */

#define RELEASE(n)                                                                                 \
  static void logger_##n(enum nccl_log_level level, unsigned long flags, const char *file,         \
                         int line, const char *format, ...) {                                      \
    (void)level, (void)flags, (void)file, (void)line, (void)format;                                \
    logged[n]++;                                                                                   \
  }
RELEASE(0)
RELEASE(1)
RELEASE(2)

static nccl_logger_fn *const loggers[RELEASES] = { logger_0, logger_1, logger_2 };

struct ends {
  void *listener, *sender, *receiver;
};

static void *begin(unsigned release) {
  void *context;
  int devices;
  assert_int_equal(ncclNetPlugin_v11.init(&context, 1, NULL, loggers[release], NULL), 0);
  assert_int_equal(ncclNetPlugin_v11.devices(&devices), 0);
  assert_int_equal(devices, 1);
  return context;
}

static void end(void *context) {
  assert_int_equal(ncclNetPlugin_v11.finalize(context), 0);
}

/* With a context of v11, or as v10. */
static struct ends connect_ends(void *context) {
  struct ends ends = { NULL, NULL, NULL };
  uint8_t handle[HANDLE_BYTES];
  assert_int_equal(context ? ncclNetPlugin_v11.listen(context, 0, handle, &ends.listener)
                           : ncclNetPlugin_v10.listen(0, handle, &ends.listener),
                   0);
  uint64_t until_ns = clock_now_ns() + PATIENCE_NS;
  while (!ends.sender || !ends.receiver) {
    assert_true(clock_now_ns() < until_ns);
    if (!ends.sender) {
      assert_int_equal(context ? ncclNetPlugin_v11.connect(context, 0, handle, &ends.sender, NULL)
                               : ncclNetPlugin_v10.connect(0, NULL, handle, &ends.sender, NULL),
                       0);
    }
    if (!ends.receiver) {
      assert_int_equal(ncclNetPlugin_v10.accept(ends.listener, &ends.receiver, NULL), 0);
    }
    usleep(20);
  }
  return ends;
}

static void exchange(struct ends ends) {
  char out[] = "eight by", in[sizeof out] = "";
  void *to = in, *requests[2] = { NULL, NULL };
  size_t bytes = sizeof in;
  int tag = 0;
  void *memory = NULL, *phandle = NULL;
  assert_int_equal(
      ncclNetPlugin_v10.irecv(ends.receiver, 1, &to, &bytes, &tag, &memory, &phandle, &requests[1]),
      0);
  assert_int_equal(
      ncclNetPlugin_v10.isend(ends.sender, out, sizeof out, 0, NULL, phandle, &requests[0]), 0);
  uint64_t until_ns = clock_now_ns() + PATIENCE_NS;
  for (int i = 0; i < 2; i++) {
    int is_done = 0, got = 0;
    while (!is_done) {
      assert_true(clock_now_ns() < until_ns);
      assert_int_equal(ncclNetPlugin_v10.test(requests[i], &is_done, &got), 0);
    }
    assert_int_equal(got, sizeof out);
  }
  assert_string_equal(in, out);
}

static void close_ends(struct ends ends) {
  assert_int_equal(ncclNetPlugin_v11.closeSend(ends.sender), 0);
  assert_int_equal(ncclNetPlugin_v11.closeRecv(ends.receiver), 0);
  assert_int_equal(ncclNetPlugin_v11.closeListen(ends.listener), 0);
}

static int set_up(void **state) {
  (void)state;
  job_set_parameters(NULL, NULL);
  for (int i = 0; i < RELEASES; i++) {
    logged[i] = 0;
  }
  return 0;
}

/* Also when its NCCL has left: it stays in memory (tests/abi/life_host.c, "unload"). */
UNIT_TEST_WITH(the_latest_logger_is_told, set_up, NULL) {
  void *first = begin(0), *second = begin(1);
  logged[0] = logged[1] = 0;
  LOG_INFO("to the latest");
  end(second);
  LOG_INFO("once more");
  assert_true(logged[0] == 0 && logged[1] >= 2);
  end(first);
}

/* With its last communicator the newer release ends what is its own. The last of the tests: what
 * has no finalize lives on. */
UNIT_TEST_WITH(an_older_release_goes_on_without_the_newer, set_up, NULL) {
  int devices;
  assert_int_equal(ncclNetPlugin_v10.init(loggers[2], NULL), 0);
  assert_int_equal(ncclNetPlugin_v10.devices(&devices), 0);
  struct ends of_older = connect_ends(NULL);
  for (int round = 0; round < 3; round++) {
    void *newer = begin(0);
    struct ends of_newer = connect_ends(newer);
    exchange(of_newer);
    close_ends(of_newer);
    end(newer);
    exchange(of_older);
  }
  close_ends(of_older);
  setup_stop();
}

UNIT_MAIN(NULL, NULL)
