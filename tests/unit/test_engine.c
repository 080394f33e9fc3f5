/* SPDX-License-Identifier: Apache-2.0 */
/* The hand-over between NCCL's threads and the engine's, in both modes. Whatever is handed over
 * must be dealt with although nobody polls, so a wake-up that is lost shows as a test that stands
 * still. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/param.h"
#include "common/random.h"
#include "common/sysfs.h"
#include "net_plugin/connection/connection.h"
#include "net_plugin/engine/engine_state.h"
#include "tests/lib/log_capture.h"
#include "tests/lib/pair.h"
#include "tests/lib/tree.h"
#include "tests/lib/unit.h"

static struct engine *engine;
static atomic_bool is_stuck;

static int start(void **state) {
  struct nic nic = pair_loopback(AF_INET);
  pair_set_up(state);
  atomic_store(&is_stuck, false);
  return engine_get(&nic, ENGINE_DIALS, &engine);
}

/* Waits without driving the engine. False: it does not come. */
static bool comes(const atomic_uint *counter, unsigned value) {
  uint64_t until_ns = clock_now_ns() + PATIENCE_NS;
  while (atomic_load(counter) < value && !atomic_load(&is_stuck)) {
    if (clock_now_ns() > until_ns) {
      atomic_store(&is_stuck, true);
    }
    sched_yield();
  }
  return atomic_load(counter) >= value;
}

/* What a thread of a test does, with a thing of its own. */
enum { WORKERS = 4 };
static unsigned rounds(void) {
  return unit_has_time() ? 2000 : 300;
}
struct worker {
  struct engine_task task;
  struct engine_timer timer;
  struct engine_source source;
  void (*begin)(struct worker *worker); /* what counts in done when it has happened */
  atomic_uint done;
  uint64_t random;
  pthread_t thread;
};

static void *work(void *argument) {
  struct worker *worker = argument;
  for (unsigned i = 1; i <= rounds() && !atomic_load(&is_stuck); i++) {
    worker->begin(worker);
    comes(&worker->done, i);
  }
  return NULL;
}

static void run_some(struct worker *workers, unsigned count) {
  for (unsigned i = 0; i < count; i++) {
    workers[i].random = i;
    atomic_store(&workers[i].done, 0);
    assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
  }
  for (unsigned i = 0; i < count; i++) {
    pthread_join(workers[i].thread, NULL);
  }
  assert_false(atomic_load(&is_stuck));
}

/* One alone, whose wake-ups nobody else stands in for; and all, for what they do to each other. */
static void run_workers(struct worker workers[WORKERS]) {
  run_some(workers, 1);
  run_some(workers, WORKERS);
}

/* ---- tasks ---- */

static void task_run(struct engine_task *task) {
  atomic_fetch_add(&LIST_ENTRY(task, struct worker, task)->done, 1);
}

static void submit_task(struct worker *worker) {
  if (random_next(&worker->random) % 64 == 0) {
    usleep((useconds_t)random_next(&worker->random) % 300); /* lets the thread fall asleep */
  }
  engine_submit(engine, &worker->task);
}

static const char by_pollers[] = "STRATUS_THREADS=2 STRATUS_PROGRESS=inline";
static const char by_threads[] = "STRATUS_THREADS=2 STRATUS_PROGRESS=thread";
#define TEST(name, mode) UNIT_TEST_EACH(name, start, pair_tear_down, mode)
#define IN_BOTH_MODES(name) UNIT_TEST_EACH(name, start, pair_tear_down, by_pollers, by_threads)

IN_BOTH_MODES(tasks_are_run) {
  struct worker workers[WORKERS];
  for (unsigned i = 0; i < WORKERS; i++) {
    workers[i] = (struct worker){ .task.run = task_run, .begin = submit_task };
  }
  run_workers(workers);
}

/* ---- deadlines ---- */

static void timer_expired(struct engine_timer *timer, uint64_t now_ns) {
  (void)now_ns;
  atomic_fetch_add(&LIST_ENTRY(timer, struct worker, timer)->done, 1);
}

/* Some are set by who polls a little and goes away. */
static void set_timer(struct worker *worker) {
  engine_lock(engine);
  engine_timer_set(engine, &worker->timer,
                   clock_now_ns() + random_next(&worker->random) % 500 * NS_PER_US + 1);
  engine_unlock(engine);
  for (uint64_t polls = random_next(&worker->random) % 4; polls > 0; polls--) {
    engine_progress(engine);
  }
}

IN_BOTH_MODES(deadlines_are_met) {
  struct worker workers[WORKERS];
  for (unsigned i = 0; i < WORKERS; i++) {
    workers[i] = (struct worker){ .timer.expired = timer_expired, .begin = set_timer };
  }
  run_workers(workers);
}

/* A deadline that another's expiry puts off is not met early. */
static struct engine_timer first, second;
static atomic_uint early;

static void put_off_second(struct engine_timer *timer, uint64_t now_ns) {
  (void)timer;
  engine_timer_set(engine, &second, now_ns + 20 * NS_PER_MS);
}

static void second_expired(struct engine_timer *timer, uint64_t now_ns) {
  (void)timer;
  (void)now_ns;
  atomic_fetch_add(&early, 1);
}

IN_BOTH_MODES(deadlines_can_be_put_off) {
  atomic_store(&early, 0);
  first.expired = put_off_second;
  second.expired = second_expired;
  engine_lock(engine);
  uint64_t now_ns = clock_now_ns();
  engine_timer_set(engine, &first, now_ns);
  engine_timer_set(engine, &second, now_ns);
  engine_poll(engine);
  assert_int_equal(atomic_load(&early), 0);
  engine_unlock(engine);
  assert_true(comes(&early, 1));
}

/* A deadline that comes soon after a poll is left to those who poll for 30 ms at least, and then
 * met all the same. */
static void deadline_is_left_to_pollers(void) {
  atomic_store(&early, 0);
  second = (struct engine_timer){ .expired = second_expired };
  uint64_t began_ns = clock_now_ns();
  engine_progress(engine);
  engine_lock(engine);
  engine_timer_set(engine, &second, began_ns + NS_PER_MS);
  engine_unlock(engine);
  usleep(30000);
  unsigned expired = atomic_load(&early);
  if (clock_now_ns() < began_ns + 150 * NS_PER_MS) { /* else this thread was not given a CPU */
    assert_int_equal(expired, 0);
  }
}

static void count_lanes(bool is_rdma, int change) {
  engine_lock(engine);
  engine_count_lanes(engine, is_rdma, change);
  engine_unlock(engine);
}

/* A flow opens while a deadline is left to pollers: how long until it is met. */
static uint64_t hold_ends_by_flow_ns(void) {
  deadline_is_left_to_pollers();
  uint64_t began_ns = clock_now_ns();
  count_lanes(false, 1);
  assert_true(comes(&early, 1));
  count_lanes(false, -1);
  return clock_now_ns() - began_ns;
}

/* The same in both modes while all lanes are RDMA; 170 ms of it are left when a flow opens, which
 * ends it. */
IN_BOTH_MODES(thread_keeps_off_rdma_lanes) {
  count_lanes(true, 1);
  deadline_is_left_to_pollers();
  assert_true(comes(&early, 1));
  bool has_ended_at_once = false;
  for (unsigned i = 0; i < 10 && !has_ended_at_once; i++) { /* it may not be given a CPU */
    has_ended_at_once = hold_ends_by_flow_ns() < 80 * NS_PER_MS;
  }
  assert_true(has_ended_at_once);
  count_lanes(true, -1);
}

/* ---- events ---- */

static void source_ready(struct engine_source *source, uint32_t events) {
  uint64_t count;
  if (events & EPOLLIN && read(source->fd, &count, sizeof count) == sizeof count) {
    atomic_fetch_add(&LIST_ENTRY(source, struct worker, source)->done, 1);
  }
}

static void raise_event(struct worker *worker) {
  uint64_t one = 1;
  if (write(worker->source.fd, &one, sizeof one) != sizeof one) {
    atomic_store(&is_stuck, true);
  }
  if (random_next(&worker->random) % 8 == 0) {
    engine_progress(engine);
  }
}

IN_BOTH_MODES(events_are_seen) {
  struct worker workers[WORKERS];
  int fds[WORKERS];
  for (unsigned i = 0; i < WORKERS; i++) {
    fds[i] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    workers[i] = (struct worker){ .source.ready = source_ready, .begin = raise_event };
    engine_lock(engine);
    assert_int_equal(engine_watch(engine, &workers[i].source, fds[i], EPOLLIN), 0);
    engine_unlock(engine);
  }
  run_workers(workers);
  for (unsigned i = 0; i < WORKERS; i++) {
    engine_lock(engine);
    engine_unwatch(engine, &workers[i].source);
    engine_unlock(engine);
    close(fds[i]);
  }
}

/* What follows from the events of several sources is done once, when all of them were told. */
static struct engine_deferred answer;
static unsigned told, told_before[2], answers;

static void tell(struct engine_source *source, uint32_t events) {
  (void)source;
  (void)events;
  told++;
  engine_defer(engine, &answer);
}

static void give_answer(struct engine_deferred *deferred) {
  assert_ptr_equal(deferred, &answer);
  told_before[answers++ % 2] = told;
}

TEST(events_of_several_are_answered_once, by_pollers) {
  struct engine_source sources[3] = { 0 };
  int fds[3];
  answer = (struct engine_deferred){ .run = give_answer };
  told = answers = 0;
  engine_lock(engine);
  for (unsigned i = 0; i < 3; i++) {
    fds[i] = eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC);
    sources[i].ready = tell;
    assert_int_equal(engine_watch(engine, &sources[i], fds[i], EPOLLIN), 0);
  }
  assert_true(engine_poll(engine));
  assert_int_equal(answers, 1);
  assert_int_equal(told_before[0], 3);
  engine_defer(engine, &answer); /* who polls soon after another only does what is left */
  engine_poll_if_due(engine, false, clock_now_ns());
  assert_int_equal(answers, 2);
  engine_defer(engine, &answer);
  engine_cancel(&answer);
  engine_run_deferred(engine);
  assert_int_equal(answers, 2);
  for (unsigned i = 0; i < 3; i++) {
    engine_unwatch(engine, &sources[i]);
    close(fds[i]);
  }
  engine_unlock(engine);
}

/* ---- messages ---- */

enum { PAIRS = 3, MESSAGES = 400, ASKS = 2 };

struct driver {
  struct pair_end end;
  unsigned asks;  /* since it posted: what is posted goes out once it was asked for so often */
  unsigned looks; /* in vain, without polling */
  pthread_t thread;
};

/* Threads that do nothing but yield can keep ksoftirqd, and so all packets, from a CPU. */
static void look_away(struct driver *driver) {
  if (++driver->looks % 256 == 0) {
    usleep(100);
  } else {
    sched_yield();
  }
}

/* Inline, it takes the thread 200 ms to take over from an end that does not poll. */
static bool does_poll(const struct pair_end *end) {
  return engine_is_polled(engine) ? end->done % 64 > 0 : end->done / 16 % 2;
}

/* Drives one end as NCCL does, but at times only looks whether something has come. */
static void *drive_end(void *argument) {
  struct driver *driver = argument;
  struct pair_end *end = &driver->end;
  uint64_t until_ns = clock_now_ns() + 6 * PATIENCE_NS;
  while (end->done < MESSAGES && !end->wrong[0] && !atomic_load(&is_stuck)) {
    uint64_t posted = end->posted, done = end->done;
    pair_end_post(end);
    driver->asks = end->posted > posted ? 0 : driver->asks;
    if (done < end->posted && driver->asks >= ASKS && !does_poll(end) &&
        !connection_is_done(end->requests[done % PAIR_DEPTH])) {
      look_away(driver);
    } else {
      driver->asks++;
      pair_end_test(end);
    }
    if (clock_now_ns() > until_ns) {
      atomic_store(&is_stuck, true);
    }
    if (end->posted + end->done == posted + done) {
      usleep(20); /* eight that spin have two processors here */
    }
  }
  return NULL;
}

IN_BOTH_MODES(messages_arrive) {
  static const size_t sizes[] = { 8, 0, 5000, 300000, 30000, 140000, 1 };
  enum { KINDS = sizeof sizes / sizeof *sizes };
  struct pair pairs[PAIRS];
  static struct driver drivers[2 * PAIRS];
  for (unsigned i = 0; i < 2 * PAIRS; i++) {
    struct pair *pair = &pairs[i / 2];
    *pair = i % 2 ? *pair : pair_make(AF_INET);
    drivers[i] = (struct driver){ .asks = 0 };
    pair_end_start(&drivers[i].end, i % 2 ? pair->receiver : pair->sender, sizes, KINDS, MESSAGES);
  }
  for (unsigned i = 0; i < 2 * PAIRS; i++) {
    assert_int_equal(pthread_create(&drivers[i].thread, NULL, drive_end, &drivers[i]), 0);
  }
  for (unsigned i = 0; i < 2 * PAIRS; i++) {
    pthread_join(drivers[i].thread, NULL);
  }
  for (unsigned i = 0; i < 2 * PAIRS; i++) {
    assert_string_equal(drivers[i].end.wrong, "");
  }
  assert_false(atomic_load(&is_stuck));
  for (unsigned i = 0; i < 2 * PAIRS; i++) {
    pair_end_stop(&drivers[i].end);
  }
  for (unsigned i = 0; i < PAIRS; i++) {
    pair_close(pairs[i]);
  }
}

/* ---- which engines there are ---- */

static uint64_t thread_cpu_ns(void) {
  struct timespec time;
  assert_int_equal(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time), 0);
  return (uint64_t)time.tv_sec * NS_PER_S + (uint64_t)time.tv_nsec;
}

/* Polls in vain for so long; the part of the time that this thread used a processor, in percent. */
static uint64_t poll_in_vain(struct request *request, uint64_t for_ns) {
  uint64_t began_ns = clock_now_ns(), cpu_ns = thread_cpu_ns();
  bool is_done;
  size_t bytes;
  do {
    assert_int_equal(plugin_test(request, &is_done, &bytes), 0);
    assert_false(is_done);
  } while (clock_now_ns() < began_ns + for_ns);
  return (thread_cpu_ns() - cpu_ns) * 100 / (clock_now_ns() - began_ns);
}

/* A peer that takes its time costs a processor for half a second only, and is not answered late. */
IN_BOTH_MODES(idle_waiters_sleep) {
  static uint8_t in[64], out[64] = { 1, 2, 3 };
  struct pair pair = pair_make(AF_INET);
  struct request *receive = pair_post(pair.receiver, in, sizeof in);
  poll_in_vain(receive, 600 * NS_PER_MS);
  assert_in_range(poll_in_vain(receive, 300 * NS_PER_MS), 0, 60);
  struct request *send = pair_post(pair.sender, out, sizeof out);
  assert_int_equal(pair_wait(send) | pair_wait(receive), 0);
  assert_memory_equal(in, out, sizeof in);
  pair_close(pair);
}

TEST(uses_go_round_robin, by_pollers) {
  (void)state; /* set_up has taken the first turn of ENGINE_DIALS */
  struct nic nic = pair_loopback(AF_INET), other = nic;
  struct engine *engines[5];
  strcpy(other.name, "other0");
  assert_int_equal(engine_get(&nic, ENGINE_LISTENS, &engines[0]), 0);
  assert_int_equal(engine_get(&nic, ENGINE_LISTENS, &engines[1]), 0);
  assert_int_equal(engine_get(&nic, ENGINE_DIALS, &engines[2]), 0);
  assert_int_equal(engine_get(&nic, ENGINE_LISTENS, &engines[3]), 0);
  assert_int_equal(engine_get(&other, ENGINE_LISTENS, &engines[4]), 0);
  assert_ptr_equal(engines[0], engine);
  assert_ptr_equal(engines[3], engine);
  assert_ptr_equal(engines[1], engines[2]);
  assert_ptr_not_equal(engines[1], engine);
  assert_int_equal(engine_shard(engines[0]), 0);
  assert_int_equal(engine_shard(engines[1]), 1);
  assert_int_equal(engine_shard(engines[4]), 0);
  assert_ptr_not_equal(engines[4], engine);
}

/* A container that allows few threads leaves them to NCCL. */
TEST(few_threads_make_one_engine, by_pollers) {
  struct nic nic = pair_loopback(AF_INET);
  struct tree tree;
  struct engine *engines[2];
  log_capture_start();
  tree_create(&tree);
  tree_write(&tree, "proc/self/cgroup", "0::/pod\n");
  tree_write(&tree, "sys/fs/cgroup/pod/pids.max", "70\n");
  tree_write(&tree, "sys/fs/cgroup/pod/pids.current", "6\n");
  sysfs_process_root = tree.root;
  param_load((char *[]){ "STRATUS_THREADS=2", NULL });
  for (int i = 0; i < 2; i++) {
    assert_int_equal(engine_get(&nic, ENGINE_LISTENS, &engines[i]), 0);
    assert_ptr_equal(engines[i], engine);
  }
  assert_int_equal(log_capture_find("pids.max of /sys/fs/cgroup/pod is 70, of which 6 are used"),
                   1);
  tree_write(&tree, "sys/fs/cgroup/pod/pids.max", "71\n");
  assert_int_equal(engine_get(&nic, ENGINE_LISTENS, &engines[0]), 0);
  assert_int_equal(engine_get(&nic, ENGINE_LISTENS, &engines[1]), 0);
  assert_int_not_equal(engine_shard(engines[0]), engine_shard(engines[1]));
  tree_remove(&tree);
}

UNIT_TEST(numbers_of_engines) {
  assert_int_equal(progress_mode_engines(1, 1), 1);
  assert_int_equal(progress_mode_engines(7, 1), 1);
  assert_int_equal(progress_mode_engines(8, 1), 2);
  assert_int_equal(progress_mode_engines(31, 1), 2);
  assert_int_equal(progress_mode_engines(32, 1), 4);
  assert_int_equal(progress_mode_engines(192, 2), 2);
  assert_int_equal(progress_mode_engines(192, 3), 1);
  assert_int_equal(progress_mode_engines(192, 8), 1);
}

UNIT_TEST(auto_needs_cpus) {
  assert_int_equal(progress_mode_choose(2, 1), PROGRESS_INLINE);
  assert_int_equal(progress_mode_choose(3, 1), PROGRESS_INLINE);
  assert_int_equal(progress_mode_choose(4, 1), PROGRESS_THREAD);
  assert_int_equal(progress_mode_choose(4, 2), PROGRESS_THREAD);
  assert_int_equal(progress_mode_choose(4, 3), PROGRESS_INLINE);
  assert_int_equal(progress_mode_choose(5, 4), PROGRESS_INLINE);
}
