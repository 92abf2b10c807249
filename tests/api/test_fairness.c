/* SPDX-License-Identifier: MIT */
/* Nobody waits for ever (INV-16). "Players" keep a worker busy in some unfair way and count their
 * steps; at a known step they pause, "victims" are put in line, and each notes how many steps of
 * the players it had to wait for. The limits are those that src/sched/find_work.c promises; no
 * clock is involved. Players give up long after the limit, so that a starved victim ends up as a
 * number that is too large and not as a hang. */

#include "runtime_support.h"

/* As in find_work.c and step.c. */
#define FAIRNESS_PERIOD 61
#define NEXT_STREAK_MAX 3
#define TURNS_MAX       4

#define VICTIMS     10
#define PLAYERS_MAX 8
#define WORKERS_MAX 4

/* The step at which the players pause. It comes in the middle of everything. */
#define PAUSE_AT 1000

struct game;

struct victim {
    struct game *game;
    uint32_t waited;                     /* steps of all players */
    uint64_t worker_waited[WORKERS_MAX]; /* steps of each worker */
};

struct game {
    struct api api;
    uint32_t workers;
    uint32_t give_up_at;
    atomic_uint steps;
    atomic_bool over;
    struct tally paused;
    struct tally resumed;
    struct tally served;
    skua_stats at_pause[WORKERS_MAX];
    skua_pid players[PLAYERS_MAX];
    struct victim victims[VICTIMS];
};

static void game_begin(struct game *game, uint32_t workers, uint32_t longest_wait)
{
    memset(game, 0, sizeof *game);
    game->workers = workers;
    game->give_up_at = PAUSE_AT + 10 * longest_wait;
    tally_init(&game->paused);
    tally_init(&game->resumed);
    tally_init(&game->served);
    for (size_t i = 0; i < VICTIMS; i++) {
        game->victims[i].game = game;
    }
    api_run(&game->api, workers);
}

/* Counts one step of a player and pauses it if it is time. False: the game is over. */
static bool game_step(struct game *game)
{
    const uint32_t step = atomic_fetch_add(&game->steps, 1) + 1;
    if (step == PAUSE_AT) {
        tally_add(&game->paused, 1);
        tally_wait(&game->resumed, 1);
    }
    return step < game->give_up_at && !atomic_load(&game->over);
}

static int victim_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                       skua_step *out)
{
    struct victim *victim = api_world(self);
    struct game *game = victim->game;
    skua_stats now[WORKERS_MAX];
    (void)events;
    (void)count;
    victim->waited = atomic_load(&game->steps) - PAUSE_AT;
    (void)skua_stats_read(skua_context_runtime(ctx), NULL, now, WORKERS_MAX);
    for (uint32_t i = 0; i < game->workers; i++) {
        victim->worker_waited[i] = now[i].steps - game->at_pause[i].steps;
    }
    tally_add(&game->served, 1);
    skua_step_done(out, skua_payload_empty(0));
    return 0;
}

static const skua_process_type victim_type = {
    .name = "victim",
    .state_size = sizeof(void *),
    .init = api_init_world,
    .step = victim_step,
};

/* Puts the victims at the end of the global queue while all players pause. */
static void submit_victims(struct game *game, uint64_t players_pausing)
{
    tally_wait(&game->paused, players_pausing);
    (void)skua_stats_read(game->api.runtime, NULL, game->at_pause, WORKERS_MAX);
    for (size_t i = 0; i < VICTIMS; i++) {
        (void)api_submit(&game->api, &victim_type, &game->victims[i]);
    }
    tally_add(&game->resumed, 1);
}

/* Waits for all victims and ends the game. */
static void game_end(struct game *game)
{
    tally_wait(&game->served, VICTIMS);
    atomic_store(&game->over, true);
    api_stop(&game->api);
}

/* The i-th victim has i others ahead of it. */
static void assert_each_within_its_periods(const struct game *game)
{
    for (size_t i = 0; i < VICTIMS; i++) {
        assert_in_range(game->victims[i].waited, 0, (i + 1) * FAIRNESS_PERIOD);
    }
}

/* ---- pairs that keep the next slot ---- */

/* Players that pass one message to and fro; a step is one pick. */
struct pair_member {
    struct game *game;
    uint32_t partner;
    bool spawns; /* puts the victims in line itself, in the step that pauses */
};

/* The first one goes to the next slot, from where a message to another process displaces it: it
 * comes behind the others, so it is the last victim. */
static void spawn_victims(struct game *game, skua_context *ctx)
{
    for (size_t i = 0; i < VICTIMS; i++) {
        skua_payload input = api_world_payload(&game->victims[(i + VICTIMS - 1) % VICTIMS]);
        (void)skua_context_spawn(ctx, &victim_type, NULL, &input, 1, NULL);
    }
}

static int pair_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                     skua_step *out)
{
    struct pair_member *member = api_world(self);
    struct game *game = member->game;
    if (count == 0 || api_finish_if_cancelled(events, count, out)) {
        return 0;
    }
    const bool goes_on = game_step(game);
    if (member->spawns && atomic_load(&game->steps) == PAUSE_AT) {
        spawn_victims(game, ctx);
    }
    if (goes_on) {
        (void)skua_context_send(ctx, game->players[member->partner], skua_payload_empty(0));
    }
    return 0;
}

static const skua_process_type pair_type = {
    .name = "pair member",
    .state_size = sizeof(void *),
    .init = api_init_world,
    .step = pair_step,
};

static void pairs_begin(struct game *game, struct pair_member *members, uint32_t pairs)
{
    for (uint32_t i = 0; i < 2 * pairs; i++) {
        members[i].game = game;
        members[i].partner = i ^ 1;
        game->players[i] = api_submit(&game->api, &pair_type, &members[i]);
    }
    for (uint32_t i = 0; i < 2 * pairs; i++) {
        api_wait_state(&game->api, game->players[i], SKUA_PROCESS_IDLE);
    }
    for (uint32_t i = 0; i < 2 * pairs; i += 2) {
        assert_int_equal(
            skua_message_send(game->api.runtime, game->players[i], skua_payload_empty(0)), 0);
    }
}

TEST(fairness_pair_in_the_next_slot_lets_the_global_queue_have_its_turn)
{
    static struct game game;
    struct pair_member members[2] = {{0}};
    game_begin(&game, 1, VICTIMS * FAIRNESS_PERIOD);
    pairs_begin(&game, members, 1);

    submit_victims(&game, 1);

    game_end(&game);
    for (size_t i = 0; i < VICTIMS; i++) {
        assert_in_range(game.victims[i].waited, 0, (i + 1) * (NEXT_STREAK_MAX + 1));
    }
}

TEST(fairness_pair_in_the_next_slot_lets_the_deque_have_its_turn)
{
    static struct game game;
    struct pair_member members[2] = {{.spawns = true}, {.spawns = true}};
    game_begin(&game, 1, VICTIMS * FAIRNESS_PERIOD);
    tally_add(&game.resumed, 1);
    pairs_begin(&game, members, 1);

    game_end(&game);

    for (size_t i = 0; i < VICTIMS; i++) {
        assert_in_range(game.victims[i].waited, 0, (i + 1) * (NEXT_STREAK_MAX + 1));
    }
}

/* With two pairs the deque is never empty, so only the period helps those in the global queue. */
TEST(fairness_deque_that_is_never_empty_does_not_starve_the_global_queue)
{
    static struct game game;
    struct pair_member members[4] = {{0}};
    game_begin(&game, 1, VICTIMS * FAIRNESS_PERIOD);
    pairs_begin(&game, members, 2);

    submit_victims(&game, 1);

    game_end(&game);
    assert_each_within_its_periods(&game);
}

/* ---- a trio that always takes the newest of the deque ---- */

/* The first readies the second (which ends in the deque) and the third (next slot); the third does
 * nothing; then the deque's newest, the second, readies the first. Next slots come one at a time
 * and nothing older in the deque is ever popped, but for the rule in the middle of the period. */
struct trio_member {
    struct game *game;
    uint32_t readies[2];
    uint32_t count;
    bool spawns;
};

static int trio_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                     skua_step *out)
{
    struct trio_member *member = api_world(self);
    struct game *game = member->game;
    if (count == 0 || api_finish_if_cancelled(events, count, out)) {
        return 0;
    }
    if (member->spawns && atomic_load(&game->steps) >= PAUSE_AT) {
        member->spawns = false;
        atomic_store(&game->steps, PAUSE_AT); /* they wait from now on */
        spawn_victims(game, ctx);
    }
    const bool goes_on = game_step(game);
    for (uint32_t i = 0; i < member->count && goes_on; i++) {
        (void)skua_context_send(ctx, game->players[member->readies[i]], skua_payload_empty(0));
    }
    return 0;
}

static const skua_process_type trio_type = {
    .name = "trio member",
    .state_size = sizeof(void *),
    .init = api_init_world,
    .step = trio_step,
};

TEST(fairness_newest_of_the_deque_does_not_starve_the_oldest)
{
    static struct game game;
    struct trio_member members[3] = {
        {.readies = {1, 2}, .count = 2, .spawns = true},
        {.readies = {0}, .count = 1},
        {.count = 0},
    };
    game_begin(&game, 1, VICTIMS * FAIRNESS_PERIOD);
    tally_add(&game.resumed, 1);
    for (uint32_t i = 0; i < COUNT_OF(members); i++) {
        members[i].game = &game;
        game.players[i] = api_submit(&game.api, &trio_type, &members[i]);
        api_wait_state(&game.api, game.players[i], SKUA_PROCESS_IDLE);
    }

    assert_int_equal(skua_message_send(game.api.runtime, game.players[0], skua_payload_empty(0)),
                     0);

    game_end(&game);
    assert_each_within_its_periods(&game);
}

/* ---- processes that always continue ---- */

static int spinner_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                        skua_step *out)
{
    struct game *game = api_world(self);
    (void)ctx;
    if (!api_finish_if_cancelled(events, count, out) && game_step(game)) {
        skua_step_continue(out);
    }
    return 0;
}

static const skua_process_type spinner_type = {
    .name = "spinner",
    .state_size = sizeof(void *),
    .init = api_init_world,
    .step = spinner_step,
};

TEST(fairness_process_that_continues_goes_behind_all_that_wait)
{
    static struct game game;
    game_begin(&game, 1, VICTIMS * FAIRNESS_PERIOD);
    (void)api_submit(&game.api, &spinner_type, &game);

    submit_victims(&game, 1);

    game_end(&game);
    /* The turns it was in, and those of a pick from each queue that the period may ask for. */
    for (size_t i = 0; i < VICTIMS; i++) {
        assert_in_range(game.victims[i].waited, 0, 3 * TURNS_MAX);
    }
}

/* With several workers each has such a process; all pause. */
struct spinner {
    struct game *game;
    uint32_t steps;
};

static int one_of_many_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                            skua_step *out)
{
    struct spinner *spinner = api_world(self);
    struct game *game = spinner->game;
    (void)ctx;
    if (api_finish_if_cancelled(events, count, out)) {
        return 0;
    }
    if (++spinner->steps == PAUSE_AT) {
        tally_add(&game->paused, 1);
        tally_wait(&game->resumed, 1);
    }
    if (spinner->steps < game->give_up_at && !atomic_load(&game->over)) {
        skua_step_continue(out);
    }
    return 0;
}

static const skua_process_type one_of_many_type = {
    .name = "one of many",
    .state_size = sizeof(void *),
    .init = api_init_world,
    .step = one_of_many_step,
};

static uint64_t shortest_wait(const struct victim *victim)
{
    uint64_t shortest = victim->worker_waited[0];
    for (uint32_t i = 1; i < victim->game->workers; i++) {
        if (victim->worker_waited[i] < shortest) {
            shortest = victim->worker_waited[i];
        }
    }
    return shortest;
}

TEST(fairness_one_process_per_worker_that_continues_starves_nobody)
{
    static struct game game;
    /* Ahead of a victim: the other victims, and the spinners when they go to the end. */
    const uint32_t limit = (VICTIMS + WORKERS_MAX + 1) * FAIRNESS_PERIOD * TURNS_MAX;
    for (uint32_t workers = 2; workers <= WORKERS_MAX; workers++) {
        struct spinner spinners[WORKERS_MAX] = {{0}};
        game_begin(&game, workers, limit);
        for (uint32_t i = 0; i < workers; i++) {
            spinners[i].game = &game;
            (void)api_submit(&game.api, &one_of_many_type, &spinners[i]);
        }
        submit_victims(&game, workers);
        game_end(&game);
        for (size_t i = 0; i < VICTIMS; i++) {
            assert_in_range(shortest_wait(&game.victims[i]), 0, limit);
        }
    }
}

/* ---- a flood ---- */

#define FLOOD_PER_STEP 150

/* Both continue for ever: the one sends more than the other may take in one step. */
static int flooder_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                        skua_step *out)
{
    struct game *game = api_world(self);
    if (api_finish_if_cancelled(events, count, out) || !game_step(game)) {
        return 0;
    }
    for (int i = 0; i < FLOOD_PER_STEP; i++) {
        (void)skua_context_send(ctx, game->players[0], skua_payload_empty(0));
    }
    skua_step_continue(out);
    return 0;
}

static const skua_process_type flooder_type = {
    .name = "flooder",
    .state_size = sizeof(void *),
    .init = api_init_world,
    .step = flooder_step,
};

static int drain_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                      skua_step *out)
{
    (void)self;
    (void)ctx;
    (void)api_finish_if_cancelled(events, count, out);
    return 0;
}

static const skua_process_type drain_type = {
    .name = "drain",
    .state_size = sizeof(void *),
    .init = api_init_world,
    .step = drain_step,
    .mailbox_limit = 10000,
};

TEST(fairness_flood_from_a_process_starves_nobody)
{
    static struct game game;
    const uint32_t limit = (VICTIMS + 2) * FAIRNESS_PERIOD * TURNS_MAX;
    game_begin(&game, 1, limit);
    game.players[0] = api_submit(&game.api, &drain_type, &game);
    (void)api_submit(&game.api, &flooder_type, &game);

    submit_victims(&game, 1);

    game_end(&game);
    for (size_t i = 0; i < VICTIMS; i++) {
        assert_in_range(game.victims[i].waited, 0, limit);
    }
}

/* ---- processes that are never done with their messages ---- */

#define HOGS          4
#define HOG_MESSAGES  (3 * TURNS_MAX * SKUA_EVENTS_PER_STEP)
#define HOG_PICKS_MAX (2 * (NEXT_STREAK_MAX + 1)) /* until the global queue comes first */

/* Sends itself a message for each that it gets: its backlog never ends. */
static int hog_step(void *self, skua_context *ctx, skua_event *events, size_t count, skua_step *out)
{
    struct game *game = api_world(self);
    if (api_finish_if_cancelled(events, count, out) || !game_step(game)) {
        return 0;
    }
    const size_t answers = count > 0 ? count : HOG_MESSAGES;
    for (size_t i = 0; i < answers; i++) {
        (void)skua_context_send(ctx, skua_context_self(ctx), skua_payload_empty(0));
    }
    return 0;
}

static const skua_process_type hog_type = {
    .name = "hog",
    .state_size = sizeof(void *),
    .init = api_init_world,
    .step = hog_step,
};

/* They stay with their worker, so its deque is never empty either. */
TEST(fairness_processes_with_a_backlog_starve_nobody)
{
    static struct game game;
    game_begin(&game, 1, (VICTIMS + 1) * HOG_PICKS_MAX * TURNS_MAX);
    for (uint32_t i = 0; i < HOGS; i++) {
        (void)api_submit(&game.api, &hog_type, &game);
    }

    submit_victims(&game, 1);

    game_end(&game);
    for (size_t i = 0; i < VICTIMS; i++) {
        assert_in_range(game.victims[i].waited, 0, (i + 2) * HOG_PICKS_MAX * TURNS_MAX);
    }
}

/* The same from a thread that never stops sending. */

static int counting_drain_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                               skua_step *out)
{
    struct game *game = api_world(self);
    (void)ctx;
    if (!api_finish_if_cancelled(events, count, out)) {
        (void)game_step(game);
    }
    return 0;
}

static const skua_process_type counting_drain_type = {
    .name = "counting drain",
    .state_size = sizeof(void *),
    .init = api_init_world,
    .step = counting_drain_step,
    .mailbox_limit = 10000,
};

static void *flood_from_outside(void *arg)
{
    struct game *game = arg;
    while (!atomic_load(&game->over) && atomic_load(&game->steps) < game->give_up_at) {
        (void)skua_message_send(game->api.runtime, game->players[0], skua_payload_empty(0));
    }
    return NULL;
}

TEST(fairness_flood_from_outside_starves_nobody)
{
    static struct game game;
    const uint32_t limit = (VICTIMS + 1) * FAIRNESS_PERIOD * TURNS_MAX;
    pthread_t flooder;
    game_begin(&game, 1, limit);
    game.players[0] = api_submit(&game.api, &counting_drain_type, &game);
    assert_int_equal(pthread_create(&flooder, NULL, flood_from_outside, &game), 0);

    submit_victims(&game, 1);

    tally_wait(&game.served, VICTIMS);
    atomic_store(&game.over, true);
    assert_int_equal(pthread_join(flooder, NULL), 0);
    game_end(&game);
    for (size_t i = 0; i < VICTIMS; i++) {
        assert_in_range(game.victims[i].waited, 0, limit);
    }
}
