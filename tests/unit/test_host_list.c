/* SPDX-License-Identifier: Apache-2.0 */
/* Lists and files of hosts, as other launchers have them; what is refused, and where. */
#include "common/host_list.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/host_command.h"
#include "common/node_list.h"
#include "tests/lib/tree.h"
#include "tests/lib/unit.h"

static char error[HOST_LIST_ERROR_MAX];

/* "KIND name slots port, ...": what a list says, in short. */
static const char *summary(const struct host_list *list) {
  static const char *const kinds[] = {
    [HOST_LOCAL] = "local", [HOST_NAMESPACE] = "ns", [HOST_SSH] = "ssh", [HOST_COMMAND] = "cmd"
  };
  static char text[4096];
  size_t used = 0;
  text[0] = '\0';
  for (int i = 0; i < list->count; i++) {
    const struct host *host = &list->hosts[i];
    used += (size_t)snprintf(text + used, sizeof text - used, "%s%s %s", i ? ", " : "",
                             kinds[host->kind], host->name);
    if (host->slots) {
      used += (size_t)snprintf(text + used, sizeof text - used, " x%d", host->slots);
    }
    if (host->port) {
      used += (size_t)snprintf(text + used, sizeof text - used, " port %d", host->port);
    }
  }
  return text;
}

/* Also that it is the same once it is written in one form. */
static void assert_read(const char *argument, const char *wanted) {
  struct host_list list = { 0 }, again = { 0 };
  if (host_list_read(&list, argument, error) != 0) {
    fail_msg("%s: %s", argument, error);
  }
  assert_string_equal(summary(&list), wanted);
  char *text = host_list_write(&list);
  assert_non_null(text);
  if (host_list_read(&again, text, error) != 0) {
    fail_msg("%s, written as %s: %s", argument, text, error);
  }
  assert_string_equal(summary(&again), wanted);
  free(text);
  host_list_free(&again);
  host_list_free(&list);
}

static void assert_refused(const char *argument, const char *says) {
  struct host_list list = { 0 };
  error[0] = '\0';
  if (host_list_read(&list, argument, error) == 0) {
    fail_msg("%s: taken for %s", argument, summary(&list));
  }
  if (!strstr(error, says)) {
    fail_msg("%s: \"%s\" does not say \"%s\"", argument, error, says);
  }
  host_list_free(&list);
}

/* ---- lists ---- */

UNIT_TEST(forms_of_launchers) {
  static const struct {
    const char *list, *wanted;
  } cases[] = {
    { "a,b", "ssh a, ssh b" },
    { " a , b,", "ssh a, ssh b" },
    { "a slots=2,b slots = 4 max_slots=8", "ssh a x2, ssh b x4" }, /* Open MPI */
    { "a max-slots=8 slots= 8", "ssh a x8" },
    { "a cpus=2,b count=3", "ssh a x2, ssh b x3" },
    { "a:2,b:1", "ssh a x2, ssh b x1" }, /* MPICH, Horovod */
    { "a*2,b", "ssh a x2, ssh b" },      /* Slurm's SLURM_HOSTFILE */
    { "a:29500,b:1024", "ssh a port 29500, ssh b port 1024" },
    { "a,b,a,a", "ssh a x3, ssh b" }, /* PBS names a host once for each processor */
    { "a:2,b,a slots=3", "ssh a x5, ssh b" },
    { "a,ssh:a", "ssh a x2" },
    { "node[01-02,10],login", "ssh node01, ssh node02, ssh node10, ssh login" }, /* Slurm */
    { "r[1-2]n[09-10]-ib", "ssh r1n09-ib, ssh r1n10-ib, ssh r2n09-ib, ssh r2n10-ib" },
    { "node[1-2]:8,node[3] slots=4", "ssh node1 x8, ssh node2 x8, ssh node3 x4" },
    { "2001:db8::10,2001:db8::11", "ssh 2001:db8::10, ssh 2001:db8::11" },
    { "[fe80::1%eth0]:8,[::1],fe80::2%eth0.5 slots=2",
      "ssh fe80::1%eth0 x8, ssh ::1, ssh fe80::2%eth0.5 x2" },
    { "[::1]:29500", "ssh ::1 port 29500" },
    { "me@a,me@[fd00::1]:2,me@node[1-2]",
      "ssh me@a, ssh me@fd00::1 x2, ssh me@node1, ssh me@node2" },
    { "a user=me,me@a", "ssh me@a x2" },
    { "me@corp@a", "ssh me@corp@a" },
    { "10.0.0.1:4,gpu-1.example.com", "ssh 10.0.0.1 x4, ssh gpu-1.example.com" },
    { "local", "local local" },
    { "local:2,a,local slots=2", "local local0, local local1, ssh a, local local3 x2" },
    { "cmd:docker exec  -i c1,cmd:docker exec -i c2",
      "cmd docker exec -i c1, cmd docker exec -i c2" },
    { "/bin/sh  -c", "cmd /bin/sh -c" },
    { "cmd:a [\ncmd:b\ncmd:a [", "cmd a [ x2, cmd b" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    assert_read(cases[i].list, cases[i].wanted);
  }
}

UNIT_TEST(what_is_no_host_is_refused) {
  static const struct {
    const char *list, *says;
  } cases[] = {
    { "", "there is no host in it" },
    { ", ,#a", "there is no host in it" },
    { "a b", "\"a b\" is not a host: \"b\" comes after it" },
    { "worker 8", "\"worker 8\" is not a host" },
    { "docker exec c1", "cmd:COMMAND" },
    { "a,8", "\"8\" is not a host: a number is no name" },
    { "a slots=2,4", "\"4\" is not a host" },
    { "a slots=0", "\"0\" is no number of processes from 1 to 1023" },
    { "a slots=many", "\"many\" is no number" },
    { "a slots=", "\"\" is no number" },
    { "a slots=1024", "from 1 to 1023" },
    { "a slots=4 max_slots=2", "more slots than max_slots" },
    { "a:2 slots=2", "says twice" },
    { "a*2:2", "says twice" },
    { "a ifname=eth0", "ifname= is not known here" },
    { "a slots=2 b", "\"b\" comes after it" },
    { "a =2", "comes after it" },
    { "a:", "after the colon comes" },
    { "a:x", "after the colon comes" },
    { "a:+2", "after the colon comes" },
    { "a:65536", "or a port (1024 to 65535)" },
    { "nz:a", "local:N and cmd:COMMAND" },
    { "a:1:2", "is no IPv6 address" },
    { "2001:db8::g", "is no IPv6 address" },
    { "[::1", "is not a host" },
    { "[::1]8", "after \"]\" comes a colon" },
    { "fe80::1%", "is no IPv6 address" },
    { "node[01-02", "as in node[01-16,20]" },
    { "node[02-01]", "as in node[01-16,20]" },
    { "node[1-2", "as in node[01-16,20]" },
    { "node]1[", "as in node[01-16,20]" },
    { "[1-2]", "a number is no name" },
    { "node[1-5000]", "more than 4096 hosts" },
    { "node[1-99999]", "is not a host" },
    { "@a", "is no name of a user" },
    { "-l@a", "is no name of a user" },
    { "me@", "there is no name" },
    { "you@a user=me", "or not the only one" },
    { "-oProxyCommand=x", "is not a host" },
    { "ssh:-oProxyCommand=x", "is not a host" },
    { "a;b", "a name has letters" },
    { "$(reboot)", "a name has letters" },
    { "ssh:", "there is no name" },
    { "ns:no-such-namespace-here", "no such network namespace" },
    { "ns:..", "no such network namespace" },
    { "local:0", "local:N takes" },
    { "local:9999", "local:N takes" },
    { "local user=me", "neither user nor port" },
    { "cmd:", "no such command" },
    { "/no/such/command", "no such command, nor a file" },
    { "a,/no/such/command", "no such command" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    assert_refused(cases[i].list, cases[i].says);
  }
  char many[3 * HOST_WORDS_MAX] = "cmd:";
  for (int i = 0; i <= HOST_WORDS_MAX; i++) {
    strcat(many, "a ");
  }
  assert_refused(many, "at most 32 words");
}

/* ---- files ---- */

static const char *file(const char *text, size_t bytes) {
  static char path[TREE_PATH_MAX];
  tree_write_bytes(&test_tree, "hosts", text, bytes);
  return tree_path(&test_tree, "hosts", path);
}
#define FILE_OF(text) file(text, sizeof(text) - 1)

UNIT_TEST_WITH(files_of_any_editor, test_tree_create, test_tree_remove) {
  assert_read(FILE_OF("# nodes\na slots=2   # here\n\n  b:2\n"), "ssh a x2, ssh b x2");
  assert_read(FILE_OF("\xEF\xBB\xBF"
                      "a\r\nb\r\n"),
              "ssh a, ssh b");
  assert_read(FILE_OF("a\rb\r"), "ssh a, ssh b");
  assert_read(FILE_OF("a,b slots=2\nnode[1,3]"), "ssh a, ssh b x2, ssh node1, ssh node3");
  assert_read(FILE_OF("a\na\nb\nb\n"), "ssh a x2, ssh b x2");
  static char line[9000]; /* a longer line than any buffer that a reader may have */
  memset(line, ' ', sizeof line);
  memcpy(line, "a", 1);
  memcpy(line + sizeof line - 9, "slots=4\nb", 9);
  assert_read(file(line, sizeof line), "ssh a x4, ssh b");
}

UNIT_TEST_WITH(files_name_the_line, test_tree_create, test_tree_remove) {
  assert_refused(FILE_OF("a\n\nb 8\n"), "/hosts:3: \"b 8\" is not a host");
  assert_refused(FILE_OF("a\r\n# b\r\nc slots=two\r\n"), "/hosts:3: ");
  assert_refused(FILE_OF("# none\n"), "/hosts: there is no host in it");
  assert_refused(FILE_OF(""), "/hosts: there is no host in it");
  assert_refused(FILE_OF("\xFF\xFE"
                         "a\0\n\0"),
                 "save it as UTF-8");
  assert_refused(FILE_OF("a\n\x1b[2J\n"), "/hosts:2: \"?[2J\" is not a host");
  assert_refused(test_tree.root, "no such command, nor a file with hosts");
}

/* Several arguments are one list. */
UNIT_TEST_WITH(arguments_add_up, test_tree_create, test_tree_remove) {
  struct host_list list = { 0 };
  assert_int_equal(host_list_read(&list, "a,local", error), 0);
  assert_int_equal(host_list_read(&list, FILE_OF("a\nlocal\n"), error), 0);
  assert_string_equal(summary(&list), "ssh a x2, local local1, local local2");
  assert_false(host_list_is_one_machine(&list));
  assert_int_not_equal(host_list_read(&list, " ", error), 0);
  host_list_free(&list);
  assert_int_equal(host_list_read(&list, "local:3", error), 0);
  assert_true(host_list_is_one_machine(&list));
  host_list_free(&list);
}

/* In a second argument, too; another port is another host, and this machine always is. */
UNIT_TEST(thousands_of_hosts_are_found_again) {
  enum { HOSTS = HOST_LIST_MAX - 3 };
  char text[64], name[16];
  struct host_list list = { 0 };
  snprintf(text, sizeof text, "node[0001-%d],local,node0001:2000", HOSTS);
  assert_int_equal(host_list_read(&list, text, error), 0);
  snprintf(text, sizeof text, "node[0001-%d]:2,local,node0001:2000", HOSTS);
  assert_int_equal(host_list_read(&list, text, error), 0);
  assert_int_equal(list.count, HOST_LIST_MAX);
  for (int i = 0; i < HOSTS; i++) {
    snprintf(name, sizeof name, "node%04d", i + 1);
    assert_string_equal(list.hosts[i].name, name);
    assert_int_equal(list.hosts[i].slots, 3);
  }
  assert_int_equal(list.hosts[HOSTS].kind, HOST_LOCAL);
  assert_int_equal(list.hosts[HOSTS + 1].slots, 2);
  assert_int_equal(list.hosts[HOSTS + 2].kind, HOST_LOCAL);
  assert_int_equal(host_list_read(&list, "node0001:1021", error), -EINVAL);
  assert_string_equal(error, "node0001: more than 1023 processes on one host");
  assert_int_equal(host_list_read(&list, "another", error), -EINVAL);
  assert_string_equal(error, "more than 4096 hosts");
  host_list_free(&list);
}

/* ---- commands ---- */

UNIT_TEST(commands_reach_each_kind) {
  static const struct {
    const char *host, *wanted;
  } cases[] = {
    { "local", "env|it's $HOME|" },
    { "cmd:docker exec -i c1", "docker|exec|-i|c1|env|it's $HOME|" },
    { "me@a", "ssh|-x|me@a|'env'|'it'\\''s $HOME'|" },
    { "[fe80::1%eth0]:8", "ssh|-x|fe80::1%eth0|'env'|'it'\\''s $HOME'|" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct host_list list = { 0 };
    struct host_command command;
    char text[256];
    size_t used = 0;
    assert_int_equal(host_list_read(&list, cases[i].host, error), 0);
    host_command_begin(&command, &list.hosts[0], " ssh -x");
    host_command_add(&command, "env");
    host_command_add(&command, "it's $HOME");
    assert_false(command.has_failed);
    for (int word = 0; command.words[word]; word++) {
      used += (size_t)snprintf(text + used, sizeof text - used, "%s|", command.words[word]);
    }
    assert_string_equal(text, cases[i].wanted);
    host_command_free(&command);
    host_list_free(&list);
  }
  struct host_list list = { 0 };
  assert_int_equal(host_list_read(&list, "me@fd00::1", error), 0);
  assert_string_equal(host_address(&list.hosts[0]), "fd00::1");
  host_list_free(&list);
}

UNIT_TEST(more_words_than_fit_are_noticed) {
  static const struct host here = { .kind = HOST_LOCAL };
  struct host_command command;
  host_command_begin(&command, &here, "");
  for (int i = 0; i < HOST_COMMAND_WORDS_MAX; i++) {
    host_command_add(&command, "a");
  }
  assert_false(command.has_failed);
  host_command_add(&command, "a");
  assert_true(command.has_failed);
  assert_null(command.words[HOST_COMMAND_WORDS_MAX]);
  host_command_free(&command);
}

/* ---- Slurm's lists ---- */

UNIT_TEST(node_lists_have_entries_and_places) {
  char name[16];
  unsigned count;
  assert_int_equal(node_list_entry("a[1,2]b,c"), 7);
  assert_int_equal(node_list_entry("a"), 1);
  assert_int_equal(node_list_count("a[1-2,7]b[001-100]", &count), 0);
  assert_int_equal(count, 300);
  assert_int_equal(node_list_name("a[1-2,7]b[001-100]", 299, name, sizeof name), 0);
  assert_string_equal(name, "a7b100");
  assert_int_equal(node_list_name("a[1-2,7]b[001-100]", 100, name, sizeof name), 0);
  assert_string_equal(name, "a2b001");
  assert_true(node_list_name("a[1-2]", 2, name, sizeof name) < 0);
  assert_true(node_list_name("averyverylongname[1-2]", 0, name, sizeof name) < 0);
  static const char *const bad[] = { "a[",   "a]",    "a[]",    "a[1", "a[1-]", "a[-1]",
                                     "a[x]", "a[1,]", "a[2-1]", "a,b", "a[1][", "a[9999999999]" };
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    if (node_list_count(bad[i], &count) == 0) {
      fail_msg("%s has %u names", bad[i], count);
    }
  }
  assert_true(node_list_count("a[1-65536]", &count) == 0 && count == 65536);
  assert_true(node_list_count("a[1-65537]", &count) < 0);
  assert_true(node_list_count("a[1-65536]b[1-65536]c[1-65536]", &count) < 0);
}

UNIT_MAIN(NULL, NULL)
