/* SPDX-License-Identifier: MIT */
/* Processes that wait for descriptors.
 *
 *   TEST(byte_ends_the_wait_of_a_reader)
 *   {
 *       world_open();
 *       const struct ends pipe = pipe_open();
 *       struct actor *reader = reader_start(pipe.near);
 *       write_byte(pipe.far);
 *       assert_wait_ends(reader, 0);
 *   }
 *
 * All but the acts is for the thread of the test. */
#ifndef SKUA_TESTS_WAITS_H
#define SKUA_TESTS_WAITS_H

#include "actor.h"
#include "descriptors.h"

/* ---- acts ---- */

struct act waits_readable(uint64_t tag, int fd);
struct act waits_writable(uint64_t tag, int fd);

/* Reads or writes a byte; waits first if it has to. */
struct act reads(int fd);
struct act writes(int fd);
/* Reads the end of the file, likewise. */
struct act reads_end(int fd);

/* Reads whatever comes, a number from an eventfd as well, until a wait ends with this error. */
struct act reads_until(int fd, int error);

/* ---- processes that wait ---- */

/* Waits for the descriptor once, and rests after that. They return when the process waits. */
struct actor *reader_start(int fd);
struct actor *writer_start(int fd);

/* One of the two. */
struct actor *waiter_start(int fd, bool writes);

/* The end of such a wait: there is no payload. */
struct seen wait_end(int error);

/* Waits until the process has been told exactly this, and nothing else so far. */
void assert_wait_ends(struct actor *actor, int error);

/* That it still waits, after so many events. */
void assert_waits(struct actor *actor, uint64_t events);

/* A process of its own waits; it returns how the wait ended. */
int wait_readable(int fd);
int wait_writable(int fd);

/* ---- the poller of the current runtime ---- */

/* How many descriptors are waited for. */
uint32_t waited_for(void);

/* Until it has dealt with all that was ready before. Costs one completion that counts as ready. */
void let_poller_catch_up(void);

/* The check for closed descriptors, which otherwise runs every ten seconds. Returns when it wants
 * to be called again, if now is 1. */
uint64_t check_descriptors(void);

#endif
