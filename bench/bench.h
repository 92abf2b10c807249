/* SPDX-License-Identifier: MIT */
/* `skua bench`: workloads on the public interface, each run several times.
 *
 * A workload is a function that makes a runtime, runs once, checks that the result is right and
 * says how long it took. They stand in files by subject: workloads.c lists them all. */
#ifndef SKUA_BENCH_H
#define SKUA_BENCH_H

#include <skua/skua.h>
#include <stdatomic.h>

#define MILLION 1000000u

/* The largest number for --size. */
#define LARGEST_SIZE (10 * MILLION)

/* What one run has to say. Zero: it does not. */
struct measurement {
    double value;            /* in the workload's unit; what runs are compared by */
    uint64_t ops;            /* what was done */
    uint64_t elapsed_ns;     /* and how long it took */
    uint64_t resident_bytes; /* of the program, before the runtime was stopped */
    skua_stats stats;        /* of its runtime, at the same moment */
    double bytes_per_process;
    double beyond_ns; /* for each, beyond what the same takes without the feature */
    double cpu_s;     /* user and system time of all threads */
    double late_p50_us;
    double late_p99_us;
    double p50_us;
    double p99_us;
    double times_futex;  /* its p50, as a multiple of that of a bare futex in the same run */
    bool counts_wakeups; /* the value is how many there were */
    double p50_ms;
    double p99_ms;
    double p999_ms;
    double max_ms;
    bool counts_steps;        /* of others; then 0 is worth telling, too: */
    double steps_between_p50; /* from one beat to the next */
    double steps_between_p99;
    double steps_per_second;
    double throughput_share; /* of what they reach alone in the same run */
    char note[160];          /* for people; otherwise counters are printed */
};

/* A workload that can grow has a size: how many processes, timers or messages there are at once. */
struct workload {
    const char *name;
    const char *unit;
    const char *about;
    struct measurement (*run)(uint32_t workers); /* null if it has a size */
    uint32_t size;                               /* unless --size names another; 0: it has none */
    struct measurement (*run_sized)(uint32_t workers, uint32_t size);
};

/* workloads.c: all of them, ended by one without a name. */
extern const struct workload workloads[];

/* command.c: the command; returns the exit status. */
int bench_command(int argc, char **argv);

/* ---- support.c ---- */

uint64_t now_ns(void);
double cpu_seconds(void);

/* Ends the program with a message unless `error` is 0, or the result is right. */
void expect_ok(int error, const char *what);
void expect_right(bool right, const char *what);

skua_runtime *bench_create(uint32_t workers);

/* Creates and starts one. */
skua_runtime *bench_start(uint32_t workers);

/* Runs a root process to its end and returns its result; that may be null. Returns the nanoseconds
 * that took. */
uint64_t bench_run(skua_runtime *runtime, const skua_process_type *type, const char *method,
                   uint64_t *result);

/* The same for a root process whose result says how many operations it has made, which are `ops`;
 * `what` they are is for the message if not. Stops and destroys the runtime. */
struct measurement bench_run_counted(skua_runtime *runtime, const skua_process_type *type,
                                     const char *method, uint64_t ops, const char *what);

/* The step of a process that only exists, and the type of one. */
int bench_idle(void *self, skua_context *ctx, skua_event *events, size_t count);
extern const skua_process_type bench_idler_type;

/* As bench_run, with the size as the only input. */
uint64_t bench_run_sized(skua_runtime *runtime, const skua_process_type *type, uint32_t size,
                         uint64_t *result);

/* How often a small workload is repeated within one run, so that a million operations are timed. */
uint32_t bench_rounds(uint32_t size);

/* Stops and destroys the runtime after `ops` operations in `elapsed_ns`, which are the value. */
struct measurement bench_finish(skua_runtime *runtime, uint64_t ops, uint64_t elapsed_ns);

void bench_sleep(long ns);

/* Starts a process without inputs. */
void bench_submit_one(skua_runtime *runtime, const skua_process_type *type);

/* Waits until processes have counted to `value`. */
void bench_wait_for(atomic_uint *counter, uint32_t value);

/* Waits until no process is alive; so many must have ended. */
void bench_wait_until_empty(skua_runtime *runtime, uint64_t processes);

uint64_t bench_resident_bytes(void);

/* Context switches of all threads but the calling one. */
uint64_t bench_context_switches(void);

/* Whether this is the first step of a process. */
static inline bool bench_starts(const skua_event *events)
{
    return events[0].type == SKUA_EVENT_START;
}

/* How many of the events are not START. */
static inline size_t bench_count(const skua_event *events, size_t count)
{
    return bench_starts(events) ? count - 1 : count;
}

/* Fixed work: it takes as long as there are turns, and looks at no clock. */
void bench_compute(uint64_t turns);

/* How many turns take so long on a CPU that has nothing else to do; measured once. */
uint64_t bench_turns(uint64_t ns);

/* A count that processes on all workers add to: each thread has its own part, as one counter for
 * all would cost more than what is counted. Cleared while no worker runs. */
void tally_add(void);
uint64_t tally_sum(void);
void tally_clear(void);

/* ---- samples.c ---- */

struct samples {
    uint32_t *values; /* nanoseconds or microseconds, up to 4 billion */
    atomic_uint count;
    uint32_t capacity;
};

void samples_init(struct samples *samples, uint32_t capacity);
void samples_free(struct samples *samples);

/* Any thread may add. Returns how many there were before. */
uint32_t samples_add(struct samples *samples, uint64_t value);

/* The value below which so many of a thousand are: 500 for the median, 1000 for the largest. For
 * when nobody adds any more; 0 if nobody has. */
uint32_t samples_at(struct samples *samples, uint32_t permille);

/* ---- heart.c: a process that beats a thousand times a second ---- */

/* Returns when it has begun to beat. */
void heart_start(skua_runtime *runtime);

/* Lets it end with its next beat, and waits for that. Returns how late it was at most, in
 * milliseconds. */
double heart_stop(void);

/* How often it has beaten. */
uint32_t heart_beats(void);

/* ---- the workloads, by file ---- */

/* processes.c: starting and ending them. */
struct measurement bench_spawn(uint32_t workers);
struct measurement bench_spawn_burst(uint32_t workers, uint32_t size);
struct measurement bench_crowd(uint32_t workers, uint32_t size);
struct measurement bench_submit(uint32_t workers);
struct measurement bench_skynet(uint32_t workers);
struct measurement bench_fib(uint32_t workers);
struct measurement bench_steal(uint32_t workers);

/* messages.c: talking. */
struct measurement bench_pingpong(uint32_t workers);
struct measurement bench_pairs(uint32_t workers);
struct measurement bench_ring(uint32_t workers);
struct measurement bench_ring100(uint32_t workers);
struct measurement bench_fanin(uint32_t workers);
struct measurement bench_fanout(uint32_t workers);
struct measurement bench_backlog(uint32_t workers, uint32_t size);
struct measurement bench_yield(uint32_t workers);

/* relations.c: asking each other, and hearing of each other's end. */
struct measurement bench_task_pingpong(uint32_t workers);
struct measurement bench_task_serve(uint32_t workers);
struct measurement bench_task_spawn(uint32_t workers);
struct measurement bench_task_memory(uint32_t workers, uint32_t size);
struct measurement bench_call(uint32_t workers);
struct measurement bench_call_timeout(uint32_t workers);
struct measurement bench_monitor(uint32_t workers);
struct measurement bench_monitor_storm(uint32_t workers, uint32_t size);
struct measurement bench_link_storm(uint32_t workers, uint32_t size);

/* groups.c: one message to many. */
struct measurement bench_publish(uint32_t workers, uint32_t size);
/* supervising.c */
struct measurement bench_restart(uint32_t workers);
struct measurement bench_stop_children(uint32_t workers, uint32_t size);

/* naming.c: finding processes. */
struct measurement bench_name_find(uint32_t workers);
struct measurement bench_name_number(uint32_t workers);

/* cancelling.c: taking back. */
struct measurement bench_upgrade(uint32_t workers, uint32_t size);
struct measurement bench_cancel(uint32_t workers, uint32_t size);

/* idle.c: what it costs to have nothing to do. */
struct measurement bench_idle_memory(uint32_t workers, uint32_t size);
struct measurement bench_idle_cpu(uint32_t workers);
struct measurement bench_idle_sources(uint32_t workers);
struct measurement bench_after_burst(uint32_t workers);

/* waking.c: by timers and messages, and in place of stuck workers. */
struct measurement bench_timers(uint32_t workers, uint32_t size);
struct measurement bench_wake(uint32_t workers);
struct measurement bench_stuck(uint32_t workers);

/* latency.c: beside processes that compute. */
struct measurement bench_heartbeat_long(uint32_t workers);
struct measurement bench_heartbeat(uint32_t workers);
struct measurement bench_heartbeat_short(uint32_t workers);
struct measurement bench_child_latency(uint32_t workers);

/* stopping.c: a runtime, on a busy machine. */
struct measurement bench_stop(uint32_t workers);

/* bursts.c */
struct measurement bench_burst_timers(uint32_t workers, uint32_t size);
struct measurement bench_burst_overload(uint32_t workers, uint32_t size);
struct measurement bench_burst_exit(uint32_t workers, uint32_t size);
struct measurement bench_burst_spawn(uint32_t workers, uint32_t size);

#endif
