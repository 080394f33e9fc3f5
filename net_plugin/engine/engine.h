/* SPDX-License-Identifier: Apache-2.0 */
/* engine: moves bytes of one NIC. One epoll set, one lock: the lock's holder does the work, be it
 * the engine's own thread or a thread of NCCL that posts or polls. Nobody waits for the lock to
 * post or to poll: who finds it taken leaves the work to its holder.
 *
 * A NIC may have several engines, its shards: a connection belongs to one for life, and so does
 * everything of it, so engines share nothing.
 *
 * Owns: descriptors it watches until engine_unwatch; the thread.  Threads: functions that say
 * "locked" need the engine lock, the others may be called by any thread.  Blocks: engine_lock for
 * microseconds, or while a driver stops a queue pair (lane.h); engine_idle_sleep; engine_stop_all
 * until connections are closed.  Fails: negative errno. */
#ifndef NET_PLUGIN_ENGINE_ENGINE_H
#define NET_PLUGIN_ENGINE_ENGINE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/list.h"
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

/* What follows from events of several sources, once for all of them. */
struct engine_deferred {
  void (*run)(struct engine_deferred *deferred); /* locked */
  bool is_queued;
  struct list_node node;
};

/* What an engine is wanted for; each use goes round robin over the NIC's engines. */
enum engine_use { ENGINE_LISTENS, ENGINE_DIALS, ENGINE_USES };
/* The engine of this NIC whose turn it is, made on first use. The result lives until
 * engine_stop_all. */
int engine_get(const struct nic *nic, enum engine_use use, struct engine **engine);
/* Ends all threads and frees all engines: for the plugin's last finalize. First gives connections
 * that are closing up to linger_ns; then stop, called locked once per engine, ends what is left in
 * its lists. NULL: there is nothing. Later engine_get calls make new ones. */
void engine_stop_all(uint64_t linger_ns, void (*stop)(struct engine *engine));

/* What is told of engines, locked; observe/ listens. */
struct engine_observer {
  void (*started)(struct engine *engine);
  /* Its thread has ended, its connections are gone; watched descriptors must go now. */
  void (*stopping)(struct engine *engine);
};
/* Before the first engine is made; it outlives all of them. */
void engine_observe(const struct engine_observer *observer);

void engine_lock(struct engine *engine);
/* Does not wait. False: another thread has it. */
bool engine_try_lock(struct engine *engine);
void engine_unlock(struct engine *engine);
/* Do NCCL's threads poll, so that the engine's thread keeps off? In mode INLINE, and in both while
 * all lanes are RDMA, which the NIC moves by itself. Else the thread takes every event as it comes,
 * and NCCL's threads only post. */
bool engine_is_polled(const struct engine *engine);
/* Polls once, if it is polled, and no other thread is at work; for threads of NCCL that wait for
 * something. */
void engine_progress(struct engine *engine);
/* The same in two steps, for a caller that knows where to poll first. True: the lock is held, until
 * engine_unlock. False: the work is another thread's. */
bool engine_progress_begin(struct engine *engine, uint64_t now_ns);
/* Runs the task under the lock: now, if the lock is free, else by the lock's holder before it is
 * done with unlocking. A task that is queued already is not queued twice. */
void engine_submit(struct engine *engine, struct engine_task *task);
/* For a thread that waits, and does not hold the lock: sleeps for up to 200 us if nothing has moved
 * on any engine for half a second, but not past the next event of this one. */
void engine_idle_sleep(struct engine *engine, uint64_t now_ns);
/* Bytes moved, or something was posted, on any engine: waiters do not sleep. Lock or none. */
void engine_note_activity(uint64_t now_ns);

#ifdef STRATUS_CHECKED /* builds with sanitizers */
/* Ends the process unless this thread holds the engine's lock. */
void engine_assert_locked(const struct engine *engine);
/* Does this thread hold any engine's lock? */
bool engine_is_any_locked(void);
#else
static inline void engine_assert_locked(const struct engine *engine) {
  (void)engine;
}
#endif

/* ---- locked ---- */

/* Delivers what the epoll set has, runs tasks and expired timers. False: there was nothing. */
bool engine_poll(struct engine *engine);
/* The same if that was not done lately, or a deadline has come: for a caller that has polled its
 * lanes; else only what is deferred. is_only_rdma: all of these are RDMA, of which the epoll set
 * says nothing, so seldom. */
void engine_poll_if_due(struct engine *engine, bool is_only_rdma, uint64_t now_ns);
/* Runs it once the events of a round are delivered, or in engine_run_deferred; once, however often
 * it is asked. */
void engine_defer(struct engine *engine, struct engine_deferred *deferred);
/* It is not to run any more, if it was. */
void engine_cancel(struct engine_deferred *deferred);
void engine_run_deferred(struct engine *engine);
/* Runs what other threads submitted so far. False: there was nothing. */
bool engine_run_tasks(struct engine *engine);
/* A lane was opened (1) or closed (-1). While all are RDMA, the thread keeps off in both modes. */
void engine_count_lanes(struct engine *engine, bool is_rdma, int change);

int engine_watch(struct engine *engine, struct engine_source *source, int fd, uint32_t events);
void engine_rewatch(struct engine *engine, struct engine_source *source, uint32_t events);
/* Also safe inside any source's ready(): no further event of this source is delivered. */
void engine_unwatch(struct engine *engine, struct engine_source *source);

/* Bytes are left to move that NCCL does not wait for: the thread takes over at once, instead of
 * waiting for NCCL's threads to stay away. */
void engine_leave_to_thread(struct engine *engine);

void engine_timer_set(struct engine *engine, struct engine_timer *timer, uint64_t deadline_ns);
void engine_timer_stop(struct engine_timer *timer);

/* Things that hold the engine in engine_stop_all until they are gone, and that setup/ looks up.
 * Each layer that owns a list walks it and nothing else does. Handshakes go by the trees, for
 * strangers, too: there may be thousands of connections. */
struct engine_lists {
  struct list connections; /* connection/connection.c */
  struct list ports;       /* setup/listener.c */
  struct list listeners;   /* setup/listener.c */
  void *receivers;         /* id_tree.h; setup/receiver.c: by the identity of their hellos */
  void *listener_ids;      /* id_tree.h; setup/listener.c */
};
struct engine_lists *engine_lists(struct engine *engine);
/* What the engine's links measure together; guarded by the lock. */
struct policy_shared *engine_policy_shared(struct engine *engine);
/* Runs visit on the index-th engine, with its lock held, for a caller that holds the lock of
 * another one, or of this one: 0, -EAGAIN: it is busy, try later, or -ENOENT: there are fewer. Does
 * not wait, so that two callers cannot wait for each other. */
int engine_try_visit(struct engine *held, unsigned index,
                     void (*visit)(struct engine *engine, void *argument), void *argument);
/* The same on each engine in turn, for a caller that holds no lock: waits for each. */
void engine_visit_all(void (*visit)(struct engine *engine, void *argument), void *argument);
const struct nic *engine_nic(const struct engine *engine);
/* 0 is made before the NIC's other engines, and stopped after them. */
unsigned engine_shard(const struct engine *engine);
struct engine *engine_first(struct engine *engine); /* shard 0 of the same NIC */

#endif
