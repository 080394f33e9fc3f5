/* SPDX-License-Identifier: Apache-2.0 */
/* engine: moves bytes of one NIC. One epoll set, one lock, and two kinds of drivers: the engine's
 * own thread, and any thread of NCCL that waits for a transfer (engine_progress).
 *
 * Inline progress saves two context switches per message, which is what small messages cost, and
 * all that there is where cores are scarce. While NCCL's threads poll, the engine's thread keeps
 * off and only looks in now and then; when they stop, it takes over within a few milliseconds, or
 * later while NCCL waits, and sleeps in the kernel when nothing happens. Where cores are plenty,
 * bulk traffic is left to the thread if that is measured to be faster (common/trial.h).
 *
 * A NIC may have several engines, its shards: a connection belongs to one for life, and so does
 * everything of it, so engines share nothing.
 *
 * Owns: descriptors it watches until engine_unwatch; the thread.  Threads: functions that say
 * "locked" need the engine lock, the others may be called by any thread.  Blocks: engine_lock for
 * microseconds, engine_stop_all until connections have said goodbye.  Fails: negative errno. */
#ifndef NET_PLUGIN_ENGINE_ENGINE_H
#define NET_PLUGIN_ENGINE_ENGINE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/id_table.h"
#include "common/list.h"
#include "net_plugin/engine/drive.h"
#include "net_plugin/lane/nic.h"

struct engine;
struct policy_shared;

/* A watched descriptor; lives inside the thing that it belongs to. */
struct engine_source {
  void (*ready)(struct engine_source *source, uint32_t epoll_events); /* locked */
  int fd;
  uint32_t events; /* what is watched now; set by engine_watch */
};

/* A deadline; lives inside the thing that it belongs to. */
struct engine_timer {
  void (*expired)(struct engine_timer *timer, uint64_t now_ns); /* locked; disarmed before */
  uint64_t deadline_ns;                                         /* 0: not armed */
  struct list_node node;
};

/* Work handed to whoever holds the lock. */
struct engine_task {
  void (*run)(struct engine_task *task); /* locked */
  struct engine_task *next;
  atomic_bool is_queued;
};

/* What an engine is wanted for; each use is dealt out evenly over the NIC's engines. */
enum engine_use { ENGINE_LISTENS, ENGINE_DIALS, ENGINE_USES };
/* The engine of this NIC whose turn it is, made on first use. The result lives until
 * engine_stop_all. */
int engine_get(const struct nic *nic, enum engine_use use, struct engine **engine);
/* Ends all threads and frees all engines: for the plugin's last finalize. First gives connections
 * that are saying goodbye up to linger_ns; anything left is dropped. Later engine_get calls start
 * anew. */
void engine_stop_all(uint64_t linger_ns);

void engine_lock(struct engine *engine);
void engine_unlock(struct engine *engine);
/* Moves bytes if no other thread is doing so, or should be; for threads that wait for something. */
void engine_progress(struct engine *engine);
/* The same in two steps, for a caller that knows where to look first: false if there is nothing to
 * do here, else the lock is held until engine_unlock. */
bool engine_progress_begin(struct engine *engine, uint64_t now_ns);
/* For a glance that moves nothing: locked if the mode is inline and the lock is free. */
bool engine_glance_begin(struct engine *engine);
/* Runs the task under the lock, very soon: now if the engine's mode is inline and the lock is free,
 * else by the thread that holds it, or by the engine's. A task that is queued already is not queued
 * twice. */
void engine_submit(struct engine *engine, struct engine_task *task);
/* For a thread that waits, and does not hold the lock: sleeps a little if nothing has moved on any
 * engine for long, but not past the next event of this one. */
void engine_nap(struct engine *engine, uint64_t now_ns);
/* Something moved or was posted, on any engine: those who wait stay awake. Lock or none. */
void engine_stirred(uint64_t now_ns);

/* ---- locked ---- */

/* Delivers what the epoll set has, runs tasks and expired timers. False: there was nothing. */
bool engine_poll(struct engine *engine);
/* Of the calls of threads that look elsewhere first: is it time for engine_poll? is_only_direct:
 * they have only RDMA lanes, of which the epoll set tells them nothing, so it is rarely. */
bool engine_is_turn(struct engine *engine, bool is_only_direct, uint64_t now_ns);
/* Runs what other threads submitted so far. False: there was nothing. */
bool engine_run_tasks(struct engine *engine);
/* RDMA lanes, or TCP lanes, were opened (1) or closed (-1). */
void engine_count_lanes(struct engine *engine, bool is_direct, int change);
/* So many bytes were read or written: what the mode is chosen by. is_direct: by RDMA lanes. There
 * the NIC moves them by itself: another thread has nothing to take off NCCL's, which stay in charge
 * unless there are flows that are busy, too. */
void engine_moved(struct engine *engine, bool is_direct, size_t bytes, uint64_t now_ns);
/* Who moves the bytes from now on. Engines do so themselves; tests may at any time. */
void engine_set_mode(struct engine *engine, enum drive_mode mode);

int engine_watch(struct engine *engine, struct engine_source *source, int fd, uint32_t events);
void engine_rewatch(struct engine *engine, struct engine_source *source, uint32_t events);
/* Also safe inside any source's ready(): no further event of this source is delivered. */
void engine_unwatch(struct engine *engine, struct engine_source *source);

/* Nothing that NCCL waits for is left, but bytes are: the thread takes over at once, without
 * waiting for NCCL's threads to stay away. */
void engine_leave_to_thread(struct engine *engine);

/* So many more connections, or fewer, have requests that NCCL waits for: while there are any, its
 * threads will poll again, so the engine's thread gives them more time. */
void engine_awaits(struct engine *engine, int change);

void engine_timer_set(struct engine *engine, struct engine_timer *timer, uint64_t deadline_ns);
void engine_timer_stop(struct engine_timer *timer);

/* Things that hold the engine in engine_stop_all until they are gone, and that setup/ looks up.
 * Each layer that owns a list walks it and nothing else does. Handshakes go by the tables, for
 * strangers, too: there may be thousands of connections. */
struct engine_lists {
  struct list connections;      /* engine/connection.c */
  struct list ports;            /* setup/port.c */
  struct list listeners;        /* setup/listener.c */
  struct id_table receivers;    /* setup/peering.c: connections by the identity of their hellos */
  struct id_table listener_ids; /* setup/listener.c */
};
struct engine_lists *engine_lists(struct engine *engine);
/* What the engine's links measure together; guarded by the lock. */
struct policy_shared *engine_policy_shared(struct engine *engine);
/* Runs visit on the index-th engine, with its lock held, for a caller that holds the lock of
 * another one, or of this one: 0, -EAGAIN: it is busy, try later, or -ENOENT: there are fewer. Does
 * not wait, so that two callers cannot wait for each other. */
int engine_try_visit(struct engine *held, unsigned index,
                     void (*visit)(struct engine *engine, void *argument), void *argument);
const struct nic *engine_nic(const struct engine *engine);
/* 0 is made before the NIC's other engines, and stopped after them. */
unsigned engine_shard(const struct engine *engine);
struct engine *engine_first(struct engine *engine); /* shard 0 of the same NIC */
enum drive_mode engine_mode(const struct engine *engine);
/* Called locked in engine_stop_all to end what is in the lists, once per engine. */
void engine_on_stop(void (*stop)(struct engine *engine));

#endif
