/* SPDX-License-Identifier: MIT */
/* What players do. Each acts in rounds, woken by a short sleep, and then ends in some way. */
#include <skua/task.h>
#include <stddef.h>

#include "game.h"

struct game game;
struct player players[PLAYERS_MAX + 1];
atomic_u32 game_plans_over;

static uint32_t below(skua_context *ctx, uint32_t bound)
{
    return (uint32_t)(skua_random(ctx) % bound);
}

static skua_pid pid_of(uint32_t number)
{
    return (skua_pid){load_relaxed(&players[number].pid)}; /* any value will do */
}

static uint64_t some_time(skua_context *ctx)
{
    static const uint32_t moments[] = {0, 1, 3, 10, 40};
    const uint32_t choice = below(ctx, 7);
    return choice < 5 ? moments[choice] * game.moment_ns : SKUA_FOREVER;
}

/* ---- yields ---- */

struct yield_note *player_new_yield(struct player *player, enum yield_kind kind, uint32_t target)
{
    struct yield_note *yield = &player->yields[player->yield_count];
    const struct player *other = &players[target];
    yield->kind = kind;
    yield->target = target;
    yield->has_timeout = false; /* the place may be that of one that was refused */
    yield->was_alive = game.is_simulated && load_relaxed(&other->inits) == 1 && /* one thread */
                       load_relaxed(&other->closes) == 0 &&                     /* the same */
                       load_relaxed(&other->terminated) == 0;                   /* the same */
    store_relaxed(&yield->debtor, target); /* travels with the request */
    return yield;
}

skua_payload player_call_payload(const struct player *player)
{
    return skua_payload_u64(player->number, player->yield_count);
}

static void call(struct player *player, skua_context *ctx, uint32_t target)
{
    struct yield_note *yield = player_new_yield(player, YIELD_CALL, target);
    const uint64_t timeout = some_time(ctx);
    yield->has_timeout = timeout != SKUA_FOREVER;
    player->yield_count += skua_yield_call(ctx, player->yield_count, pid_of(target),
                                           player_call_payload(player), timeout) == 0;
}

/* A request that it has not dealt with yet; or none. */
static struct request_note *some_request(struct player *player, skua_context *ctx)
{
    for (uint32_t tries = 0; tries < 4 && player->request_count > 0; tries++) {
        struct request_note *request = &player->requests[below(ctx, player->request_count)];
        if (!request->is_settled) {
            return request;
        }
    }
    return NULL;
}

static void call_for(struct player *player, skua_context *ctx, uint32_t target)
{
    const struct request_note *request = some_request(player, ctx);
    if (request == NULL) {
        return;
    }
    struct yield_note *yield = player_new_yield(player, YIELD_CALL_FOR, target);
    yield->parent_player = request->caller;
    yield->parent_yield = request->yield;
    yield->parent_request = (uint32_t)(request - player->requests);
    player->yield_count +=
        skua_yield_call_for(ctx, player->yield_count, request->token, pid_of(target),
                            player_call_payload(player), some_time(ctx)) == 0;
}

static void watch(struct player *player, skua_context *ctx, uint32_t target)
{
    const bool joins = below(ctx, 2) == 0;
    struct yield_note *yield = player_new_yield(player, joins ? YIELD_JOIN : YIELD_MONITOR, target);
    const uint64_t timeout = some_time(ctx);
    const uint64_t tag = player->yield_count;
    yield->has_timeout = timeout != SKUA_FOREVER;
    player->yield_count += (joins ? skua_yield_join(ctx, tag, pid_of(target), timeout)
                                  : skua_yield_monitor(ctx, tag, pid_of(target), timeout)) == 0;
}

static void take_back(struct player *player, skua_context *ctx, uint32_t target)
{
    (void)target;
    if (player->yield_count > 0) {
        const uint32_t tag = below(ctx, player->yield_count);
        player->yields[tag].is_cancelled |= skua_yield_cancel(ctx, tag) == 0;
    }
}

/* ---- links and messages ---- */

static void link_to(struct player *player, skua_context *ctx, uint32_t target)
{
    static const uint32_t flags[] = {SKUA_LINK_BOTH, SKUA_LINK_ONLY_ME, SKUA_LINK_ONLY_IT};
    struct link_note *link = &player->links[player->link_count];
    *link = (struct link_note){.target = target,
                               .flags = flags[below(ctx, 3)] |
                                        (below(ctx, 2) == 0 ? SKUA_LINK_TELL : 0)};
    player->link_count +=
        skua_link(ctx, pid_of(target), link->flags, player->link_count, &link->id) == 0;
}

static void unlink_some(struct player *player, skua_context *ctx, uint32_t target)
{
    (void)target;
    if (player->link_count > 0) {
        struct link_note *link = &player->links[below(ctx, player->link_count)];
        link->is_unlinked |= skua_unlink(ctx, link->id) == 0;
    }
}

static void send_some(struct player *player, skua_context *ctx, uint32_t target)
{
    const uint32_t count = 1 + below(ctx, 3);
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t serial = load_relaxed(&player->sent[target]); /* its own */
        if (skua_send(ctx, pid_of(target), skua_payload_u64(player->number, serial)) == 0) {
            store_relaxed(&player->sent[target], serial + 1); /* who hears of its end sees it */
        }
    }
}

void player_expect_name(struct player *player, uint32_t name)
{
    if (name < GAME_NAMES) {
        game_name_try(player, name);
        player->first_name = game.is_simulated ? 0 : name + 1;
    }
}

static void spawn_with_relations(struct player *player, skua_context *ctx, uint32_t target)
{
    struct player *child = &players[target];
    uint32_t none = 0;
    if (!cas_acq_rel_relaxed(&child->inits, &none, 2)) {
        return; /* it was started before */
    }
    skua_pid pid = {0};
    skua_payload input = player_input(target);
    const uint32_t name = below(ctx, 3 * GAME_NAMES);
    const bool is_named = game.has_names && name < GAME_NAMES;
    struct link_note *link = &player->links[player->link_count];
    *link = (struct link_note){.target = target, .flags = SKUA_LINK_TELL};
    struct yield_note *yield = player_new_yield(player, YIELD_SPAWNED, target);
    const skua_spawn_options options = {.type = &child->type,
                                        .input = &input,
                                        .input_count = 1,
                                        .name = is_named ? game_name_text(name) : NULL,
                                        .monitor = below(ctx, 2) == 0,
                                        .monitor_tag = player->yield_count,
                                        .link = below(ctx, 2) == 0,
                                        .link_flags = link->flags,
                                        .link_tag = player->link_count,
                                        .link_id = &link->id};
    player_expect_name(child, is_named ? name : GAME_NAMES);
    const int error = skua_spawn_with(ctx, &options, &pid);
    if (error == 0) {
        yield->was_alive = true;
        player->yield_count += options.monitor;
        player->link_count += options.link;
    } else if (load_relaxed(&child->inits) == 2) {    /* otherwise it is closed */
        (void)fetch_add_relaxed(&game_plans_over, 1); /* counter */
    }
    if (is_named && error != 0) {
        game_name_refused(ctx, player, name, error, pid);
    } else if (is_named && game.is_simulated) {
        game_name_given(ctx, player, child, name);
    }
}

/* ---- answers ---- */

static void answer(struct player *player, skua_context *ctx, uint32_t target)
{
    struct request_note *request = some_request(player, ctx);
    (void)target;
    if (request == NULL) {
        return;
    }
    struct yield_note *yield = &players[request->caller].yields[request->yield];
    request->is_settled = true;
    (void)fetch_add_relaxed(&yield->answers, 1);        /* before the caller can see it */
    store_relaxed(&yield->answered_by, player->number); /* the same */
    const int error =
        skua_reply(ctx, request->token, 0, skua_payload_u64(request->caller, request->yield));
    if (error != 0) {
        (void)fetch_sub_relaxed(&yield->answers, 1); /* nobody has seen it */
        request->is_late = true;
        if (error != SKUA_E_LATE) {
            game_violated("a reply works or is late", player->number, (uint64_t)-error);
        }
    } else if (skua_reply(ctx, request->token, 0, skua_nothing()) != SKUA_E_LATE) {
        game_violated("a call is answered once", player->number, request->yield);
    }
}

static void forward(struct player *player, skua_context *ctx, uint32_t target)
{
    struct request_note *request = some_request(player, ctx);
    if (request == NULL) {
        return;
    }
    struct yield_note *yield = &players[request->caller].yields[request->yield];
    store_relaxed(&yield->debtor, target); /* before the other can have it */
    const int error = skua_forward(ctx, request->token, pid_of(target),
                                   skua_payload_u64(request->caller, request->yield));
    request->is_late = error == SKUA_E_LATE;
    request->is_settled = error == 0 || request->is_late;
    if (error != 0) {
        store_relaxed(&yield->debtor, player->number); /* it stays */
    } else {
        books_happened(HAPPENED_FORWARD);
    }
}

/* ---- ends ---- */

static void cancel_other(struct player *player, skua_context *ctx, uint32_t target)
{
    (void)player;
    const int reason = below(ctx, 2) == 0 ? SKUA_E_CANCELLED : GAME_CANCELS - (int)target;
    store_relaxed(&players[target].cancelled, 1); /* perhaps */
    (void)skua_cancel(ctx, pid_of(target), reason);
}

static void terminate_other(struct player *player, skua_context *ctx, uint32_t target)
{
    (void)player;
    if (skua_terminate(ctx, pid_of(target)) == 0) {
        store_relaxed(&players[target].terminated, 1); /* looked at when all is over */
    }
}

typedef void action_fn(struct player *player, skua_context *ctx, uint32_t target);

struct action {
    action_fn *act;
    uint32_t weight;
};

static const struct action actions[] = {
    {call, 16},   {call_for, 10},   {watch, 12},       {take_back, 6},
    {link_to, 6}, {unlink_some, 4}, {send_some, 14},   {spawn_with_relations, 6},
    {answer, 20}, {forward, 8},     {cancel_other, 1}, {terminate_other, 1},
};

static const struct action name_actions[] = {
    {game_name_register, 8}, {game_name_unregister, 8}, {game_name_find, 5},
    {game_name_send, 3},     {game_name_call, 5},       {game_name_await, 5},
};

static const struct action group_actions[] = {
    {game_group_join, 6},
    {game_group_leave, 4},
    {game_group_publish, 6},
    {game_group_list, 2},
};

static action_fn *choose(const struct action *from, size_t count, skua_context *ctx)
{
    uint32_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        sum += from[i].weight;
    }
    uint32_t choice = below(ctx, sum);
    while (choice >= from->weight) {
        choice -= from->weight;
        from++;
    }
    return from->act;
}

static void act(struct player *player, skua_context *ctx)
{
    const bool is_named = game.has_names && below(ctx, 3) == 0;
    const bool is_grouped = game.has_groups && below(ctx, 4) == 0;
    action_fn *chosen =
        is_named     ? choose(name_actions, sizeof name_actions / sizeof name_actions[0], ctx)
        : is_grouped ? choose(group_actions, sizeof group_actions / sizeof group_actions[0], ctx)
                     : choose(actions, sizeof actions / sizeof actions[0], ctx);
    const uint32_t target = below(ctx, game.players);
    if (player->yield_count < YIELDS_MAX && player->link_count < LINKS_MAX) {
        chosen(player, ctx, target);
    }
}

static int finale(struct player *player, skua_context *ctx)
{
    (void)fetch_add_relaxed(&game_plans_over, 1); /* counter */
    if (player->is_lingering) {
        return 0;
    }
    if (below(ctx, 2) == 0) {
        player->is_done = true;
        (void)skua_done(ctx, skua_payload_u64(0, player->number));
        return 0;
    }
    player->has_failed = true;
    return GAME_FAILS - (int)player->number;
}

/* ---- the process ---- */

/* One that serves is called with events only, so it begins with a message to itself. */
static void send_first(struct player *player, skua_context *ctx)
{
    const skua_payload first = skua_payload_u64(player->number, 0);
    if (skua_send(ctx, skua_self(ctx), first) == 0) {
        store_relaxed(&player->sent[player->number], 1); /* its own */
    } else {
        player->rounds = game.plan;                   /* it has none */
        (void)fetch_add_relaxed(&game_plans_over, 1); /* counter */
    }
}

static int player_init(void *self, skua_context *ctx, skua_payload *input, size_t count)
{
    struct player *player = &players[skua_payload_to_u64(input)];
    (void)count;
    *(struct player **)self = player;
    store_relaxed(&player->inits, 1);                 /* nobody knows it */
    store_relaxed(&player->pid, skua_self(ctx).bits); /* any time will do */
    if (player->type.serve != NULL) {
        send_first(player, ctx);
    }
    return 0;
}

/* Returns whether the plan goes on with this event. */
static bool take_event(struct player *player, skua_context *ctx, const skua_event *event)
{
    switch (event->type) {
    case SKUA_EVENT_MESSAGE: {
        if (game_group_took_message(player, event) || game_name_took_message(player, event)) {
            return false;
        }
        const uint32_t from = event->payload.type;
        if (skua_payload_to_u64(&event->payload) != player->received[from]++) {
            game_violated("messages come in order", player->number, from);
        }
        return false;
    }
    case SKUA_EVENT_COMPLETION:
        if (event->tag == SLEEP_TAG) {
            player->sleeps = false;
            return true;
        }
        books_completion(ctx, player, event);
        return false;
    case SKUA_EVENT_CALL:
        books_request(ctx, player, event);
        return false;
    case SKUA_EVENT_ABANDON:
        books_abandon(player, event);
        return false;
    case SKUA_EVENT_EXIT:
        books_exit_event(ctx, player, event);
        return false;
    default:
        return event->type == SKUA_EVENT_START || event->type == SKUA_EVENT_CONTINUE;
    }
}

static bool is_cancel(const skua_event *event)
{
    return event->type == SKUA_EVENT_CANCEL;
}

static int play_round(struct player *player, skua_context *ctx)
{
    const uint32_t count = 1 + below(ctx, 4);
    for (uint32_t i = 0; i < count; i++) {
        act(player, ctx);
    }
    if (++player->rounds == game.plan) {
        return finale(player, ctx);
    }
    player->sleeps = skua_yield_sleep(ctx, SLEEP_TAG, below(ctx, 4) * game.moment_ns) == 0;
    return player->sleeps ? 0 : skua_continue(ctx);
}

/* What a step does with its events; returns as that. */
static int react(struct player *player, skua_context *ctx, const skua_event *events, size_t count)
{
    bool goes_on = false;
    bool ends = false;
    for (size_t i = 0; i < count; i++) {
        goes_on |= take_event(player, ctx, &events[i]);
        ends |= is_cancel(&events[i]);
    }
    if (ends) {
        player->is_done = true;
        return skua_done(ctx, skua_nothing());
    }
    return goes_on && player->rounds < game.plan ? play_round(player, ctx) : 0;
}

static int player_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    struct player *player = *(struct player **)self;
    const uint32_t first = player->yield_count;
    game_names_check_step(player);
    game_groups_begin_step();
    if (player->first_name != 0) {
        game_name_given(ctx, player, player, player->first_name - 1);
        player->first_name = 0;
    }
    const int result = react(player, ctx, events, count);
    game_names_end_step(player, ctx, first);
    return result;
}

/* ---- players that are tasks ---- */

/* Deals with an event, as a step of its own. */
static int take_one(struct player *player, skua_context *ctx, skua_event *event)
{
    return player_step(&player, ctx, event, 1);
}

static bool match_some(void *arg, const skua_event *event)
{
    const uint32_t *type = arg;
    return event->type == *type;
}

/* A call whose answer it waits for. */
static int call_and_wait(struct player *player, skua_context *ctx, uint32_t target)
{
    skua_event event = {.type = SKUA_EVENT_COMPLETION, .tag = player->yield_count};
    if (player->yield_count == YIELDS_MAX || target == player->number) {
        return 0;
    }
    struct yield_note *yield = player_new_yield(player, YIELD_CALL, target);
    const uint64_t timeout = below(ctx, 20) * game.moment_ns;
    yield->has_timeout = true;
    player->yield_count++;
    event.error = skua_task_call(ctx, pid_of(target), skua_payload_u64(player->number, event.tag),
                                 timeout, &event.payload);
    const bool is_ending = event.error == SKUA_E_CANCELLED || event.error == SKUA_E_TERMINATED;
    yield->is_cancelled |= is_ending;
    if (event.error != SKUA_E_TERMINATED) {
        books_completion(ctx, player, &event);
    }
    skua_payload_drop(&event.payload);
    return is_ending ? event.error : 0;
}

/* Waits for something other than just any event, but not for long: what comes meanwhile is put
 * aside. *event is what it has received, or null. Returns the error of the wait. */
static int wait_for_some(struct player *player, skua_context *ctx, skua_event **event)
{
    const uint64_t time = below(ctx, 4) * game.moment_ns;
    const uint32_t target = below(ctx, game.players);
    uint32_t type = 1 + below(ctx, SKUA_EVENT_EXIT);
    *event = NULL;
    switch (below(ctx, player->selects ? 9 : 4)) {
    case 0:
        return skua_task_receive(ctx, event, time);
    case 1:
        return skua_task_sleep(ctx, time);
    case 2:
        return skua_task_pause(ctx);
    case 3:
        return game.name_limit == 0 ? skua_task_await_name(ctx, "nobody", time, NULL)
                                    : skua_task_sleep(ctx, time); /* it would count */
    case 4:
        return skua_task_receive_type(ctx, target, event, time);
    case 5:
        return skua_task_receive_if(ctx, match_some, &type, event, time);
    case 6:
        return skua_task_monitor(ctx, pid_of(target), time, NULL);
    case 7:
        return skua_task_join(ctx, pid_of(target), time, NULL, NULL);
    default:
        return call_and_wait(player, ctx, target);
    }
}

/* The answer of a call may have such an error as well. */
static bool must_end(skua_context *ctx, int error)
{
    return (error == SKUA_E_CANCELLED || error == SKUA_E_TERMINATED) && skua_task_ending(ctx) != 0;
}

/* Some waits of its own, and then one for just any event. */
static int wait_somehow(struct player *player, skua_context *ctx, skua_event **event)
{
    for (uint32_t waits = below(ctx, 3); waits > 0; waits--) {
        const int error = wait_for_some(player, ctx, event);
        if (*event != NULL) {
            return 0;
        }
        if (must_end(ctx, error)) {
            return error;
        }
    }
    return skua_task_receive(ctx, event, SKUA_FOREVER);
}

static int player_main(void *self, skua_context *ctx)
{
    struct player *player = *(struct player **)self;
    skua_event start = {.type = SKUA_EVENT_START};
    skua_event *event = &start;
    int error = take_one(player, ctx, event);
    while (error == 0 && !player->is_done) {
        error = wait_somehow(player, ctx, &event);
        if (error == 0) {
            error = take_one(player, ctx, event);
        }
    }
    return error;
}

/* The first event of one that serves is not its start. */
static int player_serve(void *self, skua_context *ctx, skua_event *event)
{
    struct player *player = *(struct player **)self;
    skua_event *other = NULL;
    int error = take_one(player, ctx, event);
    if (error == 0 && player->rounds == 0) {
        error = play_round(player, ctx);
    }
    if (error == 0 && !player->is_done && below(ctx, 2) == 0) {
        const int waited = wait_for_some(player, ctx, &other);
        if (other != NULL) {
            error = take_one(player, ctx, other);
        } else if (must_end(ctx, waited)) {
            error = waited;
        }
    }
    return error;
}

static void player_close(void *self, skua_context *ctx, const skua_exit *exit)
{
    struct player *player = *(struct player **)self;
    if (player->rounds < game.plan) {
        (void)fetch_add_relaxed(&game_plans_over, 1); /* counter */
    }
    player->exit_error = exit->error;
    player->exit_cause = exit->cause;
    send_some(player, ctx, below(ctx, game.players));
    answer(player, ctx, 0);
    game_names_close(player, ctx);
    (void)fetch_add_relaxed(&player->closes, 1); /* the runtime has to bring the order */
}

skua_payload player_input(uint32_t number)
{
    return skua_payload_u64(0, number);
}

void player_prepare(uint32_t number, uint64_t *random)
{
    struct player *player = &players[number];
    player->number = number;
    player->calls = random_below(random, 5) > 0;
    player->abandons = random_below(random, 2) == 0;
    player->is_lingering = random_below(random, 4) == 0;
    player->type = (skua_process_type){
        .name = "player",
        .state_size = sizeof(struct player *),
        .init = player_init,
        .close = player_close,
        .calls = player->calls,
        .abandons = player->abandons,
        .cancel = random_below(random, 2) == 0 ? SKUA_CANCEL_END : SKUA_CANCEL_EVENT,
        .mailbox_limit = random_below(random, 2) == 0 ? 1 + random_below(random, 3) : 0,
    };
    switch (random_below(random, 6)) {
    case 0:
        player->type.main = player_main;
        break;
    case 1:
        player->type.serve = player_serve;
        break;
    default:
        player->type.step = player_step;
        break;
    }
    player->selects = player->type.step == NULL && random_below(random, 2) == 0;
    player->type.stack_size = player->type.step == NULL ? (size_t)64 << 10 : 0;
}
