/* SPDX-License-Identifier: Apache-2.0 */
/* What stratus stats --all meets in directories of other users: sockets that trickle, links to
 * sockets of root, files that are none. The honest one is heard all the same. */
#include "net_plugin/tools/stats_source.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/param.h"
#include "tests/lib/tree.h"
#include "tests/lib/unit.h"

enum { TRICKLING = 101, SILENT, HONEST, LINK, FILE_, FOREIGN, SERVERS_MAX = 4 };

struct server {
  int fd, held; /* held: the caller who is answered slowly, or never; -1: none */
  unsigned calls;
  bool is_trickling, is_silent;
};

/* Their directory, whose name is as of those that are looked for, and one that is root's, say. */
static char theirs[TREE_PATH_MAX], hidden[TREE_PATH_MAX];
static struct server servers[SERVERS_MAX];
static unsigned server_count;
static atomic_bool is_over;
static pthread_t thread;

static const char *path_in(const char *directory, int pid) {
  static char path[108];
  snprintf(path, sizeof path, "%.60s/%d-1.sock", directory, pid);
  return path;
}

static struct server *serve(const char *directory, int pid) {
  struct sockaddr_un address = { .sun_family = AF_UNIX };
  struct server *server = &servers[server_count++];
  strcpy(address.sun_path, path_in(directory, pid));
  *server = (struct server){ .fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), .held = -1 };
  assert_int_equal(bind(server->fd, (struct sockaddr *)&address, sizeof address), 0);
  assert_int_equal(listen(server->fd, 4), 0);
  return server;
}

static void *run_servers(void *argument) {
  while (!atomic_load(&is_over)) {
    for (unsigned i = 0; i < server_count; i++) {
      struct server *server = &servers[i];
      struct pollfd polled = { .fd = server->fd, .events = POLLIN };
      if (server->is_trickling && server->held >= 0) {
        send(server->held, "[", 1, MSG_NOSIGNAL);
      }
      if (poll(&polled, 1, 10) != 1) {
        continue;
      }
      int fd = accept(server->fd, NULL, NULL);
      server->calls++;
      if (server->is_trickling || server->is_silent) {
        server->held = fd;
      } else {
        send(fd, "{\"a\": 1}\n", 9, MSG_NOSIGNAL);
        close(fd);
      }
    }
  }
  return NULL;
}

static const struct stats_source *find(const struct stats_sources *sources, int pid) {
  for (size_t i = 0; i < sources->count; i++) {
    if (strcmp(sources->list[i].path, path_in(theirs, pid)) == 0) {
      return &sources->list[i];
    }
  }
  fail_msg("%s is not found", path_in(theirs, pid));
  return NULL;
}

static int set_up(void **state) {
  param_load((char *[]){ "STRATUS_STATS_DIR=/nonexistent", NULL });
  tree_create(&test_tree);
  tree_make_directory(&test_tree, "hidden");
  snprintf(theirs, sizeof theirs, "%s", test_tree.root);
  tree_path(&test_tree, "hidden", hidden);
  server_count = 0;
  atomic_store(&is_over, false);
  return 0;
}

static int tear_down(void **state) {
  atomic_store(&is_over, true);
  pthread_join(thread, NULL);
  for (unsigned i = 0; i < server_count; i++) {
    close(servers[i].fd);
    if (servers[i].held >= 0) {
      close(servers[i].held);
    }
  }
  param_load((char *[]){ NULL });
  return test_tree_remove(state);
}

UNIT_TEST_WITH(hostile_sockets_hold_nobody_up, set_up, tear_down) {
  char target[108];
  serve(theirs, HONEST); /* is asked last */
  serve(theirs, TRICKLING)->is_trickling = true;
  serve(theirs, SILENT)->is_silent = true;
  const struct server *of_root = serve(hidden, LINK);
  strcpy(target, path_in(hidden, LINK));
  assert_int_equal(symlink(target, path_in(theirs, LINK)), 0);
  close(open(path_in(theirs, FILE_), O_CREAT | O_WRONLY, 0600));
  assert_int_equal(pthread_create(&thread, NULL, run_servers, NULL), 0);
  struct stats_sources sources;
  uint64_t start_ns = clock_now_ns();
  assert_int_equal(stats_sources_read(true, 0, &sources), 0);
  assert_true(clock_now_ns() - start_ns < 10 * NS_PER_S);
  assert_int_equal(json_integer_value(json_object_get(find(&sources, HONEST)->document, "a")), 1);
  assert_int_equal(find(&sources, TRICKLING)->error, -ETIMEDOUT);
  assert_int_equal(find(&sources, SILENT)->error, -ETIMEDOUT);
  assert_int_equal(find(&sources, LINK)->error, -EPERM);
  assert_int_equal(find(&sources, FILE_)->error, -EPERM);
  stats_sources_free(&sources);
  assert_int_equal(of_root->calls, 0);
}

/* Another's socket that was moved into the directory; and a directory that others may write to. */
UNIT_TEST_WITH(only_the_owner_of_a_directory_is_asked, set_up, tear_down) {
  struct server *foreign = serve(theirs, FOREIGN);
  serve(theirs, HONEST);
  assert_int_equal(pthread_create(&thread, NULL, run_servers, NULL), 0);
  struct stats_sources sources;
  if (geteuid() == 0) {
    assert_int_equal(chown(path_in(theirs, FOREIGN), 12345, 12345), 0);
    assert_int_equal(stats_sources_read(true, 0, &sources), 0);
    assert_non_null(find(&sources, HONEST)->document);
    assert_int_equal(find(&sources, FOREIGN)->error, -EPERM);
    stats_sources_free(&sources);
    assert_int_equal(foreign->calls, 0);
    assert_int_equal(chown(theirs, 12345, 12345), 0); /* who listens there is not 12345 */
    assert_int_equal(stats_sources_read(true, 0, &sources), 0);
    assert_int_equal(find(&sources, FOREIGN)->error, -EPERM);
    stats_sources_free(&sources);
  }
  assert_int_equal(chmod(theirs, 0755), 0);
  assert_int_equal(stats_sources_read(true, 0, &sources), 0);
  for (size_t i = 0; i < sources.count; i++) {
    assert_null(strstr(sources.list[i].path, theirs));
  }
  stats_sources_free(&sources);
}
