/* SPDX-License-Identifier: Apache-2.0 */
/* Does anybody listen there? Over loopback, where a refusal comes at once. */
#include "tests/lib/unit.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "net_plugin/engine/engine.h"
#include "net_plugin/lane/tcp_socket.h"
#include "net_plugin/setup/inquiry.h"
#include "tests/lib/log_capture.h"
#include "tests/lib/pair.h"

#define NONE 1 /* no errno */

static void note(void *argument, int error) {
  *(int *)argument = error;
}

/* What an inquiry there ends with. */
static int ask(const struct sockaddr_storage *address) {
  struct nic nic = pair_loopback(AF_INET);
  struct engine *engine;
  struct inquiry inquiry = { .is_running = false };
  int error = NONE;
  assert_int_equal(engine_get(&nic, ENGINE_LISTENS, &engine), 0);
  uint64_t until_ns = clock_now_ns() + PATIENCE_NS;
  engine_lock(engine);
  inquiry_start(&inquiry, engine, address, until_ns, note, &error);
  assert_true(inquiry_is_running(&inquiry));
  while (error == NONE && clock_now_ns() < until_ns) {
    engine_poll(engine);
  }
  assert_false(inquiry_is_running(&inquiry));
  inquiry_stop(&inquiry); /* there is none: nothing happens */
  engine_unlock(engine);
  return error;
}

UNIT_TEST_WITH(who_listens_is_told_from_who_does_not, pair_set_up, pair_tear_down) {
  struct nic nic = pair_loopback(AF_INET);
  struct sockaddr_storage address;
  int fd = tcp_socket_listen(&nic, &address);
  assert_true(fd >= 0);
  assert_int_equal(ask(&address), 0);
  close(fd);
  assert_int_equal(ask(&address), -ECONNREFUSED);
}

UNIT_TEST_WITH(what_cannot_be_asked_is_no_refusal, pair_set_up, pair_tear_down) {
  struct sockaddr_storage address = { .ss_family = AF_UNIX };
  int error = ask(&address);
  assert_true(error < 0 && error != -ECONNREFUSED);
}

UNIT_MAIN(NULL, NULL)
