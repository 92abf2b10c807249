/* SPDX-License-Identifier: MIT */
/* What must hold, whatever players do. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "game.h"

static atomic_u32 violations;

void game_violated(const char *property, uint32_t player, uint64_t detail)
{
    const uint32_t before = fetch_add_relaxed(&violations, 1); /* counter */
    if (before < 10) { /* dprintf: this may be a signal's handler */
        (void)dprintf(STDERR_FILENO, "violated: %s (player %u, %" PRIu64 ")\n", property, player,
                      detail);
    }
    if (before == 0) { /* at once: what is broken may not get to its end */
        (void)dprintf(STDERR_FILENO,
                      "repeat with: %s --first %" PRIu64 " --seeds 1 --driver %s --trace\n",
                      program_invocation_name, game.seed, game.is_simulated ? "sim" : "threads");
    }
}

uint32_t game_violations(void)
{
    return load_relaxed(&violations); /* counter */
}

void books_begin(void)
{
    memset(players, 0, sizeof players);
    game_names_begin();
    game_groups_begin();
    store_relaxed(&game_plans_over, 0); /* nobody runs */
    store_relaxed(&violations, 0);      /* nobody runs */
}

static atomic_u64 happenings[HAPPENINGS];

void books_happened(enum happening happening)
{
    (void)fetch_add_relaxed(&happenings[happening], 1); /* counter */
}

bool books_cover_all(void)
{
    static const char *const names[HAPPENINGS] = {
        "answers",         "forwards",          "calls on behalf", "ends of peers",
        "timeouts",        "cancels",           "abandons",        "notices of ends",
        "exit events",     "cascades",          "names given",     "taken",
        "found",           "messages to names", "waits for names", "names too many",
        "joins of groups", "publications"};
    bool all = true;
    for (uint32_t i = 0; i < HAPPENINGS; i++) {
        const uint64_t count = load_relaxed(&happenings[i]); /* counter */
        const bool is_possible = game.is_simulated || i != HAPPENED_NAME_LIMIT;
        all = all && (count > 0 || !is_possible);
        (void)printf("%s%" PRIu64 " %s", i > 0 ? ", " : "  ", count, names[i]);
    }
    (void)printf("\n");
    return all;
}

static bool is_orderly(int error)
{
    return error == 0 || error == SKUA_E_STOPPED || error == SKUA_E_CANCELLED;
}

static bool is_gone(const struct player *player)
{
    return load_relaxed(&player->closes) > 0; /* the runtime has brought order */
}

const struct player *books_player_of(skua_pid pid)
{
    for (uint32_t i = 0; i < game.players; i++) {
        if (pid.bits != 0 && load_relaxed(&players[i].pid) == pid.bits) { /* does not change */
            return &players[i];
        }
    }
    return NULL;
}

/* ---- notices ---- */

/* A call that `ended` has answered before is complete by now. */
static void check_answers(const struct player *player, uint32_t ended)
{
    for (uint32_t i = 0; i < player->yield_count; i++) {
        const struct yield_note *yield = &player->yields[i];
        if (yield->kind <= YIELD_CALL_FOR && load_relaxed(&yield->ends) == 0 && /* its own */
            load_relaxed(&yield->answers) == 1 &&         /* the runtime has brought order */
            load_relaxed(&yield->answered_by) == ended) { /* the same */
            game_violated("16: an end is heard of after all answers", player->number, i);
        }
    }
}

void books_heard(skua_context *ctx, struct player *player, uint32_t ended, int error)
{
    const struct player *other = &players[ended];
    books_happened(HAPPENED_NOTICE);
    if (load_relaxed(&other->closes) != 1) { /* the runtime has to bring order */
        game_violated("19: close has returned before an end is heard of", player->number, ended);
        return;
    }
    if (other->exit_error != error) {
        game_violated("21: an end is heard of with the true error", player->number, ended);
    }
    if (!player->selects &&
        load_relaxed(&other->sent[player->number]) != player->received[ended]) { /* the same */
        game_violated("16: an end is heard of after all messages", player->number, ended);
    }
    const int sent = skua_send(ctx, (skua_pid){load_relaxed(&other->pid)}, skua_nothing()); /* */
    if (sent != SKUA_E_NO_PROCESS) {
        game_violated("18: sends are refused after an end is heard of", player->number, ended);
    }
    if (!player->selects) {
        check_answers(player, ended);
    }
    for (uint32_t name = 0; name < GAME_NAMES; name++) {
        game_name_check_free(ctx, player, other, name);
    }
    game_group_check_left(ctx, player, other);
}

void books_exit_event(skua_context *ctx, struct player *player, const skua_event *event)
{
    if (event->tag >= player->link_count) {
        game_violated("a notice is of a link that was made", player->number, event->tag);
        return;
    }
    struct link_note *link = &player->links[event->tag];
    books_happened(HAPPENED_EXIT_EVENT);
    const struct player *other = &players[link->target];
    const bool is_expected = (link->flags & SKUA_LINK_TELL) != 0 && !link->is_unlinked;
    if (!is_expected || link->told++ > 0 || load_relaxed(&other->pid) != event->from.bits) { /* */
        game_violated("a link tells once, and nothing after an unlink", player->number, event->tag);
    }
    if (skua_payload_to_u64(&event->payload) != other->exit_cause.bits) {
        game_violated("22: a notice names who failed first", player->number, event->tag);
    }
    books_heard(ctx, player, link->target, event->error);
}

/* ---- completions ---- */

static void check_call(skua_context *ctx, struct player *player, struct yield_note *yield,
                       const skua_event *event)
{
    const uint64_t value = skua_payload_to_u64(&event->payload);
    switch (event->error) {
    case 0:
        books_happened(HAPPENED_ANSWER);
        if (load_relaxed(&yield->answers) != 1 || value != event->tag || /* came with it */
            event->payload.type != player->number) {
            game_violated("a call gets its own answer", player->number, event->tag);
        }
        break;
    case SKUA_E_PEER_ENDED: {
        const uint32_t debtor = load_relaxed(&yield->debtor); /* came with it */
        books_happened(HAPPENED_PEER_END);
        if (debtor == NOBODY) {
            break; /* it had the name, and ended before it got the call */
        }
        if ((int)(int64_t)value != players[debtor].exit_error) {
            game_violated("32: the end of who owes the answer counts", player->number, debtor);
        }
        books_heard(ctx, player, debtor, players[debtor].exit_error);
        break;
    }
    case SKUA_E_CANCELLED:
        books_happened(HAPPENED_CALL_CANCEL);
        if (!yield->is_cancelled && yield->kind != YIELD_CALL_FOR) {
            game_violated("a call is cancelled only if it was", player->number, event->tag);
        }
        break;
    case SKUA_E_TIMEOUT:
        books_happened(HAPPENED_CALL_TIMEOUT);
        if (!yield->has_timeout && yield->kind != YIELD_CALL_FOR) {
            game_violated("a call times out only if it can", player->number, event->tag);
        }
        break;
    case SKUA_E_NO_PROCESS:
        if (yield->was_alive) {
            game_violated("a process that lives can be called", player->number, event->tag);
        }
        break;
    case SKUA_E_NOT_CALLABLE:
        if (players[yield->target].calls) {
            game_violated("a type that can be called is", player->number, event->tag);
        }
        break;
    case SKUA_E_MAILBOX_FULL:
    case SKUA_E_NO_MEMORY:
        break;
    default:
        game_violated("a call ends with a documented error", player->number, event->tag);
    }
}

static void check_watch(skua_context *ctx, struct player *player, const struct yield_note *yield,
                        const skua_event *event)
{
    const struct player *other = &players[yield->target];
    const bool joined = yield->kind == YIELD_JOIN && event->error == 0;
    const uint64_t pid = load_relaxed(&other->pid); /* does not change */
    if (joined || (pid != 0 && skua_payload_to_u64(&event->payload) == pid)) {
        books_heard(ctx, player, yield->target, event->error);
        return;
    }
    const bool cancelled = event->error == SKUA_E_CANCELLED && yield->is_cancelled;
    const bool timed_out = event->error == SKUA_E_TIMEOUT && yield->has_timeout;
    const bool was_late = event->error == SKUA_E_NO_PROCESS && !yield->was_alive;
    if (!cancelled && !timed_out && !was_late && event->error != SKUA_E_NO_MEMORY) {
        game_violated("21: who watches a living process hears the truth", player->number,
                      event->tag);
    }
}

void books_completion(skua_context *ctx, struct player *player, const skua_event *event)
{
    if (event->tag >= player->yield_count) {
        game_violated("a completion is of a yield that was made", player->number, event->tag);
        return;
    }
    struct yield_note *yield = &player->yields[event->tag];
    if (fetch_add_relaxed(&yield->ends, 1) > 0) { /* its own */
        game_violated("a yield has one completion", player->number, event->tag);
    }
    if (yield->kind <= YIELD_CALL_FOR) {
        check_call(ctx, player, yield, event);
    } else if (yield->kind == YIELD_NAME) {
        game_name_completion(player, yield, event);
    } else if (yield->kind == YIELD_PUBLISH) {
        game_group_completion(player, yield, event);
    } else {
        check_watch(ctx, player, yield, event);
    }
}

/* ---- requests ---- */

/* In the simulator, where taking events and the step are one: nobody waits for it any more. */
static bool is_over(const struct request_note *request)
{
    const struct player *caller = &players[request->caller];
    return load_relaxed(&caller->yields[request->yield].ends) > 0 ||
           is_gone(caller); /* one thread */
}

static void check_deadline(skua_context *ctx, const struct player *player,
                           const struct request_note *request)
{
    struct yield_note *yield = &players[request->caller].yields[request->yield];
    const uint64_t deadline = skua_request_deadline(ctx, request->token);
    store_relaxed(&yield->deadline, deadline); /* travels with calls on its behalf */
    if (yield->kind != YIELD_CALL_FOR) {
        return;
    }
    const struct player *parent = &players[yield->parent_player];
    books_happened(HAPPENED_CALL_FOR);
    if (deadline > load_relaxed(&parent->yields[yield->parent_yield].deadline)) { /* the same */
        game_violated("34: a deadline shrinks along the chain", player->number, request->yield);
    }
}

void books_request(skua_context *ctx, struct player *player, const skua_event *event)
{
    if (player->request_count == REQUESTS_MAX) {
        return;
    }
    struct request_note *request = &player->requests[player->request_count++];
    *request = (struct request_note){.token = event->request,
                                     .caller = event->payload.type,
                                     .yield = (uint32_t)skua_payload_to_u64(&event->payload)};
    struct yield_note *yield = &players[request->caller].yields[request->yield];
    if (load_relaxed(&players[request->caller].pid) != event->from.bits) { /* does not change */
        game_violated("a request names its caller", player->number, request->caller);
    }
    game_name_took_call(player, yield);
    if (load_relaxed(&yield->debtor) != player->number) { /* came with it */
        game_violated("32: a request comes to who owes the answer", player->number, request->yield);
    }
    if (game.is_simulated && is_over(request)) {
        game_violated("33: a request that is over is never stepped", player->number,
                      request->yield);
    }
    check_deadline(ctx, player, request);
}

void books_abandon(struct player *player, const skua_event *event)
{
    books_happened(HAPPENED_ABANDON);
    for (uint32_t i = 0; i < player->request_count; i++) {
        struct request_note *request = &player->requests[i];
        if (request->token.bits == event->request.bits) {
            const bool is_expected = player->abandons && (!request->is_settled || request->is_late);
            if (!is_expected || request->abandons++ > 0) {
                game_violated("a server hears once, if it has not answered", player->number, i);
            }
            return;
        }
    }
    if (player->request_count < REQUESTS_MAX) {
        game_violated("a server hears only of what it has got", player->number, 0);
    }
}

/* ---- at rest, in the simulator ---- */

static void check_pending_call(const struct player *player, uint32_t number)
{
    const struct yield_note *yield = &player->yields[number];
    const uint32_t debtor = load_relaxed(&yield->debtor); /* one thread, from here on */
    if (yield->has_timeout) {
        game_violated("a yield with a timeout ends", player->number, number);
    }
    if (debtor == NOBODY) {
        game_violated("a call to a name that nobody has ends", player->number, number);
    }
    if (is_gone(&players[debtor])) {
        game_violated("32: who owes an answer lives, or the caller is told", player->number,
                      number);
    }
    if (yield->kind == YIELD_CALL_FOR) {
        const struct request_note *parent = &player->requests[yield->parent_request];
        if (!parent->is_settled && is_over(parent)) {
            game_violated("35: a cancel reaches the leaf", player->number, number);
        }
    }
}

static void check_yields(const struct player *player)
{
    for (uint32_t i = 0; i < player->yield_count; i++) {
        const struct yield_note *yield = &player->yields[i];
        if (load_relaxed(&yield->ends) > 0) { /* one thread */
            continue;
        }
        if (yield->is_cancelled) {
            game_violated("a yield that was taken back ends", player->number, i);
        } else if (yield->kind <= YIELD_CALL_FOR) {
            check_pending_call(player, i);
        } else if (yield->kind == YIELD_NAME) {
            game_names_check_rest(player, yield);
        } else if (yield->kind == YIELD_PUBLISH) {
            game_violated("37: publishing ends", player->number, i);
        } else if (is_gone(&players[yield->target]) || yield->has_timeout) {
            game_violated("20: whoever watches hears of the end", player->number, i);
        }
    }
}

static void check_requests(const struct player *player)
{
    for (uint32_t i = 0; i < player->request_count; i++) {
        const struct request_note *request = &player->requests[i];
        const bool should_hear = player->abandons && !request->is_settled && is_over(request);
        if (should_hear && request->abandons != 1) {
            game_violated("a server that asks for it hears that nobody waits", player->number, i);
        }
    }
}

/* What links of `player` mean now that nothing moves: to itself, if it lives, and to the others. */
static void check_links(const struct player *player)
{
    for (uint32_t i = 0; i < player->link_count; i++) {
        const struct link_note *link = &player->links[i];
        const struct player *other = &players[link->target];
        if (link->is_unlinked) {
            continue;
        }
        const bool tells = (link->flags & SKUA_LINK_TELL) != 0;
        if (!is_gone(player) && is_gone(other) && tells && link->told != 1) {
            game_violated("20: whoever is linked hears of the end", player->number, i);
        }
        if (!is_gone(player) && is_gone(other) && !tells && !is_orderly(other->exit_error) &&
            (link->flags & SKUA_LINK_ONLY_IT) == 0) {
            game_violated("22: a failure reaches who is linked", player->number, i);
        }
        if (is_gone(player) && !is_orderly(player->exit_error) && !is_gone(other) &&
            (link->flags & SKUA_LINK_ONLY_ME) == 0) {
            game_violated("22: a failure reaches the other", player->number, i);
        }
    }
}

/* Whoever has something to do has done it. */
static void check_state(skua_runtime *runtime, const struct player *player)
{
    skua_process_snapshot info;
    const skua_pid pid = {load_relaxed(&player->pid)}; /* one thread */
    if (skua_process_info(runtime, pid, &info) == 0 && info.state == SKUA_PROCESS_READY) {
        game_violated("a process that is ready runs", player->number, 0);
    }
}

void books_check_rest(skua_runtime *runtime)
{
    for (uint32_t i = 0; i < game.players; i++) {
        const struct player *player = &players[i];
        if (load_relaxed(&player->pid) != 0 && !is_gone(player)) { /* one thread */
            check_state(runtime, player);
            check_yields(player);
            check_requests(player);
        }
        check_links(player);
    }
}

/* ---- ends ---- */

/* By itself: done, failed, cancelled, terminated; otherwise because of another. */
static void check_end(const struct player *player)
{
    const int error = player->exit_error;
    const struct player *cause = books_player_of(player->exit_cause);
    if (load_relaxed(&player->terminated) != 0 && error != SKUA_E_TERMINATED) { /* all is over */
        game_violated("24: terminate cannot be caught", player->number, (uint64_t)-error);
    }
    if (is_orderly(error)) {
        const bool was_asked = error == SKUA_E_STOPPED || player->is_done ||
                               load_relaxed(&player->cancelled) != 0; /* all is over */
        if (!was_asked || !skua_pid_is_none(player->exit_cause)) {
            game_violated("23: an orderly end is the process's own", player->number,
                          (uint64_t)-error);
        }
        return;
    }
    if (cause == NULL || cause->exit_error != error ||
        cause->exit_cause.bits != load_relaxed(&cause->pid)) { /* all is over */
        game_violated("22: the cause is the first", player->number, (uint64_t)-error);
        return;
    }
    if (cause != player) {
        books_happened(HAPPENED_CASCADE);
    }
    const bool failed = cause->has_failed && error == GAME_FAILS - (int)cause->number;
    const bool cancelled = error == GAME_CANCELS - (int)cause->number;
    if (!failed && !cancelled && error != SKUA_E_TERMINATED) {
        game_violated("22: the error is that of the first", player->number, (uint64_t)-error);
    }
}

void books_check_ends(void)
{
    for (uint32_t i = 0; i < game.players; i++) {
        const struct player *player = &players[i];
        if (load_relaxed(&player->pid) == 0) { /* all is over */
            continue;
        }
        if (load_relaxed(&player->closes) != 1) { /* all is over */
            game_violated("19: close is called once", player->number, 0);
        }
        if (load_relaxed(&player->exits) == 1) { /* all is over */
            check_end(player);
        }
        for (uint32_t n = 0; n < player->yield_count; n++) {
            if (load_relaxed(&player->yields[n].answers) > 1) { /* all is over */
                game_violated("a call is answered once", player->number, n);
            }
        }
    }
    game_groups_check_ends();
}

void books_on_exit(void *arg, skua_exit *exit)
{
    (void)arg;
    const struct player *known = books_player_of(exit->pid);
    if (known == NULL) {
        return; /* a herald */
    }
    struct player *player = &players[known->number];
    (void)fetch_add_relaxed(&player->exits, 1); /* counter */
    if (!is_gone(player) || exit->error != player->exit_error ||
        !skua_pid_equal(exit->cause, player->exit_cause)) {
        game_violated("19: close and on_exit are told the same", player->number, 0);
    }
}
