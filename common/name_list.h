/* SPDX-License-Identifier: Apache-2.0 */
/* name_list: the syntax of NCCL's variables that select interfaces and HCAs: lists of names and
 * address families, as NCCL parses them (parseStringList and matchIfList, src/misc/utils.cc at
 * NVIDIA/nccl v2.30.7-1).
 *
 *     eth0,ib    prefixes of names          =eth0    exact names
 *     ^docker    all others                 mlx5_0:1,mlx5_1:2    with ports
 *
 * Owns: nothing.  Threads: any.  Blocks: never.
 * Fails: cannot; invalid entries are one WARN with the variable and what is accepted. */
#ifndef COMMON_NAME_LIST_H
#define COMMON_NAME_LIST_H

#include <stdbool.h>
#include <sys/socket.h>

enum { NAME_LIST_MAX = 32, NAME_LIST_NAME_MAX = 64 /* longer ones are cut */ };
enum { NAME_LIST_NO_PORT = 0, NAME_LIST_ANY_PORT = -1 };

struct name_list {
  bool is_excluding, is_exact;
  unsigned count;
  struct {
    char name[NAME_LIST_NAME_MAX];
    int port; /* 1 to 255, or one of the above */
  } entries[NAME_LIST_MAX];
};

/* NULL is an empty list. Without has_ports, text after a colon is ignored. */
void name_list_parse(struct name_list *list, const char *variable, const char *text,
                     bool has_ports);
/* An empty list contains all names. port: NAME_LIST_ANY_PORT for devices without ports. */
bool name_list_has(const struct name_list *list, const char *name, int port);

/* AF_INET or AF_INET6; AF_UNSPEC for NULL. */
sa_family_t name_list_family(const char *variable, const char *text);

#endif
