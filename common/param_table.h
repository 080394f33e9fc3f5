/* SPDX-License-Identifier: Apache-2.0 */
/* param_table: every STRATUS_* variable, once. The getters, the checks, the messages,
 * docs/parameters.md, stratus(7) and `stratus params` are made from these rows; a new variable
 * is one new row.
 *
 *   X(NAME, TYPE, default, accepted, unit, plugin, duty, help)
 *
 * NAME     without STRATUS_; the getters know it as PARAM_<NAME>.
 * TYPE     BOOL      0 or 1, off or on, no or yes, false or true
 *          INT       decimal number
 *          SIZE      bytes, with K, M, G for powers of 1024
 *          DURATION  number with ns, us, ms, s, m or h; seconds if without
 *          ENUM      one of the words in `accepted`; param_enum() gives the word's place, from 0
 *                    (param.h has an enum in the same order); if it has both `off` and `on`,
 *                    these take the spellings of BOOL
 *          STRING    anything
 *          SECRET    anything; never shown
 * default  as the user would write it.
 * accepted alternatives separated by `|`: values, `low..high` ranges, words. Empty: all the type
 *          can hold.
 * unit     of the number, for the documents; may be empty.
 * plugin   NET, TUNER or BOTH: who reads it.
 * duty     PROTECTS: a bad value must not weaken what the user asked for, so the net plugin makes
 *          no connection (param_refusal); set to nothing is bad, too. PLAIN: one warning, and the
 *          default is kept.
 * help     one line, no full stop. */
#ifndef COMMON_PARAM_TABLE_H
#define COMMON_PARAM_TABLE_H

#define PARAM_TABLE(X)                                                                             \
  X(FLOWS, INT, "0", "0..64", "flows", NET, PLAIN,                                                 \
    "TCP flows per connection; 0: as many as help, by what limits them")                           \
  X(CHUNK_BYTES, SIZE, "128K", "4K..4M", "bytes", NET, PLAIN,                                      \
    "largest part of a message on one flow at a time; not set: up to 4 times as much where that "  \
    "takes 0.1 ms")                                                                                \
  X(EAGER_BYTES, SIZE, "16K", "0..256K", "bytes", NET, PLAIN,                                      \
    "messages up to this size are sent before the receiver has posted its buffer")                 \
  X(PROGRESS, ENUM, "auto", "auto|inline|thread", "", NET, PLAIN,                                  \
    "who moves the data: NCCL's threads (inline) or the plugin's (thread); auto: thread with at "  \
    "least 4 CPUs, 2 of them to spare")                                                            \
  X(THREADS, INT, "0", "0..16", "", NET, PLAIN,                                                    \
    "threads per NIC, which share its connections; 0: by the number of CPUs")                      \
  X(THREAD_CPUS, STRING, "", "", "", NET, PLAIN,                                                   \
    "CPUs for the threads of NICs, e.g. 0-3,8; empty: CPUs near the NIC; none: no pinning")        \
  X(SPEED_MBPS, STRING, "", "", "Mb/s", NET, PLAIN,                                                \
    "speed of the NICs, one value or e.g. eth0=25000,eth1=100000; empty: from profile or system")  \
  X(MERGE_NICS, STRING, "", "", "", NET, PLAIN,                                                    \
    "NICs to present to NCCL as one device: all, none, or groups such as eth0+eth1,eth2+eth3; "    \
    "empty: those of one port (DGX Spark)")                                                        \
  X(GPU_POINTERS, BOOL, "0", "", "", NET, PLAIN,                                                   \
    "1: NCCL passes GPU memory, where the CPU can access it; 0: NCCL copies through host memory")  \
  X(PORT_RANGE, STRING, "", "", "", NET, PLAIN,                                                    \
    "TCP ports to listen on, low-high, e.g. 20000-20999; empty: chosen by the kernel")             \
  X(ADVERTISE_ADDRESS, STRING, "", "", "", NET, PLAIN,                                             \
    "address that other hosts dial, where it is not the NIC's own (NAT, containers, an address "   \
    "on lo), one or e.g. eth0=203.0.113.7,eth1=203.0.113.8")                                       \
  X(DSCP, INT, "-1", "-1..63", "", NET, PLAIN,                                                     \
    "DSCP of outgoing packets; -1: NCCL's traffic class")                                          \
  X(TCP_CONGESTION, STRING, "", "", "", NET, PLAIN,                                                \
    "TCP congestion control algorithm, e.g. bbr; empty: the system's default")                     \
  X(SOCKET_BUFFER_BYTES, SIZE, "0", "0|4K..1G", "bytes", NET, PLAIN,                               \
    "send and receive buffer of each flow (SO_SNDBUF, SO_RCVBUF); 0: sized by the kernel")         \
  X(LINK_TIMEOUT, DURATION, "15m", "100ms..1h", "", NET, PLAIN,                                    \
    "a connection fails after this long without a path that carries data, or without an answer "   \
    "from the peer's host")                                                                        \
  X(STOPPED_TIMEOUT, DURATION, "15m", "100ms..24h", "", NET, PLAIN,                                \
    "the same if the peer's host answers and its process does not; at least STRATUS_LINK_TIMEOUT") \
  X(REDIAL_SLOW, BOOL, "1", "", "", NET, PLAIN,                                                    \
    "1: reconnects a flow that stays much slower than the others, so that it takes another path")  \
  X(CONNECT_TIMEOUT, DURATION, "2m", "100ms..1h", "", NET, PLAIN,                                  \
    "limit for making a connection; not set: sooner where the kernel knows no way, or the peer's " \
    "host refuses")                                                                                \
  X(STALL_REPORT, DURATION, "5s", "0|2s..1h", "", NET, PLAIN,                                      \
    "a transfer that has stalled for this long is logged, again each time that doubles; 0: never") \
  X(STATS_DIR, STRING, "", "", "", NET, PLAIN,                                                     \
    "directory of the sockets for stratus stats; empty: /tmp/stratus-UID")                         \
  X(RDMA, ENUM, "auto", "auto|on|off", "", NET, PLAIN,                                             \
    "RDMA queue pairs where NIC and peer support them; on: warns where they do not; off: TCP "     \
    "only")                                                                                        \
  X(COLLNET, ENUM, "off", "off|full|bf16|fp16", "", BOTH, PLAIN,                                   \
    "AllReduce across hosts on the hosts, with NCCL_COLLNET_ENABLE=1; bf16, fp16: f32 sums "       \
    "travel in 16 bits; equal on all hosts")                                                       \
  X(COMPRESS, ENUM, "auto", "off|auto|on", "", NET, PLAIN,                                         \
    "TCP flows carry chunks in fewer bytes, without loss (bf16 and f32); auto: while that is "     \
    "faster. With STRATUS_ENCRYPT=on off unless it is set")                                        \
  X(CHECKSUM, BOOL, "0", "", "", NET, PROTECTS,                                                    \
    "1: protects every chunk with CRC32C and sends corrupt ones again; one side suffices")         \
  X(ENCRYPT, ENUM, "off", "off|on", "", NET, PROTECTS,                                             \
    "on: encrypts all data between hosts; equal on all hosts")                                     \
  X(SECRET, SECRET, "", "", "", NET, PROTECTS,                                                     \
    "secret of the job, equal on all hosts: connections without it are refused")                   \
  X(SECRET_FILE, STRING, "", "", "", NET, PROTECTS,                                                \
    "path of a file with the secret of the job, readable by its owner only")                       \
  X(PROFILE, STRING, "", "", "", BOTH, PLAIN,                                                      \
    "path of the profile to use; empty: one that matches the machine")                             \
  X(INSTANCE_TYPE, STRING, "", "", "", BOTH, PLAIN,                                                \
    "instance type, e.g. p4d.24xlarge or gcp:a3-megagpu-8g; empty: detected")                      \
  X(TOPOLOGY, STRING, "", "", "", BOTH, PLAIN,                                                     \
    "fingerprint of the machine's topology, by which profiles match; empty: detected")             \
  X(TUNER, BOOL, "1", "", "", TUNER, PLAIN, "0: the tuner leaves every choice to NCCL")            \
  X(CALIBRATE, STRING, "", "", "", BOTH, PLAIN,                                                    \
    "cell that the tuner tries, in place of a profile; set by stratus calibrate, equal on all "    \
    "hosts")                                                                                       \
  X(LOG, ENUM, "info", "warn|info|trace", "", BOTH, PLAIN,                                         \
    "most detailed level passed to NCCL's log, which filters by NCCL_DEBUG")

#endif
