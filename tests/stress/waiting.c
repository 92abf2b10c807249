/* SPDX-License-Identifier: MIT */
#include "waiting.h"

#include <signal.h>
#include <string.h>

#include "channels.h"
#include "runtime/runtime.h" /* to see who is waited for */
#include "stress_round.h"

#define PROCESS_LIMIT_MAX 500
#define STALLS_MAX        4
/* Less than the watchdog's, and than the period of the check that finds descriptors which were
 * closed behind the runtime's back: that must not make up for a wait that was lost. */
#define HANG_NS UINT64_C(8000000000)

static const struct waiting *waiting;

/* ---- a round ---- */

static void on_exit_of_process(void *arg, skua_exit *end)
{
    (void)arg;
    stress_tally(TALLY_EXITS);
    stress_expect(end->type == &sleeper_type, "type of an exit", 0);
    stress_expect(end->error == 0 || end->error == STRESS_ERROR_STEP ||
                      end->error == SKUA_E_TERMINATED,
                  "error of an exit", end->error);
}

static void on_stall(void *arg, const skua_stall *seen)
{
    (void)arg;
    stress_tally(TALLY_STALLS_SEEN);
    /* It may have ended just now. */
    stress_expect(seen->type_name == sleeper_type.name || strcmp(seen->type_name, "?") == 0,
                  "type of a stall, on worker", seen->worker);
    stress_expect(seen->elapsed_ns >= current.config.stall_limit_ns, "a stall of ns",
                  (int64_t)seen->elapsed_ns);
    uint64_t random = random_mix(seen->pid.bits + seen->elapsed_ns);
    if (once_in(&random, 2)) {
        send_from_outside(&random);
    }
    if (once_in(&random, 4)) {
        const int error = skua_process_terminate(current.runtime, seen->pid);
        stress_expect(error == 0 || error == SKUA_E_NO_PROCESS, "terminating a stuck process",
                      error);
    }
}

static void configure(uint64_t *random, skua_runtime_config *config)
{
    static const uint32_t worker_counts[] = {1, 2, 2, 3, 4};
    static const uint32_t spare_limits[] = {1, 2, 8, 32};
    config->worker_count = worker_counts[random_below(random, COUNT_OF(worker_counts))];
    config->process_limit = 50 + random_below(random, PROCESS_LIMIT_MAX - 50);
    config->mailbox_limit = 4 + random_below(random, 100);
    config->on_exit = on_exit_of_process;
    config->spare_limit = spare_limits[random_below(random, COUNT_OF(spare_limits))];
    config->stall_limit_ns = (once_in(random, 4) ? 1 : 10) * SKUA_MILLISECOND;
    config->on_stall = on_stall;
    config->stall_signal = once_in(random, 4) ? SIGUSR1 : 0;
}

static void prepare(uint64_t *random)
{
    sleepers_begin(&waiting->sleepers, random_below(random, STALLS_MAX));
    register_commands();
    register_pools(random);
    open_channels(random);
}

static void outsider_act(struct stress_outsider *outsider)
{
    uint64_t *random = &outsider->random;
    switch (random_below(random, 16)) {
    case 0:
        (void)stress_wait(stress_random_pid(random), random_below(random, 50000));
        break;
    case 1:
        stress_read_statistics();
        break;
    case 2:
    case 3:
        stress_end_some(random, once_in(random, 2));
        break;
    case 4:
    case 5:
    case 6:
        if (waiting->sleepers.uses_channels) {
            use_channel(random);
        }
        break;
    case 7:
    case 8:
        send_from_outside(random);
        break;
    default:
        submit_sleeper(random);
        break;
    }
    stress_pause(random, 2);
}

/* ---- its end ---- */

static uint64_t random_timeout(uint64_t *random)
{
    switch (random_below(random, 4)) {
    case 0:
        return random_below(random, 50 * SKUA_MILLISECOND);
    case 1:
        return random_below(random, 2 * SKUA_MILLISECOND);
    default:
        return 0;
    }
}

/* A second stop, while another is under way or already done. */
static void *stop_too(void *arg)
{
    uint64_t *random = arg;
    stress_pause(random, 2);
    const int error = skua_runtime_stop(current.runtime, random_timeout(random));
    stress_expect(error == 0 || error == SKUA_E_TIMEOUT || error == SKUA_E_STUCK, "second stop",
                  error);
    return NULL;
}

static void *close_proper_channels(void *arg)
{
    close_channels(arg, true);
    return NULL;
}

/* The channels are closed meanwhile, and sometimes another thread wants to stop, too. */
static void stop(uint64_t *random)
{
    uint64_t closer_random = random_next(random);
    uint64_t second_random = random_next(random);
    const bool has_second = !current.is_graceful && once_in(random, 4);
    const pthread_t closer = stress_start_thread(close_proper_channels, &closer_random);
    pthread_t second;
    if (has_second) {
        second = stress_start_thread(stop_too, &second_random);
    }
    stress_stop(random_timeout(random));
    if (has_second) {
        (void)pthread_join(second, NULL);
    }
    (void)pthread_join(closer, NULL);
}

/* The poller is asked for as long as somebody waits, and not longer. */
static void check_waits(skua_runtime *runtime)
{
    uint32_t waited_for = 0;
    for (uint32_t i = 0; i < runtime->net.capacity; i++) {
        waited_for += runtime->net.descriptors[i].waiters != NULL;
    }
    stress_expect_equal(STRESS_BROKEN, "descriptors that are waited for",
                        load_relaxed(&runtime->sched.poll.waits), waited_for); /* no thread */
}

static void check(const skua_stats *sum)
{
    uint64_t random = stress.seed;
    close_channels(&random, false);
    stress_expect_equal(STRESS_LOST, "completions",
                        stress_total(TALLY_COMPLETIONS) + stress_total(TALLY_ABANDONED),
                        stress_total(TALLY_YIELDS));
    /* Some functions on a pool return too late as well. */
    stress_expect(sum->late_completions >= stress_total(TALLY_LATE), "late completions",
                  (int64_t)sum->late_completions);
    check_descriptors();
    check_waits(current.runtime);
}

/* ---- the whole run ---- */

/* A very short run need not make many calls. */
static bool goes_on(void)
{
    return stress_total_before(TALLY_CALLS) < waiting->calls_min &&
           stress.ops >= waiting->calls_min / 4;
}

int waiting_main(int argc, char **argv, const struct waiting *of_program)
{
    const struct stress_plan plan = {
        .ops = of_program->ops,
        .round_ops_max = 60000,
        .graceful = 3,
        .known_pids = 128,
        .hang_ns = HANG_NS,
        .configure = configure,
        .prepare = prepare,
        .act = outsider_act,
        .stop = stop,
        .check = check,
        .goes_on = goes_on,
        .tally_names =
            {
                [TALLY_LATE] = "late completions",
                [TALLY_YIELDS] = "yields",
                [TALLY_COMPLETIONS] = "completions",
                [TALLY_ABANDONED] = "left by processes that ended",
                [TALLY_TIMED_OUT] = "timed out",
                [TALLY_CANCELLED] = "cancelled",
                [TALLY_TICKS] = "ticks",
                [TALLY_FIRED] = "timers fired",
                [TALLY_READY] = "descriptors ready",
                [TALLY_CLOSED_UNDER] = "closed while waited for",
                [TALLY_CALLS] = "calls on the pool of four",
                [TALLY_CALLS_FULL] = "refused by it",
                [TALLY_CALLS_RUN] = "run by it",
                [TALLY_BLOCKS] = "blocking steps",
                [TALLY_STALLS] = "stalls made",
                [TALLY_STALLS_SEEN] = "stalls reported",
            },
    };
    waiting = of_program;
    (void)signal(SIGPIPE, SIG_IGN);
    channels_begin();
    const int code = stress_rounds(argc, argv, &plan);
    channels_end();
    return code;
}
