/* SPDX-License-Identifier: MIT */
/* Nobody waits for ever. "Players" keep a worker busy in some unfair way and count their steps; at
 * a known step they pause, "victims" are put in line, and each notes how many steps of the players
 * it had to wait for. The limits are those that src/sched/find_work.c promises, in time: with one
 * worker the clock is the test's, and a step of a player takes a microsecond. With several it is
 * the real one, and nothing but an end of the wait is asked for. Players give up long after the
 * limit, so that a starved victim ends up as a number that is too large and not as a hang. */
#include "actor.h"
#include "sched/checkpoint.h"

/* As in find_work.c, in steps of a microsecond. */
#define OLDEST_STEPS 20
#define SLICE_STEPS  (SLICE_NS / SKUA_MICROSECOND)
#define CLOCK_TURNS  4 /* as in step.c */

/* Steps from one pick of the oldest to the next, if picks have so many steps. */
#define OLDEST_EVERY(pick) ((pick) + (OLDEST_STEPS > (pick) ? OLDEST_STEPS : (pick)) + PICKS_MAX)

/* Whoever is the n-th in the deque or in the global queue waits for so many steps for each. */
#define EACH(pick) (2 * OLDEST_EVERY(pick))

/* What victims on threads wait for, at most, before their players give up. */
#define STARVED UINT32_C(10000000)

#define VICTIMS     10
#define WORKERS_MAX 5

/* The step at which the players pause. It comes in the middle of everything. */
#define PAUSE_AT 1000

#define FOR_EVER UINT64_MAX

struct victim {
    struct actor *actor;
    uint32_t waited;                     /* steps of all players */
    uint64_t worker_waited[WORKERS_MAX]; /* steps of each worker */
};

/* That of the current test. */
static struct game {
    uint32_t workers;
    uint32_t give_up_at; /* a step */
    atomic_uint steps;
    atomic_bool over;
    bool victims_wait; /* since PAUSE_AT */
    struct tally paused;
    struct tally resumed;
    struct tally served;
    skua_stats at_pause[WORKERS_MAX];
    struct victim victims[VICTIMS];
} game;

/* ---- victims ---- */

static int note_wait(struct turn *turn, const struct act *act)
{
    struct victim *victim = act->arg;
    skua_stats now[WORKERS_MAX];
    (void)turn;
    victim->waited = game.steps - PAUSE_AT;
    (void)skua_stats_read(world_runtime(), NULL, now, WORKERS_MAX);
    for (uint32_t i = 0; i < game.workers; i++) {
        victim->worker_waited[i] = now[i].steps - game.at_pause[i].steps;
    }
    tally_add(&game.served, 1);
    return 0;
}

/* Puts the victims at the end of the global queue while all players pause. */
static void submit_victims(uint64_t players_pausing)
{
    tally_wait(&game.paused, players_pausing);
    (void)skua_stats_read(world_runtime(), NULL, game.at_pause, WORKERS_MAX);
    for (size_t i = 0; i < VICTIMS; i++) {
        actor_submit(game.victims[i].actor);
    }
    tally_add(&game.resumed, 1);
}

/* ---- players ---- */

static int play_or_finish(struct turn *turn, uint32_t step)
{
    if (game.workers == 1) {
        virtual_advance_to(&world->time, virtual_now(&world->time) + SKUA_MICROSECOND);
    }
    if (step == PAUSE_AT) {
        tally_add(&game.paused, 1);
        tally_wait(&game.resumed, 1);
    }
    if (step < game.give_up_at && !game.over) {
        return 0;
    }
    (void)perform(turn, finishes(0));
    return ACT_WAITS;
}

static int play(struct turn *turn, const struct act *act)
{
    (void)act;
    return play_or_finish(turn, atomic_fetch_add(&game.steps, 1) + 1);
}

static int play_alone(struct turn *turn, const struct act *act)
{
    (void)act;
    return play_or_finish(turn, turn->actor->steps);
}

/* Counts one step of the players. */
static struct act plays(void)
{
    return does(play, NULL);
}

/* The same where every player has a worker to itself and pauses at a step of its own. */
static struct act plays_alone(void)
{
    return does(play_alone, NULL);
}

static int play_and_spawn(struct turn *turn, const struct act *act)
{
    int outcome = perform(turn, plays());
    (void)act;
    if (outcome != 0 || game.victims_wait || game.steps < PAUSE_AT) {
        return outcome;
    }
    game.victims_wait = true;
    game.steps = PAUSE_AT; /* they wait from now on */
    for (size_t i = 0; i < VICTIMS && outcome == 0; i++) {
        outcome = perform(turn, spawns(game.victims[(i + VICTIMS - 1) % VICTIMS].actor));
    }
    return outcome;
}

/* The same, but the first that comes to the pause puts the victims in its worker's deque. The first
 * one goes to the next slot, from where a message to another process displaces it: it comes behind
 * the others, so it is the last victim. */
static struct act plays_and_spawns_victims(void)
{
    return does(play_and_spawn, NULL);
}

/* ---- games ---- */

static void game_open(uint32_t workers, uint32_t longest_wait)
{
    const skua_runtime_config config = {.worker_count = workers};
    game = (struct game){.workers = workers, .give_up_at = PAUSE_AT + longest_wait};
    tally_init(&game.paused);
    tally_init(&game.resumed);
    tally_init(&game.served);
    if (workers == 1) {
        world_open_virtual_with(config);
    } else {
        world_open_with(config);
    }
    for (size_t i = 0; i < VICTIMS; i++) {
        struct victim *victim = &game.victims[i];
        victim->actor = actor_new(ACTS(does(note_wait, victim), finishes(0)));
    }
}

/* With one worker and picks of so many steps. */
static void game_open_alone(uint32_t pick)
{
    game_open(1, 10 * VICTIMS * EACH(pick));
}

/* Where the players put the victims in line, nobody else has to know of the pause. */
static void game_open_without_pause(uint32_t pick)
{
    game_open_alone(pick);
    tally_add(&game.resumed, 1);
}

/* Until all victims have run; then the game is over. */
static void await_victims(void)
{
    tally_wait(&game.served, VICTIMS);
    game.over = true;
}

/* That the i-th, with i others ahead of it, waited for at most (i + 1) * `each` steps. */
static void assert_each_waited(size_t each)
{
    await_victims();
    world_close();
    for (size_t i = 0; i < VICTIMS; i++) {
        assert_in_range(game.victims[i].waited, 0, (i + 1) * each);
    }
}

/* Gives a resting player its first turn. */
static void kick_off(const struct actor *player)
{
    assert_int_equal(world_send(player->pid, skua_payload_empty(0)), 0);
}

/* ---- pairs that keep the next slot ---- */

/* Two players that pass one message to and fro; a step is one pick. `move` is what they do in
 * it. */
static struct actor *start_pair(struct act move)
{
    struct actor *one = actor_new(NO_ACTS);
    struct actor *other = actor_start(ACTS(awaits(1), move, sends(one, 0, 0), repeats(FOR_EVER)));
    one->script = ACTS(awaits(1), move, sends(other, 0, 0), repeats(FOR_EVER));
    actor_submit(one);
    actor_await_state(one, SKUA_PROCESS_IDLE);
    actor_await_state(other, SKUA_PROCESS_IDLE);
    return one;
}

TEST(fairness_pair_in_the_next_slot_lets_the_global_queue_have_its_turn)
{
    game_open_alone(1);
    kick_off(start_pair(plays()));
    submit_victims(1);
    assert_each_waited(EACH(1));
}

TEST(fairness_pair_in_the_next_slot_lets_the_deque_have_its_turn)
{
    game_open_without_pause(1);
    kick_off(start_pair(plays_and_spawns_victims()));
    assert_each_waited(EACH(1));
}

/* With two pairs the deque is never empty either. Both are in line before the first of them plays,
 * or the second could get there with the victims. */
TEST(fairness_deque_that_is_never_empty_does_not_starve_the_global_queue)
{
    game_open_alone(1);
    struct actor *pairs[] = {start_pair(plays()), start_pair(plays())};
    struct actor *holder = actor_start_held(); /* of the worker */
    kick_off(pairs[0]);
    kick_off(pairs[1]);
    actor_let_go(holder);
    submit_victims(1);
    assert_each_waited(EACH(1));
}

/* ---- a trio that always takes the newest of the deque ---- */

/* The first readies the second (which ends in the deque) and the third (next slot); the third does
 * nothing; then the deque's newest, the second, readies the first. Next slots come one at a time
 * and nothing older in the deque is ever popped, but when the oldest is due. */
TEST(fairness_newest_of_the_deque_does_not_starve_the_oldest)
{
    game_open_without_pause(1);
    struct actor *first = actor_new(NO_ACTS);
    struct actor *second =
        actor_start(ACTS(awaits(1), plays(), sends(first, 0, 0), repeats(FOR_EVER)));
    struct actor *third = actor_start(ACTS(awaits(1), plays(), repeats(FOR_EVER)));
    first->script = ACTS(awaits(1), plays_and_spawns_victims(), sends(second, 0, 0),
                         sends(third, 0, 0), repeats(FOR_EVER));
    actor_submit(first);
    actor_await_state(first, SKUA_PROCESS_IDLE);
    actor_await_state(second, SKUA_PROCESS_IDLE);
    actor_await_state(third, SKUA_PROCESS_IDLE);
    kick_off(first);
    assert_each_waited(EACH(1));
}

/* ---- processes that always continue ---- */

TEST(fairness_process_that_continues_goes_behind_all_that_wait)
{
    game_open_alone(SLICE_STEPS);
    (void)actor_start(ACTS(plays(), continues(1), repeats(FOR_EVER)));
    submit_victims(1);
    await_victims();
    world_close();
    for (size_t i = 0; i < VICTIMS; i++) {
        /* One slice and not two; the clock is not read after each step. */
        assert_in_range(game.victims[i].waited, 0, SLICE_STEPS + 4 * CLOCK_TURNS);
    }
}

/* Those that continue get half of the time, whatever else there is to do. */
TEST(fairness_pair_in_the_next_slot_does_not_starve_those_that_continue)
{
    game_open_alone(SLICE_STEPS);
    for (size_t i = 0; i < VICTIMS; i++) { /* each gets behind before it notes how long that took */
        struct victim *victim = &game.victims[i];
        victim->actor->script = ACTS(continues(1), does(note_wait, victim), finishes(0));
    }
    kick_off(start_pair(plays()));
    submit_victims(1);
    assert_each_waited(EACH(1) + 2 * SLICE_STEPS + PICKS_MAX);
}

static uint64_t shortest_wait(const struct victim *victim)
{
    uint64_t shortest = victim->worker_waited[0];
    for (uint32_t i = 1; i < game.workers; i++) {
        if (victim->worker_waited[i] < shortest) {
            shortest = victim->worker_waited[i];
        }
    }
    return shortest;
}

TEST(fairness_one_process_per_worker_that_continues_starves_nobody)
{
    const uint32_t workers = test_workers() + 1;
    game_open(workers, STARVED);
    for (uint32_t i = 0; i < workers; i++) {
        (void)actor_start(ACTS(plays_alone(), continues(1), repeats(FOR_EVER)));
    }
    submit_victims(workers);
    await_victims();
    for (size_t i = 0; i < VICTIMS; i++) {
        assert_in_range(shortest_wait(&game.victims[i]), 0, STARVED - 1);
    }
}

/* ---- floods ---- */

static struct actor *start_drain(struct script script)
{
    struct actor *drain = actor_new(script);
    drain->type.mailbox_limit = 10000;
    actor_submit(drain);
    return drain;
}

/* More than the other may take in one step. */
static int flood(struct turn *turn, const struct act *act)
{
    for (int i = 0; i < 150; i++) {
        (void)perform(turn, sends(act->arg, 0, 0));
    }
    return 0;
}

TEST(fairness_flood_from_a_process_starves_nobody)
{
    game_open_alone(SLICE_STEPS);
    struct actor *drain = start_drain(NO_ACTS);
    (void)actor_start(ACTS(plays(), does(flood, drain), continues(1), repeats(FOR_EVER)));
    submit_victims(1);
    assert_each_waited(EACH(SLICE_STEPS));
}

/* In every step, whatever it brings. */
static int keep_playing(struct turn *turn, const struct act *act)
{
    (void)act;
    (void)perform(turn, plays());
    return ACT_WAITS;
}

static void *flood_from_outside(void *drain)
{
    while (!game.over && game.steps < game.give_up_at) {
        (void)world_send(((struct actor *)drain)->pid, skua_payload_empty(0));
    }
    return NULL;
}

TEST(fairness_flood_from_outside_starves_nobody)
{
    pthread_t flooder;
    game_open_alone(SLICE_STEPS);
    struct actor *drain = start_drain(ACTS(does(keep_playing, NULL)));
    assert_int_equal(pthread_create(&flooder, NULL, flood_from_outside, drain), 0);
    submit_victims(1);
    await_victims();
    assert_int_equal(pthread_join(flooder, NULL), 0);
    assert_each_waited(EACH(SLICE_STEPS));
}

/* ---- processes that are never done with their messages ---- */

#define HOG_MESSAGES (12 * SKUA_EVENTS_PER_STEP)

/* Sends itself a message for each that it gets: its backlog never ends. */
static int hog(struct turn *turn, const struct act *act)
{
    const size_t messages = turn->count > 0 ? turn->count : HOG_MESSAGES;
    const bool goes_on = perform(turn, plays()) == 0;
    (void)act;
    for (size_t i = 0; i < messages && goes_on; i++) {
        (void)perform(turn, sends(turn->actor, 0, 0));
    }
    return ACT_WAITS;
}

/* They stay with their worker, so its deque is never empty either. All of them are in line before
 * the first plays. */
TEST(fairness_processes_with_a_backlog_starve_nobody)
{
    game_open_alone(SLICE_STEPS);
    struct actor *holder = actor_start_held(); /* of the worker */
    for (int i = 0; i < 4; i++) {
        (void)actor_start(ACTS(does(hog, NULL)));
    }
    actor_let_go(holder);
    submit_victims(1);
    assert_each_waited(EACH(SLICE_STEPS));
}
