/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of hosts: what is taken is the same once it is written in one form, and has no name that
 * ssh could take for an option or a shell for more than a word; what is refused is printable. */
#include "common/host_list.h"
#include "tests/fuzz/fuzz.h"

static void check_host(const struct host *host) {
  FUZZ_CHECK(host->name[0] && host->slots >= 0 && host->slots <= HOST_SLOTS_MAX);
  FUZZ_CHECK(host->port == 0 || (host->port > HOST_SLOTS_MAX && host->port <= 65535));
  if (host->kind == HOST_SSH) {
    FUZZ_CHECK(host->name[0] != '-' && !strpbrk(host->name, " \t\r\n'\"$`;&|<>(){}*?[]#!/"));
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct host_list list = { 0 }, again = { 0 };
  char error[HOST_LIST_ERROR_MAX] = "";
  char *text = strndup((const char *)data, size);
  FUZZ_CHECK(text != NULL);
  /* A word with a slash may name a file of this machine. */
  if (strchr(text, '/') || host_list_read(&list, text, error) != 0) {
    fuzz_check_visible(error, strlen(error));
  } else {
    char *written = host_list_write(&list);
    FUZZ_CHECK(written && host_list_read(&again, written, error) == 0);
    FUZZ_CHECK(list.count == again.count);
    for (int i = 0; i < list.count; i++) {
      check_host(&list.hosts[i]);
      FUZZ_CHECK(list.hosts[i].kind == again.hosts[i].kind);
      FUZZ_CHECK(strcmp(list.hosts[i].name, again.hosts[i].name) == 0);
      FUZZ_CHECK(list.hosts[i].slots == again.hosts[i].slots &&
                 list.hosts[i].port == again.hosts[i].port);
    }
    free(written);
  }
  host_list_free(&again);
  host_list_free(&list);
  free(text);
  return 0;
}
