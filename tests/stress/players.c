/* SPDX-License-Identifier: MIT */
#include "players.h"

/* ---- players ---- */

struct player {
    uint64_t throws;
};

static skua_init_fn player_init;
static skua_step_fn player_step;

static void count_close(void *self, skua_context *ctx, const skua_exit *exit)
{
    (void)self;
    (void)ctx;
    (void)exit;
    stress_tally(TALLY_CLOSES);
}

static const skua_process_type players = {
    .name = "player",
    .state_size = sizeof(struct player),
    .init = player_init,
    .step = player_step,
    .close = count_close,
};

/* The player that begins gets the number of throws, the other one nothing. */
static int player_init(void *self, skua_context *ctx, skua_payload *input, size_t input_count)
{
    (void)ctx;
    struct player *player = self;
    (void)input_count;
    player->throws = skua_payload_to_u64(&input[0]); /* or nothing */
    stress_tally(TALLY_INITS);
    return 0;
}

/* Returns whether the game goes on. */
static bool throw_ball(skua_context *ctx, skua_pid to, uint64_t throws_left)
{
    const int error = skua_send(ctx, to, skua_payload_u64(PAYLOAD_BALL, throws_left));
    stress_sent(error);
    return error == 0 && throws_left > 0;
}

static bool begin_game(const struct player *player, skua_context *ctx)
{
    if (player->throws == 0) {
        return true; /* the other one begins */
    }
    skua_pid other;
    const int error = skua_spawn(ctx, &players, skua_nothing(), &other);
    stress_spawned(NULL, error, NULL);
    return error == 0 && throw_ball(ctx, other, player->throws);
}

static int player_step(void *self, skua_context *ctx, skua_event *events, size_t event_count)
{
    bool goes_on = true;
    for (size_t i = 0; i < event_count; i++) {
        stress_operation();
        if (events[i].type == SKUA_EVENT_START) {
            goes_on = begin_game(self, ctx);
            continue;
        }
        const uint64_t throws_left = skua_payload_to_u64(&events[i].payload);
        goes_on = goes_on && throws_left > 0 && throw_ball(ctx, events[i].from, throws_left - 1);
    }
    return goes_on ? 0 : skua_done(ctx, skua_payload_empty(PAYLOAD_OTHER));
}

void watch_game(uint64_t *random, uint64_t hang_ns)
{
    skua_payload throws = skua_payload_u64(PAYLOAD_OTHER, 1 + random_below(random, 60));
    skua_pid pid;
    const int error = skua_process_submit(current.runtime, &players, throws, &pid);
    stress_spawned(NULL, error, NULL);
    if (error == 0 && stress_wait(pid, hang_ns) == SKUA_E_TIMEOUT) {
        stress_fault(&stress, STRESS_LOST, "a game did not end");
    }
}

/* ---- echoes ---- */

struct echo {
    skua_payload input;
};

static int echo_init(void *self, skua_context *ctx, skua_payload *input, size_t input_count)
{
    (void)ctx;
    (void)input_count;
    struct echo *echo = self;
    echo->input = skua_payload_take(&input[0]);
    stress_tally(TALLY_INITS);
    return 0;
}

static int echo_step(void *self, skua_context *ctx, skua_event *events, size_t event_count)
{
    (void)events;
    (void)event_count;
    struct echo *echo = self;
    return skua_done(ctx, skua_payload_take(&echo->input));
}

static void echo_close(void *self, skua_context *ctx, const skua_exit *exit)
{
    struct echo *echo = self;
    skua_payload_drop(&echo->input);
    count_close(self, ctx, exit);
}

static const skua_process_type echoes = {
    .name = "echo",
    .state_size = sizeof(struct echo),
    .init = echo_init,
    .step = echo_step,
    .close = echo_close,
};

void run_echo(uint64_t *random)
{
    const uint64_t token = random_next(random);
    skua_payload input = stress_make_token(random, token);
    skua_exit end;
    const int error = skua_process_run(current.runtime, &echoes, input, &end);
    stress_spawned(NULL, error, NULL);
    if (error != 0) {
        return;
    }
    if (end.error == 0 && end.type == &echoes) {
        /* on_exit may have taken the result. */
        stress_expect(end.result.storage == SKUA_PAYLOAD_TAKEN ||
                          stress_read_token(&end.result) == token,
                      "result of an echo", end.error);
    } else {
        stress_expect(end.error == SKUA_E_TERMINATED || end.error == SKUA_E_STOPPED,
                      "end of an echo", end.error);
    }
    skua_payload_drop(&end.result);
}
