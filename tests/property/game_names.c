/* SPDX-License-Identifier: MIT */
/* Names in a game: what players do with them, and a model of who has which.
 *
 * A player knows exactly what it has itself. Who else has a name is known exactly in the simulator,
 * where one step runs at a time. On threads the model is a moment behind, so there it says only
 * what may be: a name leads to nobody, or to a player that has tried to get it; and whoever gets a
 * name that another has, as the model knows it, has got it from one that ends: that one takes no
 * further step. */
#include <string.h>

#include "game.h"

#define NO_HOLDER    0              /* otherwise the number of the player, plus 1 */
#define SENT_BY_NAME UINT32_C(1000) /* the type of a message, plus the number of the name */

static const char *const texts[GAME_NAMES] = {
    "a",
    "eight on",
    "one of a few more words",
    "the longest that a name can be: it has sixty-three bytes in all",
};

struct name_note {
    atomic_u32 holder;
    atomic_u32 times; /* that it was given to somebody */
    atomic_u32 tried[PLAYERS_MAX];
};

static struct name_note names[GAME_NAMES];
static atomic_u32 open_waits; /* of players that live, for a name */
static atomic_u32 has_heralds;

void game_names_begin(void)
{
    memset(names, 0, sizeof names);
    store_relaxed(&open_waits, 0);  /* nobody runs */
    store_relaxed(&has_heralds, 0); /* nobody runs */
}

static uint32_t some_name(skua_context *ctx)
{
    return (uint32_t)(skua_random(ctx) % GAME_NAMES);
}

const char *game_name_text(uint32_t name)
{
    return texts[name];
}

/* ---- the model ---- */

static bool is_alive(skua_context *ctx, const struct player *player)
{
    skua_process_snapshot info;
    const skua_pid pid = {load_relaxed(&player->pid)}; /* does not change */
    return skua_process_info(skua_runtime_of(ctx), pid, &info) == 0;
}

/* Who has it now, as a holder; on threads nobody knows that. One that ends has given up its names
 * before its close is called, which may take a while. */
static uint32_t holder_now(skua_context *ctx, uint32_t name)
{
    const uint32_t holder =
        game.is_simulated ? load_relaxed(&names[name].holder) : NO_HOLDER; /* one thread */
    return holder != NO_HOLDER && is_alive(ctx, &players[holder - 1]) ? holder : NO_HOLDER;
}

void game_name_try(struct player *player, uint32_t name)
{
    store_relaxed(&names[name].tried[player->number], 1); /* the runtime brings the order */
}

/* `by` knows that the player has got it. */
void game_name_given(skua_context *ctx, const struct player *by, struct player *player,
                     uint32_t name)
{
    const uint32_t before = exchange_acq_rel(&names[name].holder, player->number + 1);
    (void)fetch_add_relaxed(&names[name].times, 1); /* counter */
    player->has_name[name] = true;
    books_happened(HAPPENED_NAME);
    if (before == NO_HOLDER) {
        return;
    }
    struct player *other = &players[before - 1];
    if (other == player || (game.is_simulated && is_alive(ctx, other))) {
        game_violated("a name has one holder", by->number, name);
    }
    store_relaxed(&other->is_robbed, 1); /* it ends, or will notice */
}

void game_names_check_step(const struct player *player)
{
    if (load_relaxed(&player->is_robbed) != 0) { /* sooner or later */
        game_violated("a name is taken from nobody who lives", player->number, 0);
    }
}

/* A name has led to this process. */
static void check_found(skua_context *ctx, const struct player *player, uint32_t name, skua_pid pid)
{
    const struct player *holder = books_player_of(pid);
    if (holder == NULL) {
        if (load_relaxed(&has_heralds) == 0) { /* set before there is one */
            game_violated("a name leads to a process that has it", player->number, name);
        }
        return;
    }
    if (load_relaxed(&names[name].tried[holder->number]) == 0) { /* the runtime brings the order */
        game_violated("11: a name leads to nobody who never had it", player->number, name);
    }
    if (player->has_name[name] && holder != player) {
        game_violated("a name leads to who has it, and knows that", player->number, name);
    }
    if (game.is_simulated && holder_now(ctx, name) != holder->number + 1) {
        game_violated("a name leads to who has it", player->number, name);
    }
}

/* A name has led to nobody, where `holder` was who has it. */
static void check_not_found(const struct player *player, uint32_t name, uint32_t holder)
{
    if (player->has_name[name] || holder != NO_HOLDER) {
        game_violated("a name that somebody has is found", player->number, name);
    }
}

/* Whether the player waits for a name, or has heard of its holder and not yet been told. */
static bool awaits(const struct player *player, uint32_t name)
{
    const bool is_gone = load_relaxed(&player->closes) > 0; /* one thread */
    for (uint32_t i = 0; i < player->yield_count && !is_gone; i++) {
        const struct yield_note *yield = &player->yields[i];
        if (yield->kind == YIELD_NAME && yield->name == name &&
            load_relaxed(&yield->ends) == 0) { /* one thread */
            return true;
        }
    }
    return false;
}

static bool is_in_use(uint32_t name)
{
    bool is_used = load_relaxed(&names[name].holder) != NO_HOLDER; /* one thread */
    for (uint32_t i = 0; i < game.players; i++) {
        is_used |= awaits(&players[i], name);
    }
    return is_used;
}

/* Whether a name may be refused because there are too many others. */
static bool is_beyond_limit(uint32_t name)
{
    uint32_t others = 0;
    for (uint32_t i = 0; i < GAME_NAMES; i++) {
        others += i != name && is_in_use(i);
    }
    return game.name_limit > 0 && others >= game.name_limit;
}

static void check_limit(const struct player *player, uint32_t name, bool is_expected)
{
    books_happened(HAPPENED_NAME_LIMIT);
    if (!is_expected) {
        game_violated("names are refused only beyond their limit", player->number, name);
    }
}

/* ---- having one ---- */

void game_name_refused(skua_context *ctx, const struct player *player, uint32_t name, int error,
                       skua_pid holder)
{
    if (error == SKUA_E_NAME_TAKEN) {
        books_happened(HAPPENED_NAME_TAKEN);
        check_found(ctx, player, name, holder);
    } else if (error == SKUA_E_NAME_LIMIT) {
        check_limit(player, name, is_beyond_limit(name));
    } else if (error != SKUA_E_NO_MEMORY && error != SKUA_E_STOPPED) { /* that of a spawn */
        game_violated("a name is refused for a reason", player->number, name);
    }
}

void game_name_register(struct player *player, skua_context *ctx, uint32_t target)
{
    (void)target;
    skua_pid holder = {1};
    const uint32_t name = some_name(ctx);
    game_name_try(player, name);
    const int error = skua_name_register(ctx, texts[name], &holder);
    if (error == 0) {
        game_name_given(ctx, player, player, name);
    } else {
        game_name_refused(ctx, player, name, error, holder);
    }
    if (error != SKUA_E_NAME_TAKEN && !skua_pid_is_none(holder)) {
        game_violated("a holder is told only if there is one", player->number, name);
    }
}

/* Mostly one that the player has. */
static uint32_t some_own_name(const struct player *player, skua_context *ctx)
{
    uint32_t name = some_name(ctx);
    for (uint32_t tries = 1; tries < GAME_NAMES && !player->has_name[name]; tries++) {
        name = some_name(ctx);
    }
    return name;
}

/* The model first: who gets the name then finds that it is free. */
void game_name_unregister(struct player *player, skua_context *ctx, uint32_t target)
{
    (void)target;
    const uint32_t name = some_own_name(player, ctx);
    const bool has_it = player->has_name[name];
    if (has_it) {
        player->has_name[name] = false;
        store_release(&names[name].holder, NO_HOLDER);
    }
    if (skua_name_unregister(ctx, texts[name]) != (has_it ? 0 : SKUA_E_NO_PROCESS)) {
        game_violated("one gives up what one has, and nothing else", player->number, name);
    }
}

void game_name_check_free(skua_context *ctx, const struct player *player,
                          const struct player *ended, uint32_t name)
{
    skua_pid pid;
    const bool is_found = skua_name_find(skua_runtime_of(ctx), texts[name], &pid) == 0;
    if (is_found && pid.bits == load_relaxed(&ended->pid)) { /* does not change */
        game_violated("17: names are free when an end is heard of", player->number, name);
    }
}

/* It has given up all of them, before its close. */
void game_names_close(struct player *player, skua_context *ctx)
{
    for (uint32_t name = 0; name < GAME_NAMES; name++) {
        uint32_t expected = player->number + 1;
        (void)cas_acq_rel_relaxed(&names[name].holder, &expected, NO_HOLDER);
        player->has_name[name] = false;
        game_name_check_free(ctx, player, player, name);
        if (skua_name_unregister(ctx, texts[name]) != SKUA_E_NO_PROCESS) {
            game_violated("17: whoever closes has no name", player->number, name);
        }
    }
    for (uint32_t i = 0; i < player->yield_count; i++) {
        const struct yield_note *yield = &player->yields[i];
        if (yield->kind == YIELD_NAME && load_relaxed(&yield->ends) == 0) { /* its own */
            (void)fetch_sub_relaxed(&open_waits, 1);                        /* counter */
        }
    }
}

/* ---- finding ---- */

static int find(skua_context *ctx, uint32_t name, bool by_number, skua_pid *pid)
{
    skua_name number;
    skua_runtime *runtime = skua_runtime_of(ctx);
    if (!by_number) {
        return skua_name_find(runtime, texts[name], pid);
    }
    const int error = skua_name_of(runtime, texts[name], &number);
    return error != 0 ? error : skua_name_holder(runtime, number, pid);
}

void game_name_find(struct player *player, skua_context *ctx, uint32_t target)
{
    skua_pid pid;
    const uint32_t name = some_name(ctx);
    const uint32_t holder = holder_now(ctx, name);
    const bool by_number = target % 2 == 0;
    const int error = find(ctx, name, by_number, &pid);
    switch (error) {
    case 0:
        books_happened(HAPPENED_NAME_FOUND);
        check_found(ctx, player, name, pid);
        break;
    case SKUA_E_NO_PROCESS:
        check_not_found(player, name, holder);
        break;
    case SKUA_E_LATE: /* on threads, others may overtake it */
    case SKUA_E_NO_MEMORY:
        if (!by_number || (error == SKUA_E_LATE && player->has_name[name])) {
            game_violated("a text finds who has the name, or nobody", player->number, name);
        }
        break;
    default:
        game_violated("a search ends with a documented error", player->number, name);
    }
}

void game_name_send(struct player *player, skua_context *ctx, uint32_t target)
{
    (void)target;
    const uint32_t name = some_name(ctx);
    const uint32_t holder = holder_now(ctx, name);
    const int error =
        skua_send_name(ctx, texts[name], skua_payload_u64(SENT_BY_NAME + name, player->number));
    if (error == SKUA_E_NO_PROCESS) {
        check_not_found(player, name, holder);
    } else if (game.is_simulated && holder == NO_HOLDER) {
        game_violated("nobody gets what is sent to a name that nobody has", player->number, name);
    }
}

bool game_name_took_message(const struct player *player, const skua_event *event)
{
    const uint32_t name = event->payload.type - SENT_BY_NAME;
    if (event->payload.type < SENT_BY_NAME) {
        return false;
    }
    books_happened(HAPPENED_NAME_SENT);
    if (load_relaxed(&names[name].tried[player->number]) == 0) { /* its own */
        game_violated("11: what is sent to a name comes to who had it", player->number, name);
    }
    return true;
}

/* ---- calling ---- */

void game_name_call(struct player *player, skua_context *ctx, uint32_t target)
{
    const uint32_t name = some_name(ctx);
    const uint32_t holder = holder_now(ctx, name);
    struct yield_note *yield =
        player_new_yield(player, YIELD_CALL_NAME, holder != NO_HOLDER ? holder - 1 : NOBODY);
    yield->name = name;
    yield->has_timeout = target % 2 == 0;
    player->yield_count +=
        skua_yield_call_name(ctx, player->yield_count, texts[name], player_call_payload(player),
                             yield->has_timeout ? 10 * game.moment_ns : SKUA_FOREVER) == 0;
}

void game_name_took_call(const struct player *player, struct yield_note *yield)
{
    if (yield->kind != YIELD_CALL_NAME || load_relaxed(&yield->debtor) != NOBODY) { /* with it */
        return;
    }
    store_relaxed(&yield->debtor, player->number); /* travels with the request */
    if (game.is_simulated || load_relaxed(&names[yield->name].tried[player->number]) == 0) {
        game_violated("a call to a name comes to who has it", player->number, yield->name);
    }
}

/* ---- waiting ---- */

void game_name_await(struct player *player, skua_context *ctx, uint32_t target)
{
    struct yield_note *yield = player_new_yield(player, YIELD_NAME, NOBODY);
    yield->name = some_name(ctx);
    yield->has_timeout = target % 4 == 0;
    if (skua_yield_await_name(ctx, player->yield_count, texts[yield->name],
                              yield->has_timeout ? 10 * game.moment_ns : SKUA_FOREVER) == 0) {
        (void)fetch_add_relaxed(&open_waits, 1); /* counter */
        player->yield_count++;
    }
}

/* Yields act after the step: from then on nobody may get the name unheard. */
void game_names_end_step(struct player *player, skua_context *ctx, uint32_t first)
{
    for (uint32_t i = first; i < player->yield_count; i++) {
        struct yield_note *yield = &player->yields[i];
        if (yield->kind == YIELD_NAME && game.is_simulated) {
            yield->name_times = load_relaxed(&names[yield->name].times); /* one thread */
            yield->has_holder = holder_now(ctx, yield->name) != NO_HOLDER;
            yield->is_beyond_limit = is_beyond_limit(yield->name);
        }
    }
}

void game_name_completion(const struct player *player, const struct yield_note *yield,
                          const skua_event *event)
{
    (void)fetch_sub_relaxed(&open_waits, 1); /* counter */
    const bool cancelled = event->error == SKUA_E_CANCELLED && yield->is_cancelled;
    const bool timed_out = event->error == SKUA_E_TIMEOUT && yield->has_timeout;
    if (event->error == 0) {
        const struct player *holder =
            books_player_of((skua_pid){skua_payload_to_u64(&event->payload)});
        books_happened(HAPPENED_NAME_AWAITED);
        if (holder == NULL ? load_relaxed(&has_heralds) == 0 /* set before there is one */
                           : load_relaxed(&names[yield->name].tried[holder->number]) == 0) {
            game_violated("36: who waits hears of a holder", player->number, event->tag);
        }
    } else if (event->error == SKUA_E_NAME_LIMIT) {
        check_limit(player, yield->name, yield->is_beyond_limit);
    } else if (!cancelled && !timed_out && event->error != SKUA_E_NO_MEMORY) {
        game_violated("36: a wait for a name ends with a reason", player->number, event->tag);
    }
}

void game_names_check_rest(const struct player *player, const struct yield_note *yield)
{
    const bool was_given =
        yield->has_holder ||
        yield->name_times != load_relaxed(&names[yield->name].times); /* one thread */
    if (was_given || yield->has_timeout) {
        game_violated("36: whoever waits for a name hears of its holder", player->number,
                      yield->name);
    }
}

/* ---- on threads, at the end ---- */

static int herald_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    (void)ctx;
    (void)events;
    (void)count;
    return 0;
}

bool game_names_hear_all(skua_runtime *runtime)
{
    static const skua_process_type herald = {.name = "herald", .step = herald_step};
    store_release(&has_heralds, 1);
    for (uint32_t name = 0; name < GAME_NAMES; name++) {
        const skua_spawn_options options = {.type = &herald, .name = texts[name]};
        (void)!skua_process_submit_with(runtime, &options, NULL); /* or another has it */
    }
    return load_relaxed(&open_waits) == 0; /* counter */
}
