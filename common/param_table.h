/* SPDX-License-Identifier: Apache-2.0 */
/* param_table: every STRATUS_* variable, once. The getters, the checks, the messages, the README's
 * table and `stratus-net params` are made from these rows; a new variable is one new row.
 *
 *   X(NAME, TYPE, default, accepted, unit, plugin, duty, help)
 *
 * NAME     without STRATUS_; the getters know it as PARAM_<NAME>.
 * TYPE     BOOL      a switch: 0 or 1, off or on, no or yes, false or true
 *          INT       decimal number
 *          SIZE      bytes, with K, M, G for powers of 1024
 *          DURATION  number with ns, us, ms, s, m or h; seconds if without
 *          ENUM      one of the words in `accepted`; param_enum() gives the word's place, from 0;
 *                    with both `off` and `on` among them, those two take a switch's spellings
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
    "TCP flows per connection; 0 learns how many are worth having")                                \
  X(CHUNK_BYTES, SIZE, "128K", "4K..4M", "bytes", NET, PLAIN,                                      \
    "largest piece of a message that one flow carries at a time")                                  \
  X(EAGER_BYTES, SIZE, "128K", "0..256K", "bytes", NET, PLAIN,                                     \
    "messages up to this size are sent before the receiver asks")                                  \
  X(PROGRESS, ENUM, "auto", "auto|inline|thread", "", NET, PLAIN,                                  \
    "who moves the data: NCCL's threads (inline), threads of ours, or what measures faster")       \
  X(THREADS, INT, "0", "0..16", "", NET, PLAIN,                                                    \
    "threads per NIC, between which connections are divided; 0 chooses by the CPUs there are")     \
  X(THREAD_CPUS, STRING, "", "", "", NET, PLAIN,                                                   \
    "CPUs of the threads of NICs, as in 0-3,8; empty takes those near the NIC, none leaves them")  \
  X(SPEED_MBPS, STRING, "", "", "Mb/s", NET, PLAIN,                                                \
    "speed of NICs, one for all or as in eth0=25000,eth1=100000; empty asks profile and system")   \
  X(MERGE_NICS, STRING, "", "", "", NET, PLAIN,                                                    \
    "NICs that NCCL shall see as one: all, or groups as in eth0+eth1,eth2+eth3; empty merges "     \
    "none")                                                                                        \
  X(GPU_POINTERS, BOOL, "0", "", "", NET, PLAIN,                                                   \
    "1 lets NCCL pass GPU memory, where the CPU can address it; 0 stages through host memory")     \
  X(LATENCY_US, INT, "0", "0..1000", "us", NET, PLAIN,                                             \
    "latency reported to NCCL, equal on all hosts; 0 takes the profile's")                         \
  X(PORT_RANGE, STRING, "", "", "", NET, PLAIN,                                                    \
    "listen only on TCP ports low-high, as in 20000-20999; empty lets the kernel choose")          \
  X(DSCP, INT, "-1", "-1..63", "", NET, PLAIN,                                                     \
    "DSCP code point of outgoing packets; -1 follows NCCL's traffic class")                        \
  X(TCP_CONGESTION, STRING, "", "", "", NET, PLAIN,                                                \
    "congestion control algorithm, as in bbr; empty keeps the system's")                           \
  X(SOCKET_BUFFER_BYTES, SIZE, "0", "0|4K..1G", "bytes", NET, PLAIN,                               \
    "send and receive buffer of each flow; 0 leaves it to the kernel")                             \
  X(NOTSENT_LOWAT_BYTES, SIZE, "128K", "0|4K..64M", "bytes", NET, PLAIN,                           \
    "unsent bytes a flow may hold in the kernel; 0 sets no limit")                                 \
  X(PACING_MBPS, INT, "0", "0..10000000", "Mb/s", NET, PLAIN,                                      \
    "most that one flow sends; 0 sets no limit")                                                   \
  X(BUSY_POLL_US, INT, "0", "0..1000000", "us", NET, PLAIN,                                        \
    "how long the kernel polls the NIC for each flow before it waits for interrupts; 0 does not")  \
  X(LINK_TIMEOUT, DURATION, "10s", "100ms..1h", "", NET, PLAIN,                                    \
    "a connection without a working path, or with a silent peer, for this long is reported dead")  \
  X(STOPPED_TIMEOUT, DURATION, "5m", "100ms..24h", "", NET, PLAIN,                                 \
    "the same for a peer whose process is stopped or gets no CPU, while its host answers; at "     \
    "least STRATUS_LINK_TIMEOUT")                                                                  \
  X(POLICY, ENUM, "adaptive", "adaptive|fixed", "", NET, PLAIN,                                    \
    "for measuring: adaptive learns how fast flows are, fixed takes them in turn")                 \
  X(REDIAL_SLOW, BOOL, "1", "", "", NET, PLAIN,                                                    \
    "1 dials a flow anew that stays much slower than the others: the network may give it a "       \
    "better path")                                                                                 \
  X(CONNECT_TIMEOUT, DURATION, "60s", "100ms..1h", "", NET, PLAIN,                                 \
    "how long setting up a connection may take")                                                   \
  X(RAISE_NOFILE, BOOL, "1", "", "", NET, PLAIN,                                                   \
    "1 raises the limit of open descriptors (ulimit -n) towards the hard one; 0 leaves it")        \
  X(STALL_REPORT, DURATION, "5s", "0|2s..1h", "", NET, PLAIN,                                      \
    "a transfer that stands still for this long is reported, again at twice the time; 0 never")    \
  X(STATS, BOOL, "1", "", "", NET, PLAIN, "0 keeps stratus-net stats from asking this process")    \
  X(STATS_DIR, STRING, "", "", "", NET, PLAIN,                                                     \
    "directory of the sockets for stratus-net stats; empty: XDG_RUNTIME_DIR or /tmp/stratus-UID")  \
  X(RDMA, ENUM, "auto", "auto|on|off", "", NET, PLAIN,                                             \
    "queue pairs where NIC and peer have them; on warns where not, off leaves all to TCP")         \
  X(RDMA_CM, ENUM, "auto", "auto|on|off", "", NET, PLAIN,                                          \
    "librdmacm connects queue pairs; auto: only where a device needs it (iWARP, so eRDMA in "      \
    "standard mode), off: never, and such devices are left alone")                                 \
  X(CHECKSUM, BOOL, "0", "", "", NET, PROTECTS,                                                    \
    "1 checks what every chunk carries by CRC32C and sends damaged ones again; one side suffices") \
  X(ENCRYPT, ENUM, "off", "off|on", "", NET, PROTECTS,                                             \
    "on encrypts all data between hosts; equal on all hosts")                                      \
  X(SECRET, SECRET, "", "", "", NET, PROTECTS,                                                     \
    "job secret, equal on all hosts: nobody joins a connection without it")                        \
  X(SECRET_FILE, STRING, "", "", "", NET, PROTECTS,                                                \
    "path of a file that holds the job secret, readable by its owner only")                        \
  X(PROFILE, STRING, "", "", "", BOTH, PLAIN,                                                      \
    "path of the profile to use; empty searches for one that fits the machine")                    \
  X(PROFILE_STRICT, BOOL, "0", "", "", BOTH, PLAIN,                                                \
    "a bad profile is an error instead of a warning")                                              \
  X(INSTANCE_TYPE, STRING, "", "", "", BOTH, PLAIN,                                                \
    "instance type, as in p4d.24xlarge or gcp:a3-megagpu-8g; empty asks the system")               \
  X(TOPOLOGY, STRING, "", "", "", BOTH, PLAIN,                                                     \
    "fingerprint of the machine's topology that profiles are matched with; empty asks the system") \
  X(METADATA_TIMEOUT, DURATION, "0", "0|10ms..10s", "", BOTH, PLAIN,                               \
    "how long the cloud's metadata service may take to tell the instance type; 0 does not ask it") \
  X(TUNER, BOOL, "1", "", "", TUNER, PLAIN, "0 leaves every choice to NCCL")                       \
  X(MODE, ENUM, "tune", "tune|calibrate", "", BOTH, PLAIN,                                         \
    "calibrate tries what STRATUS_CALIBRATE says; set by stratus-tune calibrate, equal on all "    \
    "hosts")                                                                                       \
  X(CALIBRATE, STRING, "", "", "", BOTH, PLAIN,                                                    \
    "plan of a calibration, as in allreduce:8,64K=all; equal on all hosts")                        \
  X(RECORD, STRING, "", "", "", TUNER, PLAIN,                                                      \
    "directory for samples of the job's own calls, for stratus-tune suggest; empty: none")         \
  X(LOG, ENUM, "info", "warn|info|trace", "", BOTH, PLAIN,                                         \
    "most detailed level handed to NCCL's log, which filters by NCCL_DEBUG")                       \
  X(SYSFS_ROOT, STRING, "/", "", "", BOTH, PLAIN, "directory that holds sys and proc, for tests")

#endif
