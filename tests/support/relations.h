/* SPDX-License-Identifier: MIT */
/* Acts of actors that call, watch and link each other, and what they see of it.
 *
 *   struct actor *server = server_start(ACTS(expects(request(1)), answers(0, 2)));
 *   struct actor *client = actor_new(ACTS(asks(7, server, 1), expects(completion_of(7, 0, 2)),
 *                                         finishes(0)));
 *   assert_result(actor_run(client), 0); */
#ifndef SKUA_TESTS_RELATIONS_H
#define SKUA_TESTS_RELATIONS_H

#include "actor.h"

/* ---- worlds ---- */

/* For FOR_ROUNDS (driver, DRIVERS): first on threads, in virtual time; then simulated. */
#define DRIVERS 2
void world_open_driver(uint64_t driver);

/* ---- processes ---- */

/* An actor that can be called, not started yet; and a started one. */
struct actor *server_new(struct script script);
struct actor *server_start(struct script script);

/* The same for one that hears of calls that nobody waits for any more. */
struct actor *careful_server_new(struct script script);
struct actor *careful_server_start(struct script script);

/* Stands for a PID that is no actor's: that of no process, of one that has ended, of another
 * runtime. */
struct actor *stranger(skua_pid pid);
struct actor *nobody(void);
struct actor *ended_actor(void); /* in a world that has begun; waits */
struct actor *foreigner(void);

/* How the process of an actor has ended: its error, and who failed first. For the test's thread,
 * after its end. */
void assert_ended(struct actor *actor, int error);
void assert_ended_because_of(struct actor *actor, int error, const struct actor *cause);

/* ---- what an actor has seen ---- */

struct seen request(uint64_t value);
struct seen abandoned(void);
/* The completion of a call whose server has ended. */
struct seen peer_ended(uint64_t tag, int exit_error);
/* The completion of a monitor. */
struct seen end_of(uint64_t tag, const struct actor *actor, int exit_error);
/* A linked process has ended. */
struct seen exit_of(uint64_t tag, const struct actor *cause, int exit_error);

/* ---- acts ---- */

/* Calls, without a timeout unless within() or until() say so. The second on behalf of the n-th
 * request that the actor has seen, from 0. */
struct act asks(uint64_t tag, struct actor *to, uint64_t number);
struct act asks_item(uint64_t tag, struct actor *to, struct tracked *item);
struct act asks_for(uint64_t nth, uint64_t tag, struct actor *to, uint64_t number);

/* Answers the n-th request that it has seen, or passes it on. */
struct act answers(uint64_t nth, uint64_t number);
struct act answers_item(uint64_t nth, struct tracked *item);
struct act answers_error(uint64_t nth, int error);
struct act forwards(uint64_t nth, struct actor *to, uint64_t number);
/* With a token that was noted before, perhaps by another process. */
struct act answers_token(const skua_request *token);
/* That the deadline of the request is this one, or up to 100 µs earlier; 0 and SKUA_FOREVER are
 * exact. */
struct act checks_deadline(uint64_t nth, uint64_t instant);

/* Answers every request, with the number that it brought plus one, until it is ended. */
struct act answers_all(void);

struct act monitors(uint64_t tag, struct actor *of);
struct act joins(uint64_t tag, struct actor *of);

/* Links; the id goes to *link, which may be null. */
struct act links(struct actor *to, uint32_t flags, uint64_t tag, skua_link_id *link);
struct act unlinks(const skua_link_id *link);

/* Starts an actor with these options; its type and input are filled in. */
struct act spawns_with(struct actor *actor, skua_spawn_options options);

struct act terminates(struct actor *other);
struct act cancels_process(struct actor *other, int reason);

#endif
