/* SPDX-License-Identifier: MIT */
/* Names follow Prometheus: a prefix for the program, the unit, _total for counters, and base units:
 * seconds and bytes. */
#include "inspect/metrics.h"

#include <inttypes.h>
#include <skua/version.h>

#include "inspect/text.h"
#include "inspect/worker_view.h"
#include "net/sockets.h"
#include "sched/stats.h"

enum unit {
    PLAIN,       /* a count, or bytes */
    NANOSECONDS, /* shown as seconds */
};

/* How each counter of SKUA_STATS_MAP is shown. A counter without a line here does not compile. */
#define METRIC_spawned         "skua_spawned_total", PLAIN, "Processes made visible."
#define METRIC_finished        "skua_finished_total", PLAIN, "Processes ended and closed."
#define METRIC_messages        "skua_messages_total", PLAIN, "Messages accepted."
#define METRIC_steps           "skua_steps_total", PLAIN, "Calls of a step function."
#define METRIC_next_pops       "skua_next_pops_total", PLAIN, "Processes from the next slot."
#define METRIC_local_pops      "skua_local_pops_total", PLAIN, "Processes from the own deque."
#define METRIC_global_pops     "skua_global_pops_total", PLAIN, "Processes from shared queues."
#define METRIC_steal_attempts  "skua_steal_attempts_total", PLAIN, "Deques looked at as a thief."
#define METRIC_steal_successes "skua_steal_successes_total", PLAIN, "Looks that brought something."
#define METRIC_stolen          "skua_stolen_total", PLAIN, "Processes stolen from other workers."
#define METRIC_spills          "skua_spills_total", PLAIN, "Times half of a full deque was spilled."
#define METRIC_parks           "skua_parks_total", PLAIN, "Times the worker went to sleep."
#define METRIC_wakes           "skua_wakes_total", PLAIN, "Times a sleeping worker was woken."
#define METRIC_searching_ns                                                                        \
    "skua_searching_seconds_total", NANOSECONDS, "Time spent looking for work."
#define METRIC_cpu_ns "skua_cpu_seconds_total", NANOSECONDS, "CPU time of the worker's thread."
#define METRIC_late_completions                                                                    \
    "skua_late_completions_total", PLAIN, "Completions that came too late or twice."
#define METRIC_timers "skua_timers_total", PLAIN, "Timers, ticks and deadlines that fired."
#define METRIC_polls  "skua_polls_total", PLAIN, "Looks at the descriptors that are waited for."
#define METRIC_ready  "skua_ready_total", PLAIN, "Waits for a descriptor that was then ready."
#define METRIC_stalls "skua_stalls_total", PLAIN, "Steps found to run longer than the limit."
#define METRIC_spares "skua_spares_total", PLAIN, "Times a spare worker stepped in for another."
#define METRIC_trimmed_bytes                                                                       \
    "skua_trimmed_bytes_total", PLAIN, "Memory given back to the system after a burst."
#define METRIC_calls   "skua_calls_total", PLAIN, "Calls accepted by the processes called."
#define METRIC_notices "skua_notices_total", PLAIN, "Ends of processes that others were told of."

#define METRIC_accepted       "skua_accepted_total", PLAIN, "Connections accepted."
#define METRIC_connected      "skua_connected_total", PLAIN, "Connections made to others."
#define METRIC_received_bytes "skua_received_bytes_total", PLAIN, "Bytes received by sockets."
#define METRIC_upgrades       "skua_upgrades_total", PLAIN, "Times a process changed its type."
#define METRIC_upgrade_failures                                                                    \
    "skua_upgrade_failures_total", PLAIN, "Times a process could not change its type."
#define METRIC_restarts "skua_restarts_total", PLAIN, "Times a supervisor started a child again."
#define METRIC_give_ups "skua_give_ups_total", PLAIN, "Supervisors that ended over that."
#define METRIC_held_back                                                                           \
    "skua_held_back_total", PLAIN, "Times a process rested because a receiver could not keep up."
#define METRIC_sent_bytes "skua_sent_bytes_total", PLAIN, "Bytes sent by sockets."

#define METRIC_dead_unread                                                                         \
    "skua_dead_unread_total", PLAIN, "Messages whose receiver ended before it got them."
#define METRIC_dead_new                                                                            \
    "skua_dead_new_total", PLAIN, "Messages dropped because the mailbox was full."
#define METRIC_dead_old                                                                            \
    "skua_dead_old_total", PLAIN, "Messages dropped to make room for newer ones."

struct counter {
    size_t offset; /* in struct counters */
    const char *name;
    enum unit unit;
    const char *help;
};

#define COUNTER(name) {offsetof(struct counters, name), METRIC_##name},
static const struct counter counters[] = {SKUA_STATS_MAP(COUNTER)};
#undef COUNTER

static void begin_family(struct text *text, const char *name, const char *type, const char *help)
{
    text_add(text, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void add_value(struct text *text, enum unit unit, uint64_t value)
{
    if (unit == NANOSECONDS) {
        text_add(text, " %" PRIu64 ".%09" PRIu64 "\n", value / 1000000000, value % 1000000000);
    } else {
        text_add(text, " %" PRIu64 "\n", value);
    }
}

/* A gauge without labels. */
static void add_gauge(struct text *text, const char *name, const char *help, enum unit unit,
                      uint64_t value)
{
    begin_family(text, name, "gauge", help);
    text_add(text, "%s", name);
    add_value(text, unit, value);
}

static void add_build_info(struct text *text)
{
    begin_family(text, "skua_build_info", "gauge", "The version of the library; always 1.");
    text_add(text, "skua_build_info{version=");
    text_add_quoted(text, skua_version());
    text_add(text, "} 1\n");
}

/* A counter without labels. */
static void add_count(struct text *text, const char *name, const char *help, uint64_t value)
{
    begin_family(text, name, "counter", help);
    text_add(text, "%s", name);
    add_value(text, PLAIN, value);
}

static void add_sockets(struct text *text, struct scheduler *sched)
{
    const struct sockets_total total = sockets_count(sched->sockets);
    add_gauge(text, "skua_sockets", "Sockets that are open, those that linger included.", PLAIN,
              total.open);
    add_gauge(text, "skua_sockets_lingering",
              "Sockets that were closed and still write what was queued.", PLAIN, total.lingering);
    add_count(text, "skua_turned_away_total",
              "Connections turned away for lack of descriptors or memory.", total.turned_away);
}

static void add_workers(struct text *text, struct scheduler *sched, uint32_t count)
{
    const uint32_t spares = count - sched->worker_count;
    begin_family(text, "skua_workers", "gauge",
                 "Workers, and spare ones that have been started so far.");
    text_add(text, "skua_workers{kind=\"worker\"} %" PRIu32 "\n", sched->worker_count);
    text_add(text, "skua_workers{kind=\"spare\"} %" PRIu32 "\n", spares);
}

static void add_queues(struct text *text, struct scheduler *sched, uint32_t count)
{
    begin_family(text, "skua_worker_queue_length", "gauge",
                 "Processes that wait in the worker's deque and next slot.");
    for (uint32_t i = 0; i < count; i++) {
        text_add(text, "skua_worker_queue_length{worker=\"%" PRIu32 "\"} %" PRIu32 "\n", i,
                 worker_view_queue_length(&sched->workers[i]));
    }
}

static uint64_t read_counter(struct counters *stats, const struct counter *counter)
{
    return load_relaxed((atomic_u64 *)(void *)((char *)stats + counter->offset)); /* statistic */
}

static void add_counter(struct text *text, struct scheduler *sched, uint32_t count,
                        const struct counter *counter)
{
    begin_family(text, counter->name, "counter", counter->help);
    for (uint32_t i = 0; i < count; i++) {
        text_add(text, "%s{worker=\"%" PRIu32 "\"}", counter->name, i);
        add_value(text, counter->unit, read_counter(&sched->workers[i].stats, counter));
    }
    text_add(text, "%s{worker=\"outside\"}", counter->name);
    add_value(text, counter->unit, read_counter(&sched->outside.stats, counter));
}

int metrics_format(struct scheduler *sched, char *text, size_t size)
{
    struct text out = {.at = text, .size = size};
    const uint32_t count = stats_worker_count(sched);
    const uint32_t waits = load_relaxed(&sched->poll.waits); /* a snapshot */
    stats_update_cpu(sched);
    add_build_info(&out);
    add_gauge(&out, "skua_runtime_age_seconds", "Time since the runtime was created.", NANOSECONDS,
              account_now(&sched->account) - sched->account.created);
    add_gauge(&out, "skua_processes", "Processes alive.", PLAIN, stats_live(sched));
    add_gauge(&out, "skua_process_limit", "Processes that may be alive at once.", PLAIN,
              sched->config.process_limit);
    add_gauge(&out, "skua_descriptors_waiting", "Descriptors that are waited for.", PLAIN, waits);
    add_sockets(&out, sched);
    add_workers(&out, sched, count);
    add_queues(&out, sched, count);
    for (size_t i = 0; i < sizeof counters / sizeof counters[0]; i++) {
        add_counter(&out, sched, count, &counters[i]);
    }
    return (int)out.length;
}
