/* SPDX-License-Identifier: MIT */
/* Links: processes that end together, or hear of each other's end. */
#include "effort.h"
#include "relations.h"
#include "timers.h"

/* Two actors, one of which has made a link with these flags and tag 5. */
struct pair {
    struct actor *maker;
    struct actor *peer;
    skua_link_id link;
};

static struct pair *start_pair(uint32_t flags)
{
    struct pair *pair = test_alloc(sizeof *pair);
    pair->peer = actor_start(NO_ACTS);
    pair->maker = actor_start(ACTS(links(pair->peer, flags, 5, &pair->link)));
    world_settle();
    assert_int_not_equal(pair->link.bits, 0);
    return pair;
}

static void assert_lives(const struct actor *actor)
{
    assert_int_equal(actor->closes, 0);
}

/* ---- what the flags mean ---- */

TEST(link_ends_each_if_the_other_fails)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct pair *one = start_pair(SKUA_LINK_BOTH);
        struct pair *two = start_pair(SKUA_LINK_BOTH);
        actor_perform(one->maker, ACTS(fails(SKUA_E_USER)));
        actor_perform(two->peer, ACTS(fails(SKUA_E_USER)));
        assert_ended_because_of(one->maker, SKUA_E_USER, one->maker);
        assert_ended_because_of(one->peer, SKUA_E_USER, one->maker);
        assert_ended_because_of(two->maker, SKUA_E_USER, two->peer);
        assert_saw_nothing(one->peer);
        assert_saw_nothing(two->maker);
    }
}

TEST(link_may_have_one_direction)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct pair *me = start_pair(SKUA_LINK_ONLY_ME);
        struct pair *it = start_pair(SKUA_LINK_ONLY_IT);
        struct pair *other_me = start_pair(SKUA_LINK_ONLY_ME);
        struct pair *other_it = start_pair(SKUA_LINK_ONLY_IT);
        actor_perform(me->peer, ACTS(fails(SKUA_E_USER)));
        actor_perform(it->maker, ACTS(fails(SKUA_E_USER)));
        actor_perform(other_me->maker, ACTS(fails(SKUA_E_USER)));
        actor_perform(other_it->peer, ACTS(fails(SKUA_E_USER)));
        assert_ended_because_of(me->maker, SKUA_E_USER, me->peer);
        assert_ended_because_of(it->peer, SKUA_E_USER, it->maker);
        assert_lives(other_me->peer);
        assert_lives(other_it->maker);
        assert_saw_nothing(other_me->peer);
        assert_saw_nothing(other_it->maker);
    }
}

/* The maker is told, however the peer ends; the peer ends with the maker, unless it is not to. */
TEST(link_that_tells_does_not_end_its_maker)
{
    static const uint32_t flags[] = {SKUA_LINK_BOTH, SKUA_LINK_ONLY_ME, SKUA_LINK_ONLY_IT};
    FOR_ROWS (flag, flags) {
        world_open_virtual();
        struct pair *failing = start_pair(*flag | SKUA_LINK_TELL);
        struct pair *orderly = start_pair(*flag | SKUA_LINK_TELL);
        struct pair *other = start_pair(*flag | SKUA_LINK_TELL);
        actor_perform(failing->peer, ACTS(fails(SKUA_E_USER)));
        actor_perform(orderly->peer, ACTS(finishes(0)));
        actor_perform(other->maker, ACTS(fails(SKUA_E_USER)));
        assert_saw(failing->maker, exit_of(5, failing->peer, SKUA_E_USER));
        assert_int_equal(failing->maker->seen[0].from.bits, failing->peer->pid.bits);
        assert_saw(orderly->maker, exit_of(5, NULL, 0));
        assert_lives(failing->maker);
        assert_lives(orderly->maker);
        if (*flag == SKUA_LINK_ONLY_ME) {
            assert_lives(other->peer);
        } else {
            assert_ended_because_of(other->peer, SKUA_E_USER, other->maker);
        }
    }
}

TEST(link_ignores_orderly_ends)
{
    static const int reasons[] = {0, SKUA_E_CANCELLED, SKUA_E_STOPPED};
    FOR_ROWS (reason, reasons) {
        world_open_virtual();
        struct pair *one = start_pair(SKUA_LINK_BOTH);
        struct pair *two = start_pair(SKUA_LINK_BOTH);
        actor_perform(one->peer, *reason == 0 ? ACTS(finishes(0)) : ACTS(fails(*reason)));
        actor_perform(two->maker, *reason == 0 ? ACTS(finishes(0)) : ACTS(fails(*reason)));
        assert_ended(one->peer, *reason);
        assert_int_equal(one->peer->exit_cause.bits, 0);
        assert_lives(one->maker);
        assert_lives(two->peer);
        assert_saw_nothing(one->maker);
        assert_saw_nothing(two->peer);
        actor_perform(one->maker, ACTS(refused(unlinks(&one->link), SKUA_E_LATE)));
    }
}

TEST(link_ends_its_parties_by_what_cancelled_the_other)
{
    world_open_virtual();
    struct pair *pair = start_pair(SKUA_LINK_BOTH);
    struct actor *mortal = actor_new(ACTS(links(pair->peer, SKUA_LINK_BOTH, 0, NULL)));
    mortal->type.cancel = SKUA_CANCEL_END;
    actor_submit(mortal);
    world_settle();
    assert_int_equal(world_cancel(mortal->pid, SKUA_E_USER - 8), 0);
    world_settle();
    assert_ended_because_of(pair->maker, SKUA_E_USER - 8, mortal);
}

/* ---- how far it reaches ---- */

enum { CHAIN = 5 };

TEST(link_names_the_first_along_a_chain)
{
    FOR_ROUNDS (driver, DRIVERS) {
        struct actor *chain[CHAIN];
        world_open_driver(driver);
        chain[0] = actor_start(NO_ACTS);
        for (size_t i = 1; i < CHAIN; i++) {
            chain[i] = actor_start(ACTS(links(chain[i - 1], SKUA_LINK_BOTH, 0, NULL)));
        }
        struct actor *keeper = actor_start(ACTS(links(chain[CHAIN - 1], SKUA_LINK_TELL, 8, NULL)));
        world_settle();
        actor_perform(chain[0], ACTS(fails(SKUA_E_USER)));
        for (size_t i = 0; i < CHAIN; i++) {
            assert_ended_because_of(chain[i], SKUA_E_USER, chain[0]);
        }
        assert_saw(keeper, exit_of(8, chain[0], SKUA_E_USER));
        assert_int_equal(keeper->seen[0].from.bits, chain[CHAIN - 1]->pid.bits);
        assert_lives(keeper);
    }
}

TEST(link_ends_a_ring_once)
{
    FOR_ROUNDS (driver, DRIVERS) {
        struct actor *ring[CHAIN];
        world_open_driver(driver);
        for (size_t i = 0; i < CHAIN; i++) {
            ring[i] = actor_start(NO_ACTS);
        }
        for (size_t i = 0; i < CHAIN; i++) {
            for (size_t n = 0; n < CHAIN; n++) {
                actor_perform(ring[i], i == n ? ACTS(continues(1))
                                              : ACTS(links(ring[n], SKUA_LINK_BOTH, 0, NULL)));
            }
        }
        actor_perform(ring[2], ACTS(fails(SKUA_E_USER)));
        for (size_t i = 0; i < CHAIN; i++) {
            assert_ended_because_of(ring[i], SKUA_E_USER, ring[2]);
        }
    }
}

/* What came before it is handled first. */
TEST(link_ends_a_process_behind_what_came_before)
{
    FOR_ROUNDS (seed, 50) {
        world_open_sim(seed, (skua_sim_faults){.message_delay = seed % 2 * 400000});
        struct pair *pair = start_pair(SKUA_LINK_BOTH);
        actor_perform(pair->peer, ACTS(sends_numbers(pair->maker, 0, 3), fails(SKUA_E_USER)));
        assert_saw(pair->maker, message(0, 0), message(0, 1), message(0, 2));
        assert_ended_because_of(pair->maker, SKUA_E_USER, pair->peer);
    }
}

/* ---- terminate ---- */

TEST(terminate_ends_what_is_linked_and_tells_who_wants_to_know)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor *victim = actor_start(NO_ACTS);
        struct actor *keeper = actor_start(ACTS(links(victim, SKUA_LINK_TELL, 1, NULL)));
        struct actor *linked = actor_start(ACTS(links(victim, SKUA_LINK_BOTH, 2, NULL)));
        world_settle();
        assert_int_equal(world_terminate(victim->pid), 0);
        world_settle();
        assert_ended_because_of(victim, SKUA_E_TERMINATED, victim);
        assert_saw(keeper, exit_of(1, victim, SKUA_E_TERMINATED));
        assert_ended_because_of(linked, SKUA_E_TERMINATED, victim);
        assert_saw_nothing(victim);
    }
}

/* A process that wants to be told cannot catch its own termination. */
TEST(terminate_cannot_be_caught)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct pair *pair = start_pair(SKUA_LINK_TELL);
        assert_int_equal(world_terminate(pair->maker->pid), 0);
        world_settle();
        assert_ended_because_of(pair->maker, SKUA_E_TERMINATED, pair->maker);
        assert_ended_because_of(pair->peer, SKUA_E_TERMINATED, pair->maker);
        assert_saw_nothing(pair->maker);
    }
}

/* ---- several, and none any more ---- */

TEST(links_between_the_same_two_end_each_by_itself)
{
    FOR_ROUNDS (driver, DRIVERS) {
        skua_link_id links_made[3];
        world_open_driver(driver);
        struct actor *peer = actor_start(NO_ACTS);
        struct actor *maker = actor_start(ACTS(links(peer, SKUA_LINK_TELL, 1, &links_made[0]),
                                               links(peer, SKUA_LINK_TELL, 2, &links_made[1]),
                                               links(peer, SKUA_LINK_BOTH, 3, &links_made[2])));
        world_settle();
        actor_perform(maker,
                      ACTS(unlinks(&links_made[2]), refused(unlinks(&links_made[2]), SKUA_E_LATE)));
        actor_perform(peer, ACTS(fails(SKUA_E_USER)));
        assert_then_saw_in_any_order(maker, exit_of(1, peer, SKUA_E_USER),
                                     exit_of(2, peer, SKUA_E_USER));
        actor_perform(maker, ACTS(refused(unlinks(&links_made[0]), SKUA_E_LATE),
                                  refused(unlinks(&links_made[1]), SKUA_E_LATE)));
        assert_lives(maker);
    }
}

TEST(unlink_before_the_end_lets_both_live)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor *idler = actor_start(NO_ACTS);
        world_settle();
        const uint64_t nodes = nodes_in_use();
        struct pair *one = start_pair(SKUA_LINK_BOTH);
        struct pair *two = start_pair(SKUA_LINK_BOTH);
        struct pair *tells = start_pair(SKUA_LINK_TELL);
        actor_perform(one->maker, ACTS(unlinks(&one->link)));
        actor_perform(two->maker, ACTS(unlinks(&two->link)));
        actor_perform(tells->maker, ACTS(unlinks(&tells->link)));
        actor_perform(one->maker, ACTS(fails(SKUA_E_USER)));
        actor_perform(two->peer, ACTS(fails(SKUA_E_USER)));
        actor_perform(tells->peer, ACTS(fails(SKUA_E_USER)));
        assert_lives(one->peer);
        assert_lives(two->maker);
        assert_saw_nothing(tells->maker);
        actor_perform(one->peer, ACTS(finishes(0)));
        actor_perform(two->maker, ACTS(finishes(0)));
        actor_perform(tells->maker, ACTS(finishes(0)));
        assert_int_equal(nodes_in_use(), nodes);
        assert_saw_nothing(idler);
    }
}

/* The other has ended, and this process has not been told yet: it is held meanwhile. */
TEST(unlink_after_the_end_keeps_it_from_this_process)
{
    static const uint32_t flags[] = {SKUA_LINK_BOTH, SKUA_LINK_TELL};
    FOR_ROWS (flag, flags) {
        skua_link_id link;
        world_open_with((skua_runtime_config){.worker_count = 2});
        struct actor *peer = actor_start(NO_ACTS);
        struct actor *maker =
            actor_start(ACTS(links(peer, *flag, 1, &link), continues(1), holds(), unlinks(&link)));
        actor_await_held(maker, 1);
        actor_tell(peer, ACTS(fails(SKUA_E_USER)));
        actor_await_end(peer);
        actor_release(maker);
        actor_perform(maker,
                      ACTS(sends(maker, 0, 1), awaits(1), refused(unlinks(&link), SKUA_E_LATE)));
        assert_saw(maker, message(0, 1));
    }
}

static int unlink_from_close(struct turn *turn, const struct act *act)
{
    return skua_unlink(turn->ctx, *(const skua_link_id *)act->arg);
}

TEST(unlink_works_from_close)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct pair *pair = start_pair(SKUA_LINK_BOTH);
        pair->maker->in_close =
            ACTS(does(unlink_from_close, &pair->link), refused(unlinks(&pair->link), SKUA_E_LATE));
        actor_perform(pair->maker, ACTS(fails(SKUA_E_USER)));
        assert_ended(pair->maker, SKUA_E_USER);
        assert_lives(pair->peer);
    }
}

TEST(unlink_is_for_whoever_made_the_link)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct pair *pair = start_pair(SKUA_LINK_BOTH);
        struct actor *thief = actor_start(NO_ACTS);
        static const skua_link_id none = {0};
        static const skua_link_id wild = {UINT64_MAX};
        actor_perform(thief, ACTS(refused(unlinks(&pair->link), SKUA_E_LATE),
                                  refused(unlinks(&none), SKUA_E_LATE),
                                  refused(unlinks(&wild), SKUA_E_LATE)));
        actor_perform(pair->peer, ACTS(refused(unlinks(&pair->link), SKUA_E_LATE)));
        actor_perform(pair->peer, ACTS(fails(SKUA_E_USER)));
        assert_ended(pair->maker, SKUA_E_USER);
    }
}

/* Requests and links have tokens of the same kind; one is no use as the other. */
TEST(unlink_of_a_request_and_answer_to_a_link_are_late)
{
    FOR_ROUNDS (driver, DRIVERS) {
        skua_link_id link;
        world_open_driver(driver);
        struct actor *peer = actor_start(NO_ACTS);
        struct actor *server = server_start(ACTS(links(peer, SKUA_LINK_TELL, 1, &link)));
        struct actor *client = actor_start(ACTS(asks(1, server, 1)));
        world_settle();
        const skua_link_id as_link = {server->seen[0].request.bits};
        const skua_request as_request = {link.bits};
        actor_perform(server,
                      ACTS(refused(unlinks(&as_link), SKUA_E_LATE),
                           refused(answers_token(&as_request), SKUA_E_LATE), answers(0, 2)));
        actor_perform(peer, ACTS(finishes(0)));
        assert_saw(client, completion_of(1, 0, 2));
        assert_saw(server, request(1), exit_of(1, NULL, 0));
    }
}

/* ---- made and unmade while the other ends ---- */

/* What one did to another that has ended before it took note: links, unlinks, in any order. */
TEST(link_that_was_unmade_before_the_other_took_note_leaves_nothing)
{
    enum { LINKS = 4 };
    FOR_ROUNDS (unmade, LINKS + 1) {
        skua_link_id made[LINKS];
        world_open_with((skua_runtime_config){.worker_count = 2});
        struct actor *other = actor_start(NO_ACTS);
        struct actor *peer =
            actor_start(ACTS(links(other, SKUA_LINK_BOTH, 0, NULL), holds(), fails(SKUA_E_USER)));
        actor_await_held(peer, 1);
        struct actor *maker = actor_start(NO_ACTS);
        for (size_t i = 0; i < LINKS; i++) {
            actor_perform(maker, ACTS(links(peer, SKUA_LINK_TELL, i, &made[i])));
        }
        for (size_t i = 0; i < unmade - 1; i++) {
            actor_perform(maker, ACTS(unlinks(&made[i])));
        }
        actor_let_go(peer);
        actor_await_end(other); /* its own link was not lost over that */
        assert_ended_because_of(other, SKUA_E_USER, peer);
        actor_await_seen(maker, LINKS - (unmade - 1));
        actor_perform(maker, ACTS(continues(1)));
        assert_int_equal(maker->seen_count, LINKS - (unmade - 1));
        for (size_t i = 0; i < maker->seen_count; i++) {
            assert_in_range(maker->seen[i].tag, unmade - 1, LINKS - 1);
        }
    }
}

/* ---- refusals ---- */

static int link_itself(struct turn *turn, const struct act *act)
{
    return skua_link(turn->ctx, skua_self(turn->ctx), SKUA_LINK_BOTH, 0, act->arg);
}

TEST(link_to_no_process_is_refused)
{
    FOR_ROUNDS (driver, DRIVERS) {
        skua_link_id link = {1};
        world_open_driver(driver);
        struct actor *peer = actor_start(NO_ACTS);
        struct actor *maker =
            actor_start(ACTS(refused(links(ended_actor(), 0, 0, NULL), SKUA_E_NO_PROCESS),
                             refused(links(nobody(), 0, 0, NULL), SKUA_E_NO_PROCESS),
                             refused(links(foreigner(), 0, 0, NULL), SKUA_E_FOREIGN_PID),
                             refused(links(peer, 3, 0, NULL), SKUA_E_INVALID),
                             refused(links(peer, 8, 0, NULL), SKUA_E_INVALID),
                             refused(links(peer, UINT32_MAX, 0, NULL), SKUA_E_INVALID),
                             refused(does(link_itself, &link), SKUA_E_INVALID)));
        world_settle();
        assert_int_equal(link.bits, 0);
        actor_perform(maker, ACTS(fails(SKUA_E_USER)));
        assert_lives(peer);
    }
}

TEST(link_belongs_into_steps)
{
    FOR_ROUNDS (driver, DRIVERS) {
        skua_link_id link = {1};
        static const skua_link_id none = {0};
        world_open_driver(driver);
        struct actor *peer = actor_start(NO_ACTS);
        struct actor *maker = actor_new(ACTS(finishes(0)));
        maker->in_init = ACTS(refused(links(peer, 0, 0, &link), SKUA_E_CONTEXT));
        maker->in_close = ACTS(refused(links(peer, 0, 0, &link), SKUA_E_CONTEXT),
                               refused(unlinks(&none), SKUA_E_LATE));
        assert_result(actor_run(maker), 0);
        assert_int_equal(link.bits, 0);
        assert_int_equal(skua_link(NULL, peer->pid, 0, 0, &link), SKUA_E_INVALID);
        assert_int_equal(skua_unlink(NULL, none), SKUA_E_INVALID);
    }
}

/* ---- at spawn ---- */

TEST(link_at_spawn_works_from_the_first_step_on)
{
    FOR_ROUNDS (driver, DRIVERS) {
        skua_link_id id = {0};
        world_open_driver(driver);
        struct actor *failing = actor_new(ACTS(fails(SKUA_E_USER)));
        struct actor *parent =
            actor_start(ACTS(spawns_with(failing, (skua_spawn_options){.link = true,
                                                                       .link_flags = SKUA_LINK_TELL,
                                                                       .link_tag = 4,
                                                                       .link_id = &id,
                                                                       .monitor = true,
                                                                       .monitor_tag = 3})));
        world_settle();
        assert_int_not_equal(id.bits, 0);
        assert_then_saw_in_any_order(parent, end_of(3, failing, SKUA_E_USER),
                                     exit_of(4, failing, SKUA_E_USER));
        struct actor *child = actor_new(NO_ACTS);
        actor_perform(parent, ACTS(spawns_with(child, (skua_spawn_options){.link = true})));
        actor_perform(parent, ACTS(fails(SKUA_E_USER)));
        assert_ended_because_of(child, SKUA_E_USER, parent);
    }
}

TEST(link_at_spawn_can_be_taken_back)
{
    FOR_ROUNDS (driver, DRIVERS) {
        skua_link_id id = {0};
        world_open_driver(driver);
        struct actor *child = actor_new(NO_ACTS);
        struct actor *parent = actor_start(
            ACTS(spawns_with(child, (skua_spawn_options){.link = true, .link_id = &id})));
        world_settle();
        actor_perform(parent, ACTS(unlinks(&id)));
        actor_perform(child, ACTS(fails(SKUA_E_USER)));
        assert_lives(parent);
    }
}

TEST(link_at_spawn_with_unknown_flags_starts_nothing)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor *child = actor_new(NO_ACTS);
        struct actor *parent = actor_start(
            ACTS(refused(spawns_with(child, (skua_spawn_options){.link = true, .link_flags = 3}),
                         SKUA_E_INVALID)));
        world_settle();
        assert_int_equal(child->closes, child->inits);
        assert_saw_nothing(parent);
    }
}

/* While the runtime stops, nothing starts, and nobody is linked. */
TEST(link_at_spawn_is_undone_if_the_runtime_stops)
{
    FOR_ROUNDS (driver, DRIVERS) {
        skua_link_id id = {1};
        world_open_driver(driver);
        struct actor *child = actor_new(NO_ACTS);
        struct actor *parent = actor_start(ACTS(
            expects(cancel(SKUA_E_STOPPED)),
            refused(spawns_with(
                        child, (skua_spawn_options){.link = true, .link_id = &id, .monitor = true}),
                    SKUA_E_STOPPED),
            finishes(0)));
        world_settle();
        world_close();
        assert_int_equal(id.bits, 0);
        assert_saw(parent, cancel(SKUA_E_STOPPED));
    }
}

/* ---- races ---- */

/* Links to a process that may have ended; unlinks what there is. */
static int link_if_possible(struct turn *turn, const struct act *act)
{
    const int error = skua_link(turn->ctx, act->peer->pid, SKUA_LINK_BOTH, 0, act->arg);
    return error == SKUA_E_NO_PROCESS ? 0 : error;
}

static int unlink_if_possible(struct turn *turn, const struct act *act)
{
    const int error = skua_unlink(turn->ctx, *(const skua_link_id *)act->arg);
    return error == SKUA_E_LATE ? 0 : error;
}

static struct act about(struct act act, struct actor *peer)
{
    act.peer = peer;
    return act;
}

/* Two parties link, unlink and fail at the same time: both end, once. One of them has to know the
 * other before that is started, so it waits for a message. */
TEST(links_that_cross_end_each_party_once)
{
    FOR_ROUNDS (round, EFFORT(300)) {
        skua_link_id *ids = test_alloc(4 * sizeof *ids);
        world_open();
        struct actor *one = actor_new(NO_ACTS);
        struct actor *two = actor_start(
            ACTS(awaits(1), continues(round % 11), about(does(link_if_possible, &ids[2]), one),
                 continues(round % 5), does(unlink_if_possible, &ids[2]), fails(SKUA_E_USER - 2)));
        one->script =
            ACTS(about(does(link_if_possible, &ids[0]), two),
                 about(does(link_if_possible, &ids[1]), two), continues(round % 7),
                 does(unlink_if_possible, &ids[0]), continues(round % 3), fails(SKUA_E_USER - 1));
        actor_submit(one);
        (void)world_send(two->pid, skua_payload_empty(0)); /* the first may have ended it */
        actor_await_end(one);
        actor_await_end(two);
        assert_int_equal(one->closes, 1);
        assert_int_equal(two->closes, 1);
    }
}

/* ---- the log ---- */

static void count_failures(void *arg, const skua_log *log)
{
    (void)log;
    tally_add(arg, 1);
}

/* Whoever is watched or linked when it fails is not logged; a call alone is no watch. */
TEST(log_has_failures_that_nobody_hears_of)
{
    struct tally logged;
    tally_init(&logged);
    world_open_virtual_with((skua_runtime_config){.on_log = count_failures, .on_log_arg = &logged});
    struct actor *watcher = actor_start(NO_ACTS);
    struct actor *watched = actor_start(NO_ACTS);
    struct actor *linked = actor_start(NO_ACTS);
    struct actor *called = server_start(NO_ACTS);
    struct actor *forgotten = actor_start(NO_ACTS);
    actor_perform(watcher, ACTS(monitors(1, watched), links(linked, SKUA_LINK_TELL, 2, NULL),
                                asks(3, called, 0), monitors(4, forgotten), cancels(4)));
    actor_perform(watched, ACTS(fails(SKUA_E_USER)));
    actor_perform(linked, ACTS(fails(SKUA_E_USER)));
    assert_int_equal(tally_count(&logged), 0);
    actor_perform(called, ACTS(fails(SKUA_E_USER)));
    assert_int_equal(tally_count(&logged), 1);
    actor_perform(forgotten, ACTS(fails(SKUA_E_USER)));
    assert_int_equal(tally_count(&logged), 2);
    (void)actor_start(ACTS(fails(SKUA_E_USER)));
    world_settle();
    assert_int_equal(tally_count(&logged), 3);
}
