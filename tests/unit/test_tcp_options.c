/* SPDX-License-Identifier: Apache-2.0 */
/* What parameters and profile make of connections, where one depends on another, and of a socket,
 * read back from the kernel. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/descriptor.h"
#include "common/param.h"
#include "common/profile.h"
#include "net_plugin/lane/tcp_socket.h"
#include "net_plugin/lane/tcp_stats.h"
#include "net_plugin/setup/settings.h"
#include "tests/lib/fake_nic.h"
#include "tests/lib/log_capture.h"
#include "tests/lib/pair.h"
#include "tests/lib/unit.h"

static const struct profile profile = {
  .meta.id = "test",
  .net = { .flows = 4, .chunk_bytes = 64 << 10 },
};

static void load(const char *words, const struct profile *used) {
  pair_set_parameters(words);
  settings_use_profile(used);
}

static int tear_down(void **context) {
  load(NULL, NULL);
  return 0;
}

static int tuned(int dscp) {
  int fd = tcp_socket_open(AF_INET);
  assert_true(fd >= 0);
  tcp_socket_tune(fd, AF_INET, dscp);
  return fd;
}

static int64_t option(int fd, int level, int name) {
  int64_t value = 0;
  socklen_t bytes = sizeof value;
  assert_int_equal(getsockopt(fd, level, name, &value, &bytes), 0);
  return value;
}

/* As of a job that was started without a standard input. */
UNIT_TEST(a_socket_may_be_descriptor_0) {
  close(STDIN_FILENO);
  errno = EIO;
  int fd = tcp_socket_open(AF_INET);
  assert_int_equal(fd, STDIN_FILENO);
  descriptor_close(fd);
  assert_int_equal(open("/dev/null", O_RDONLY | O_CLOEXEC), fd);
}

UNIT_TEST_WITH(defaults_leave_much_to_the_kernel, NULL, tear_down) {
  load(NULL, NULL);
  int fd = tuned(-1);
  assert_int_equal(option(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT), 128 << 10);
  assert_int_equal(option(fd, IPPROTO_IP, IP_TOS), 0);
  close(fd);
}

UNIT_TEST_WITH(the_profile_speaks_where_the_user_does_not, NULL, tear_down) {
  load(NULL, &profile);
  struct settings settings;
  settings_get(2, &settings);
  assert_int_equal(settings.policy.first_lanes, 8); /* each NIC its own */
  assert_int_equal(settings.policy.usual_chunk_bytes, 64 << 10);
}

UNIT_TEST_WITH(parameters_reach_the_socket, NULL, tear_down) {
  load("STRATUS_TCP_CONGESTION=reno STRATUS_SOCKET_BUFFER_BYTES=64K STRATUS_DSCP=46", NULL);
  int fd = tuned((int)param_int(PARAM_DSCP));
  char name[16] = "";
  socklen_t bytes = sizeof name;
  assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &bytes), 0);
  assert_string_equal(name, "reno");
  assert_int_equal(option(fd, SOL_SOCKET, SO_SNDBUF), 128 << 10); /* the kernel doubles it */
  assert_int_equal(option(fd, IPPROTO_IP, IP_TOS), 46 << 2);
  close(fd);
}

UNIT_TEST_WITH(parameters_win, NULL, tear_down) {
  load("STRATUS_SOCKET_BUFFER_BYTES=0 STRATUS_TCP_CONGESTION=cubic STRATUS_DSCP=10 "
       "STRATUS_EAGER_BYTES=0 STRATUS_FLOWS=3 STRATUS_CHUNK_BYTES=32K",
       &profile);
  struct settings settings;
  settings_get(2, &settings);
  assert_int_equal(settings.policy.first_lanes, 3);
  assert_int_equal(settings.policy.usual_chunk_bytes, 32 << 10);
  assert_int_equal(settings.params.eager_bytes, 0);
}

UNIT_TEST_WITH(a_group_shares_lanes, NULL, tear_down) {
  static const struct {
    unsigned peers, lanes;
  } cases[] = { { 0, 8 }, { 1, 8 }, { 3, 6 }, { 4, 4 }, { 15, 4 } };
  load(NULL, NULL);
  struct settings settings;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    settings_get(2, &settings);
    settings_of_group(2, cases[i].peers, &settings);
    assert_int_equal(settings.policy.first_lanes, cases[i].lanes);
    assert_int_equal(settings.policy.learns_lanes, cases[i].lanes == 8);
  }
  load("STRATUS_FLOWS=12", NULL);
  settings_get(2, &settings);
  settings_of_group(2, 3, &settings);
  assert_int_equal(settings.policy.first_lanes, 12);
}

UNIT_TEST_WITH(what_the_kernel_refuses_is_told_and_done_without, NULL, tear_down) {
  load("STRATUS_TCP_CONGESTION=nonesuch", NULL);
  log_capture_start();
  int fd = tuned(-1);
  assert_int_equal(log_capture_find("congestion control nonesuch refused"), 1);
  assert_int_equal(option(fd, IPPROTO_TCP, TCP_NODELAY), 1);
  close(fd);
}

UNIT_TEST_WITH(an_address_that_has_moved_is_told_and_done_without, NULL, tear_down) {
  const struct nic gone = fake_nic("eth7", "192.0.2.1", 24);
  struct sockaddr_storage address;
  int fd = tcp_socket_open(AF_INET);
  load(NULL, NULL);
  log_capture_start();
  assert_int_equal(tcp_socket_bind_nic(fd, &gone, &gone.address), 0);
  assert_int_equal(log_capture_find("cannot bind a flow to 192.0.2.1 of eth7"), 1);
  assert_int_equal(log_capture_find("has moved to another host"), 1);
  close(fd);
  assert_int_equal(tcp_socket_listen(&gone, &address), -EADDRNOTAVAIL);
  assert_int_equal(tcp_nic_flags(&gone), -ENODEV);
  assert_false(tcp_socket_can_bind_device(&gone));
  assert_int_equal(tcp_socket_open(AF_INET), fd); /* all are closed */
  close(fd);
}

/* A process that does not read is stopped, as far as its peer can see. */
UNIT_TEST_WITH(a_full_peer_still_answers, NULL, tear_down) {
  load(NULL, NULL);
  static char bytes[1 << 16];
  int ends[2], unconnected = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_int_equal(tcp_stats_answered_ns(unconnected, clock_now_ns()), 0);
  close(unconnected);
  pair_sockets(ends);
  int here = ends[0], there = ends[1];
  tcp_socket_tune(here, AF_INET, -1);
  uint64_t begin_ns = clock_now_ns();
  while (clock_now_ns() < begin_ns + NS_PER_S) { /* several probes of a full buffer */
    if (send(here, bytes, sizeof bytes, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
      usleep(10000);
    }
  }
  uint64_t now_ns = clock_now_ns();
  assert_true(send(here, bytes, sizeof bytes, MSG_DONTWAIT | MSG_NOSIGNAL) < 0);
  assert_in_range(tcp_stats_answered_ns(here, now_ns), begin_ns + NS_PER_S / 10, now_ns);
  assert_int_equal(option(here, IPPROTO_TCP, TCP_USER_TIMEOUT), 0);
  close(there); /* with unread bytes: a reset */
  assert_int_equal(tcp_stats_answered_ns(here, clock_now_ns()), 0);
  close(here);
}

static enum policy_compress compress_with(const char *parameters) {
  struct settings settings;
  load(parameters, NULL);
  settings_get(1, &settings);
  return settings.policy.compress;
}

UNIT_TEST_WITH(compression_is_tried_unless_the_user_says_else, NULL, tear_down) {
  assert_int_equal(compress_with(NULL), POLICY_COMPRESS_AUTO);
  assert_int_equal(compress_with("STRATUS_COMPRESS=off"), POLICY_COMPRESS_OFF);
  assert_int_equal(compress_with("STRATUS_COMPRESS=on"), POLICY_COMPRESS_ON);
}

/* Lengths say something about what is in them. */
UNIT_TEST_WITH(encryption_alone_does_not_compress, NULL, tear_down) {
  assert_int_equal(compress_with("STRATUS_ENCRYPT=on"), POLICY_COMPRESS_OFF);
  log_capture_start();
  assert_int_equal(compress_with("STRATUS_ENCRYPT=on STRATUS_COMPRESS=atuo"), POLICY_COMPRESS_OFF);
  log_capture_stop();
  assert_int_equal(compress_with("STRATUS_ENCRYPT=on STRATUS_COMPRESS=auto"), POLICY_COMPRESS_AUTO);
  assert_int_equal(compress_with("STRATUS_ENCRYPT=on STRATUS_COMPRESS=on"), POLICY_COMPRESS_ON);
}
