/* SPDX-License-Identifier: MIT */
/* sched/checkpoint.h: a worker counts down to its next checkpoint while the monitor asks for one.
 *
 * INV-16: a worker makes at most PICKS_MAX picks from one checkpoint to the next, whatever the
 *         monitor stores, and whenever: the count never grows in between. What the monitor asks for
 *         between two picks comes before the next. */
#include <stdlib.h>

#include "explore.h"
#include "nothing_due.h"
#include "rig.h"
#include "sched/checkpoint.h"

static struct scheduler sched;
static struct worker worker;
EXPLORE_OWN static uint32_t picks;       /* since the last checkpoint */
EXPLORE_OWN static uint32_t checkpoints; /* so far */

static void pick(void)
{
    if (checkpoint_is_due(&worker)) {
        (void)checkpoint(&worker);
        checkpoints++;
        picks = 0;
        explore_note("has a checkpoint and %u picks", worker.picks_granted);
    }
    picks++;
    EXPLORE_CHECK(picks <= PICKS_MAX, "INV-16: a checkpoint comes after so many picks");
}

/* A worker with short picks (s) and long ones (l). */
static void run_owner(const void *program)
{
    for (const char *at = program; *at != '\0'; at++) {
        const uint32_t before = load_relaxed(&worker.picks_left);
        const uint32_t passed = checkpoints;
        pick();
        EXPLORE_CHECK(passed != checkpoints || load_relaxed(&worker.picks_left) < before ||
                          load_relaxed(&worker.picks_left) == 1,
                      "INV-16: the count does not grow");
        rig_now += *at == 'l' ? UINT64_C(1000000) : 100;
    }
}

static void run_monitor(const void *count)
{
    for (int i = 0; i < atoi(count); i++) {
        checkpoint_hasten(&worker);
    }
}

static void setup(void)
{
    rig_init_scheduler(&sched, &worker, 1, 1);
    explore_heed(&worker.picks_left);
    store_relaxed(&worker.picks_left, 1);
    picks = checkpoints = 0;
}

/* The worker picks no more, so nothing is lost. */
static void finish(void)
{
    const uint32_t before = checkpoints;
    checkpoint_hasten(&worker);
    pick();
    EXPLORE_CHECK(checkpoints == before + 1, "INV-16: the monitor is heard");
}

#define OWNER(program) EXPLORE_THREAD("owner", run_owner, program)
#define MONITOR(count) EXPLORE_THREAD("monitor", run_monitor, count)

#define MODEL(name_, ...)                                                                          \
    {                                                                                              \
        .name = name_, .mode = EXPLORE_ALL, .stale = UINT32_MAX, .setup = setup,                   \
        .threads = {__VA_ARGS__}, .finish = finish,                                                \
    }

static const struct explore_model models[] = {
    MODEL("alone", OWNER("ssssssssssssssssss")),
    MODEL("hastened", OWNER("ssssssssss"), MONITOR("1")),
    MODEL("hastened_again", OWNER("sslsss"), MONITOR("3")),
};

EXPLORE_MAIN(models)
