/* SPDX-License-Identifier: MIT */
/* Stress of groups on threads: processes join, leave, watch and write to groups and end, by
 * themselves or because a thread terminates them, while other threads list the members.
 *  - A watcher's snapshot and changes fit together: nobody joins twice, or leaves who is not in.
 *  - When all rests, every watcher knows who is in its group.
 *  - Whoever hears of the end of a process does not find it in a group.
 *  - Publishing accounts for as many members as it says, and what one publishes comes in order. */
#include <sched.h>
#include <skua/skua.h>
#include <stdlib.h>
#include <string.h>

#include "stress_support.h"

#define PLAYERS     48
#define GROUPS      2
#define KNOWN_MAX   256
#define DEFAULT_OPS 400000
#define PLAN        200

static const char *const names[GROUPS] = {"red", "green"};

struct player {
    atomic_u64 pid;
    atomic_u32 is_over; /* its plan is, or it has ended */
    atomic_u32 has_ended;
    atomic_u32 watches; /* it does, and has a snapshot */
    atomic_u64 view;    /* what stands for the members it knows */
    uint32_t group;     /* that it watches */
    skua_pid known[KNOWN_MAX];
    uint32_t known_count;
    bool wants_watch; /* it has asked for one */
    uint32_t plan;
    uint64_t random;
    uint32_t published;
    uint32_t received[PLAYERS];
};

static struct stress stress;
static struct player players[PLAYERS];

static uint64_t stands_for(const skua_pid *pids, uint32_t count)
{
    uint64_t sum = count;
    for (uint32_t i = 0; i < count; i++) {
        sum ^= random_mix(pids[i].bits);
    }
    return sum;
}

/* ---- what a player sees ---- */

static uint32_t find_known(const struct player *player, skua_pid pid)
{
    uint32_t i = 0;
    while (i < player->known_count && !skua_pid_equal(player->known[i], pid)) {
        i++;
    }
    return i;
}

static void see_change(struct player *player, uint32_t what, skua_pid pid)
{
    const uint32_t at = find_known(player, pid);
    if (what == SKUA_GROUP_JOINED && at == player->known_count) {
        player->known[player->known_count++] = pid;
    } else if (what == SKUA_GROUP_LEFT && at < player->known_count) {
        player->known[at] = player->known[--player->known_count];
    } else {
        stress_fault(&stress, STRESS_DOUBLED, "a watcher hears what it knows");
    }
}

static void see_news(struct player *player, const skua_event *event)
{
    size_t count;
    if (event->payload.type == SKUA_GROUP_SNAPSHOT) {
        const skua_pid *pids = skua_group_get_members(&event->payload, &count);
        player->known_count = 0;
        for (size_t i = 0; i < count; i++) {
            see_change(player, SKUA_GROUP_JOINED, pids[i]);
        }
    } else {
        see_change(player, event->payload.type, skua_payload_to_pid(&event->payload));
    }
    store_release(&player->view, stands_for(player->known, player->known_count)); /* for the main */
    store_release(&player->watches, 1);                                           /* the same */
}

/* Nobody has the name of a process that has ended. */
static void check_is_gone(skua_context *ctx, skua_pid pid)
{
    for (uint32_t group = 0; group < GROUPS; group++) {
        skua_pid pids[KNOWN_MAX];
        const int count = skua_group_members(skua_runtime_of(ctx), names[group], pids, KNOWN_MAX);
        for (int i = 0; i < count; i++) {
            if (skua_pid_equal(pids[i], pid)) {
                stress_fault(&stress, STRESS_BROKEN, "one that has ended is a member");
            }
        }
    }
}

enum { TAG_WATCH = 1, TAG_MONITOR, TAG_PUBLISH };

static void see_completion(struct player *player, skua_context *ctx, const skua_event *event)
{
    if (event->tag == TAG_WATCH) {
        store_release(&player->watches, 0); /* for the main */
        player->wants_watch = false;
    } else if (event->tag == TAG_MONITOR && event->payload.storage != SKUA_PAYLOAD_EMPTY) {
        check_is_gone(ctx, skua_payload_to_pid(&event->payload));
    } else if (event->tag == TAG_PUBLISH) {
        const skua_published published = skua_published_get(&event->payload);
        if (event->error != 0 || published.accepted + published.refused > PLAYERS) {
            stress_fault(&stress, STRESS_CORRUPT, "a publish has a wrong result");
        }
    }
}

/* {who publishes | number} */
static void see_message(struct player *player, const skua_event *event)
{
    uint64_t word;
    memcpy(&word, skua_payload_data(&event->payload), sizeof word);
    const uint32_t by = (uint32_t)(word >> 32);
    if ((uint32_t)word <= player->received[by]) {
        stress_fault(&stress, STRESS_DISORDERED, "what one publishes comes in order");
    }
    player->received[by] = (uint32_t)word;
}

/* ---- what a player does ---- */

static void watch_or_not(struct player *player, skua_context *ctx)
{
    if (player->wants_watch) {
        (void)!skua_yield_cancel(ctx, TAG_WATCH);
    } else {
        player->group = random_below(&player->random, GROUPS);
        player->wants_watch = skua_yield_group_watch(ctx, TAG_WATCH, names[player->group]) == 0;
    }
}

static void publish(struct player *player, skua_context *ctx)
{
    const uint64_t words[4] = {(uint64_t)(player - players) << 32 | ++player->published};
    skua_payload payload;
    if (skua_payload_shared(skua_runtime_of(ctx), 0, words, sizeof words, &payload) == 0) {
        (void)!skua_yield_publish(ctx, TAG_PUBLISH, names[random_below(&player->random, GROUPS)],
                                  payload);
    }
}

static int act(struct player *player, skua_context *ctx)
{
    const char *name = names[random_below(&player->random, GROUPS)];
    const uint32_t other = random_below(&player->random, PLAYERS);
    stress_count(&stress, 0, 1);
    switch (random_below(&player->random, 8)) {
    case 0:
    case 1:
    case 2:
        return skua_group_join(ctx, name);
    case 3:
    case 4:
        (void)skua_group_leave(ctx, name);
        return 0;
    case 5:
        watch_or_not(player, ctx);
        return 0;
    case 6:
        publish(player, ctx);
        return 0;
    default:
        (void)!skua_yield_monitor(ctx, TAG_MONITOR,
                                  (skua_pid){load_relaxed(&players[other].pid)}, /* a number */
                                  SKUA_FOREVER);
        return 0;
    }
}

static int player_init(void *self, skua_context *ctx, skua_payload *input, size_t count)
{
    struct player *player = &players[skua_payload_to_u64(&input[0])];
    (void)count;
    memcpy(self, &player, sizeof player);
    store_relaxed(&player->pid, skua_self(ctx).bits); /* a number */
    return 0;
}

static int player_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    struct player *player = *(struct player **)self;
    for (size_t i = 0; i < count; i++) {
        if (events[i].type == SKUA_EVENT_GROUP) {
            see_news(player, &events[i]);
        } else if (events[i].type == SKUA_EVENT_COMPLETION) {
            see_completion(player, ctx, &events[i]);
        } else if (events[i].type == SKUA_EVENT_MESSAGE) {
            see_message(player, &events[i]);
        }
    }
    if (player->plan == 0) {
        store_release(&player->is_over, 1); /* for the main */
        return 0;
    }
    player->plan--;
    if (random_below(&player->random, 500) == 0) {
        return skua_done(ctx, skua_nothing());
    }
    const int error = act(player, ctx);
    return error != 0 ? error : skua_continue(ctx);
}

static void player_close(void *self, skua_context *ctx, const skua_exit *exit)
{
    struct player *player = *(struct player **)self;
    (void)exit;
    check_is_gone(ctx, skua_self(ctx));
    store_release(&player->has_ended, 1); /* for the main */
    store_release(&player->is_over, 1);   /* the same */
}

static const skua_process_type player_type = {.name = "player",
                                              .state_size = sizeof(struct player *),
                                              .init = player_init,
                                              .step = player_step,
                                              .close = player_close};

/* ---- rounds ---- */

/* Whether each watcher knows who is in its group. */
static bool all_know(skua_runtime *runtime)
{
    uint64_t truth[GROUPS];
    for (uint32_t group = 0; group < GROUPS; group++) {
        skua_pid pids[KNOWN_MAX];
        const int count = skua_group_members(runtime, names[group], pids, KNOWN_MAX);
        truth[group] = stands_for(pids, (uint32_t)count);
    }
    for (uint32_t i = 0; i < PLAYERS; i++) {
        struct player *player = &players[i];
        const bool is_there = load_acquire(&player->is_over) != 0 &&
                              load_acquire(&player->has_ended) == 0; /* of the players */
        if (is_there && load_acquire(&player->watches) != 0 &&
            load_acquire(&player->view) != truth[player->group]) {
            return false;
        }
    }
    return true;
}

static bool is_over(void)
{
    bool over = true;
    for (uint32_t i = 0; i < PLAYERS; i++) {
        over &= load_acquire(&players[i].is_over) != 0; /* of the players */
    }
    return over;
}

static void meddle(skua_runtime *runtime, uint64_t *random)
{
    skua_group_snapshot groups[GROUPS];
    const uint64_t pid = load_relaxed(&players[random_below(random, PLAYERS)].pid); /* a number */
    (void)skua_group_list(runtime, groups, GROUPS);
    (void)skua_group_members(runtime, names[0], NULL, 0);
    if (random_below(random, 200) == 0) {
        (void)skua_process_terminate(runtime, (skua_pid){pid});
    }
    (void)sched_yield();
}

static void play(uint64_t *random)
{
    skua_runtime *runtime;
    const skua_runtime_config config = {.worker_count = 1 + random_below(random, 4)};
    memset(players, 0, sizeof players);
    if (skua_runtime_create(&runtime, &config) != 0 || skua_runtime_start(runtime) != 0) {
        abort();
    }
    for (uint64_t i = 0; i < PLAYERS; i++) {
        players[i].plan = PLAN;
        players[i].random = random_next(random);
    }
    for (uint64_t i = 0; i < PLAYERS; i++) {
        if (skua_process_submit(runtime, &player_type, skua_payload_u64(0, i), NULL) != 0) {
            abort();
        }
    }
    while (!is_over()) {
        meddle(runtime, random);
    }
    while (!all_know(runtime)) { /* the watchdog ends a hang */
        (void)sched_yield();
    }
    if (skua_runtime_stop(runtime, 60 * SKUA_SECOND) != 0) {
        stress_fault(&stress, STRESS_BROKEN, "not all have ended");
    }
    if (skua_group_list(runtime, NULL, 0) != 0) {
        stress_fault(&stress, STRESS_LOST, "a group is left");
    }
    skua_runtime_destroy(runtime);
}

int main(int argc, char **argv)
{
    stress_begin(&stress, argc, argv, DEFAULT_OPS);
    uint64_t random = stress_stream(&stress, 0);
    while (stress_goes_on(&stress, stress.ops)) {
        play(&random);
    }
    return stress_end(&stress);
}
