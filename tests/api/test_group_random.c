/* SPDX-License-Identifier: MIT */
/* Random processes that join, leave, watch and write to groups, in the simulator and with faults.
 * The trace says what has changed, in order; so one knows at any moment who is in a group, and what
 * a watcher has to hear next. Property 37 of docs/testing.md. */
#include <string.h>

#include "base/random.h"
#include "groups.h"

#define PLAYERS     10
#define CROWD       600 /* members of one group, in some rounds: enough for several slices */
#define GROUPS      3
#define WATCHES     2 /* of one player */
#define ROUNDS      30
#define MEMBERS_MAX (PLAYERS + CROWD)
#define CHANGES_MAX 4096
#define PUBLISH_MAX 512

static const char *const group_names[GROUPS] = {"red", "green", "blue"};

struct change {
    skua_pid pid;
    bool has_joined;
};

/* A group, as the trace has it. */
struct truth {
    skua_pid members[MEMBERS_MAX];
    size_t member_count;
    struct change changes[CHANGES_MAX];
    size_t change_count;
};

struct watch {
    bool is_open;
    bool has_snapshot;
    size_t seen; /* changes */
};

struct player {
    uint64_t random;
    uint32_t rounds;
    struct watch watches[WATCHES]; /* one of each of the first groups */
    uint32_t joins[GROUPS];
    uint32_t last_published; /* by it; 0: nothing */
    uint32_t open_publishes;
    uint32_t last_received[PLAYERS]; /* the number of the last message of each */
};

struct publish {
    uint32_t by;
    uint64_t expected; /* members */
    uint64_t received; /* by steps */
    uint64_t accepted;
    bool is_over;
};

static struct {
    struct truth groups[GROUPS];
    struct player players[PLAYERS];
    struct publish publishes[PUBLISH_MAX];
    uint32_t publish_count;
    uint32_t ended;
    bool has_ended[PLAYERS];
    const char *violation;
} * game;

static void violate(const char *what)
{
    game->violation = game->violation != NULL ? game->violation : what;
}

/* ---- the truth ---- */

static struct truth *truth_of(const char *name)
{
    for (size_t i = 0; i < GROUPS; i++) {
        if (strcmp(group_names[i], name) == 0) {
            return &game->groups[i];
        }
    }
    return NULL;
}

static void remove_member(struct truth *truth, skua_pid pid)
{
    size_t at = 0;
    while (at < truth->member_count && !skua_pid_equal(truth->members[at], pid)) {
        at++;
    }
    if (at == truth->member_count) {
        violate("who leaves is a member");
        return;
    }
    truth->member_count--;
    memmove(&truth->members[at], &truth->members[at + 1],
            (truth->member_count - at) * sizeof truth->members[0]);
}

static void note_record(void *arg, const skua_sim_record *record)
{
    (void)arg;
    if (record->type != SKUA_SIM_GROUP) {
        return;
    }
    struct truth *truth = truth_of(record->group);
    if (record->what != 0) {
        truth->members[truth->member_count++] = record->pid;
    } else {
        remove_member(truth, record->pid);
    }
    assert_in_range(truth->change_count, 0, CHANGES_MAX - 1);
    truth->changes[truth->change_count++] =
        (struct change){.pid = record->pid, .has_joined = record->what != 0};
}

static void check_members(skua_runtime *runtime, size_t group)
{
    static skua_pid pids[MEMBERS_MAX];
    const struct truth *truth = &game->groups[group];
    const int count = skua_group_members(runtime, group_names[group], pids, MEMBERS_MAX);
    if (count != (int)truth->member_count ||
        memcmp(pids, truth->members, (size_t)count * sizeof pids[0]) != 0) {
        violate("who is listed is a member");
    }
}

/* ---- what a player sees ---- */

static void see_news(struct player *player, const skua_event *event)
{
    struct watch *watch = &player->watches[event->tag % WATCHES];
    const struct truth *truth = &game->groups[event->tag % WATCHES];
    if (!watch->is_open) {
        violate("there is no news after the completion");
    } else if (event->payload.type == SKUA_GROUP_SNAPSHOT) {
        size_t count;
        const skua_pid *pids = skua_group_get_members(&event->payload, &count);
        if (count != truth->member_count ||
            (count > 0 && memcmp(pids, truth->members, count * sizeof *pids) != 0)) {
            violate("a snapshot has the members");
        }
        watch->has_snapshot = true;
        watch->seen = truth->change_count;
    } else {
        const struct change *change = &truth->changes[watch->seen++];
        const skua_pid pid = skua_payload_to_pid(&event->payload);
        const bool has_joined = event->payload.type == SKUA_GROUP_JOINED;
        if (!watch->has_snapshot || watch->seen > truth->change_count ||
            !skua_pid_equal(change->pid, pid) || change->has_joined != has_joined) {
            violate("news are the changes, one after the other");
        }
    }
}

static void see_message(struct player *player, const skua_event *event)
{
    const uint32_t number = (uint32_t)skua_payload_to_u64(&event->payload);
    struct publish *publish = &game->publishes[number];
    if (player != NULL) {
        if (number <= player->last_received[publish->by]) {
            violate("what one publishes arrives once and in order");
        }
        player->last_received[publish->by] = number;
    }
    publish->received++;
}

static void see_completion(struct player *player, const skua_event *event)
{
    if (event->tag < WATCHES) {
        struct watch *watch = &player->watches[event->tag];
        if (event->error != SKUA_E_CANCELLED && event->error != SKUA_E_NO_MEMORY) {
            violate("a watch ends because it is taken back, or for lack of memory");
        }
        watch->is_open = false;
        watch->has_snapshot = false;
    } else if (event->tag >= 1000) {
        struct publish *publish = &game->publishes[event->tag - 1000];
        const skua_published published = skua_published_get(&event->payload);
        publish->is_over = true;
        publish->accepted = published.accepted;
        player->open_publishes--;
        if (event->error != 0 || published.accepted + published.refused != publish->expected) {
            violate("publishing accounts for every member");
        }
    }
}

static void see(struct player *player, const skua_event *event)
{
    if (event->type == SKUA_EVENT_GROUP) {
        see_news(player, event);
    } else if (event->type == SKUA_EVENT_MESSAGE) {
        see_message(player, event);
    } else if (event->type == SKUA_EVENT_COMPLETION) {
        see_completion(player, event);
    }
}

/* ---- what a player does ---- */

static uint32_t below(struct player *player, uint32_t end)
{
    return random_below(&player->random, end);
}

static void join_or_leave(struct player *player, skua_context *ctx)
{
    const uint32_t group = below(player, GROUPS);
    if (below(player, 2) == 0) {
        const int error = skua_group_join(ctx, group_names[group]);
        player->joins[group] += error == 0;
        if (error != 0 && error != SKUA_E_NO_MEMORY) {
            violate("joining works, or there is no memory");
        }
        return;
    }
    const int error = skua_group_leave(ctx, group_names[group]);
    if (error != (player->joins[group] > 0 ? 0 : SKUA_E_NOT_MEMBER)) {
        violate("who has joined can leave as often");
    }
    player->joins[group] -= error == 0;
}

static void watch_or_not(struct player *player, skua_context *ctx)
{
    const uint32_t group = below(player, WATCHES);
    struct watch *watch = &player->watches[group];
    if (watch->is_open) {
        (void)!skua_yield_cancel(ctx, group);
    } else {
        watch->is_open = skua_yield_group_watch(ctx, group, group_names[group]) == 0;
    }
}

/* The last thing that a step does: so the members are those of now. */
static void publish(struct player *player, skua_context *ctx, uint32_t number)
{
    const uint32_t group = below(player, GROUPS);
    const uint32_t message = game->publish_count + 1;
    uint64_t words[4] = {message};
    skua_payload payload = skua_payload_u64(0, message);
    if (message == PUBLISH_MAX) {
        return;
    }
    if (below(player, 2) == 0 &&
        skua_payload_shared(skua_runtime_of(ctx), 1, words, sizeof words, &payload) != 0) {
        return;
    }
    if (skua_yield_publish(ctx, 1000 + message, group_names[group], payload) == 0) {
        game->publish_count = message;
        game->publishes[message] =
            (struct publish){.by = number, .expected = game->groups[group].member_count};
        player->open_publishes++;
    }
}

static int act(struct player *player, skua_context *ctx, uint32_t number)
{
    if (player->rounds == 0) {
        return 0;
    }
    player->rounds--;
    for (uint32_t i = below(player, 4); i > 0; i--) {
        join_or_leave(player, ctx);
    }
    if (below(player, 4) == 0) {
        watch_or_not(player, ctx);
    }
    if (below(player, 100) == 0) {
        return skua_done(ctx, skua_nothing());
    }
    if (player->rounds > 0 && below(player, 3) > 0) {
        (void)skua_continue(ctx);
    } else if (player->rounds > 0) {
        (void)!skua_yield_sleep(ctx, 500, below(player, 1000) * SKUA_MICROSECOND);
    }
    if (below(player, 3) == 0) {
        publish(player, ctx, number);
    }
    return 0;
}

static int player_init(void *self, skua_context *ctx, skua_payload *input, size_t count)
{
    (void)ctx;
    (void)count;
    *(uint64_t *)self = skua_payload_to_u64(&input[0]);
    return 0;
}

/* Shared payloads have four words, of which the first is the number. */
static void unwrap(skua_event *event)
{
    if (event->type == SKUA_EVENT_MESSAGE && event->payload.storage == SKUA_PAYLOAD_SHARED) {
        uint64_t number;
        memcpy(&number, skua_payload_data(&event->payload), sizeof number);
        skua_payload_drop(&event->payload);
        event->payload = skua_payload_u64(1, number);
    }
}

static int player_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    const uint32_t number = (uint32_t) * (uint64_t *)self;
    struct player *player = number < PLAYERS ? &game->players[number] : NULL;
    bool acts = false;
    for (size_t i = 0; i < count; i++) {
        unwrap(&events[i]);
        see(player, &events[i]);
        acts |= events[i].type == SKUA_EVENT_START || events[i].type == SKUA_EVENT_CONTINUE ||
                (events[i].type == SKUA_EVENT_COMPLETION && events[i].tag == 500);
    }
    if (player == NULL) {
        return acts ? skua_group_join(ctx, group_names[0]) : 0;
    }
    return acts ? act(player, ctx, number) : 0;
}

/* When others can hear of its end it is in no group, and neither is it in its close. */
static void player_close(void *self, skua_context *ctx, const skua_exit *exit)
{
    const uint64_t number = *(uint64_t *)self;
    game->ended++;
    if (number < PLAYERS) {
        game->has_ended[number] = true;
    }
    for (size_t i = 0; i < GROUPS; i++) {
        const struct truth *truth = &game->groups[i];
        for (size_t j = 0; j < truth->member_count; j++) {
            if (skua_pid_equal(truth->members[j], exit->pid)) {
                violate("who has ended is no member");
            }
        }
        check_members(skua_runtime_of(ctx), i);
    }
}

static const skua_process_type player_type = {.name = "player",
                                              .state_size = sizeof(uint64_t),
                                              .init = player_init,
                                              .step = player_step,
                                              .close = player_close};

/* ---- games ---- */

static void check_rest(void)
{
    for (size_t i = 0; i < GROUPS; i++) {
        check_members(world_runtime(), i);
    }
    for (size_t i = 0; i < PLAYERS; i++) {
        const struct player *player = &game->players[i];
        for (size_t j = 0; j < WATCHES && !game->has_ended[i]; j++) {
            const struct watch *watch = &player->watches[j];
            if (watch->is_open && watch->seen != game->groups[j].change_count) {
                violate("at rest a watcher has heard of everything");
            }
        }
        if (!game->has_ended[i] && player->open_publishes > 0) {
            violate("at rest everything is published");
        }
    }
    for (uint32_t i = 1; i <= game->publish_count; i++) {
        const struct publish *publish = &game->publishes[i];
        if (publish->received > publish->expected ||
            (publish->is_over && publish->received > publish->accepted) ||
            (publish->is_over && game->ended == 0 && publish->received != publish->accepted)) {
            violate("what was accepted is delivered once");
        }
    }
}

static void submit_players(uint64_t first, uint64_t end)
{
    for (uint64_t i = first; i < end; i++) {
        assert_int_equal(
            skua_process_submit(world_runtime(), &player_type, skua_payload_u64(0, i), NULL), 0);
    }
}

static void play(uint64_t seed, skua_sim_faults faults)
{
    uint64_t random = random_mix(seed);
    const bool has_crowd = random_below(&random, 16) == 0;
    game = test_alloc(sizeof *game);
    for (uint32_t i = 0; i < PLAYERS; i++) {
        game->players[i] = (struct player){.random = random_next(&random), .rounds = ROUNDS};
    }
    world_create_sim(seed, (skua_sim_config){.faults = faults, .on_record = note_record});
    world_start();
    if (has_crowd) {
        submit_players(PLAYERS, PLAYERS + CROWD);
    }
    submit_players(0, PLAYERS);
    world_settle();
    check_rest();
    const char *violation = game->violation;
    world_close();
    if (violation != NULL) {
        fail_msg("seed %llu: not so: %s", (unsigned long long)seed, violation);
    }
}

TEST(watchers_know_who_is_in_a_group)
{
    FOR_ROUNDS (seed, 300) {
        play(seed, SIM_NO_FAULTS);
    }
}

TEST(watchers_know_who_is_in_a_group_whatever_goes_wrong)
{
    FOR_ROUNDS (seed, 1500) {
        uint64_t random = random_mix(seed + 1000000);
        play(seed + 1000000,
             (skua_sim_faults){
                 .delay_max_ns = 3 * SKUA_MILLISECOND,
                 .message_delay = random_below(&random, 2) * random_below(&random, 400000),
                 .process_kill = random_below(&random, 2) * random_below(&random, 20000),
                 .no_memory = random_below(&random, 2) * random_below(&random, 100000),
                 .spurious_wake = random_below(&random, 100000)});
    }
}
