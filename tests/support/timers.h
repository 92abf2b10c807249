/* SPDX-License-Identifier: MIT */
/* The timers of a world in virtual time (world.h): when they fire, how many are armed, and until
 * when the idle workers wait. */
#ifndef SKUA_TESTS_TIMERS_H
#define SKUA_TESTS_TIMERS_H

#include "actor.h"

#include <skua/clock.h>

#define START       WORLD_START
#define MICROSECOND SKUA_MICROSECOND
#define MILLISECOND SKUA_MILLISECOND
#define SECOND      SKUA_SECOND
#define HOUR        (3600 * SKUA_SECOND)
#define RESOLUTION  SKUA_CLOCK_RESOLUTION_NS

/* When a timer fires that is due at `instant`: at the end of its span of the resolution. */
uint64_t firing_time(uint64_t instant);

/* Timers, tickers and deadlines that are armed, with all workers or with one. */
uint32_t timers_armed(void);
uint32_t timers_armed_with(uint32_t worker);

/* Those that have fired so far. */
uint64_t timers_fired(void);

/* Event nodes in use, in a world that has settled: the same number before and after means that
 * none was lost. */
uint64_t nodes_in_use(void);

/* Until all have done what they were told, in a simulated world, too; timers that are not due for a
 * second are not due yet. */
void await_before_timers(void);

/* Lets a worker look at its timers, in every way it has, without moving the clock. Some timer has
 * to be armed. */
void look_at_timers(void);

/* Waits until a worker waits for `instant`, moves the clock there, and returns when a timer has
 * fired. For tests that hold a step. */
void advance_until_fired(uint64_t instant);

/* That an idle worker waits until this instant; SKUA_FOREVER: only for sources. */
void assert_waits_until(uint64_t instant);

/* That no worker is in the poller. */
void assert_nobody_waits(void);

/* That only new work will wake a worker: one whose last timer went away while it waited may stay
 * in the poller. */
void assert_waits_for_nothing(void);

#endif
