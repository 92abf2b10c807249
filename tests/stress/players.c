/* SPDX-License-Identifier: MIT */
#include "players.h"

/* ---- players ---- */

struct player {
    uint32_t throws;
    uint32_t is_playing;
};

static skua_init_fn player_init;
static skua_step_fn player_step;

static void count_close(void *self)
{
    (void)self;
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
static int player_init(void *self, skua_context *ctx, const char *method, skua_payload *input,
                       size_t input_count)
{
    (void)ctx;
    (void)method;
    struct player *player = self;
    player->throws = input_count > 0 ? (uint32_t)skua_payload_to_u64(&input[0]) : 0;
    stress_tally(TALLY_INITS);
    return 0;
}

/* Returns whether the game goes on. */
static bool throw_ball(skua_context *ctx, skua_pid to, uint64_t throws_left)
{
    const int error = skua_context_send(ctx, to, skua_payload_u64(PAYLOAD_BALL, throws_left));
    stress_sent(error);
    return error == 0 && throws_left > 0;
}

static bool begin_game(struct player *player, skua_context *ctx)
{
    const uint64_t throws = player->throws;
    player->throws = 0;
    player->is_playing = 1;
    if (throws == 0) {
        return true; /* the other one begins */
    }
    skua_pid other;
    const int error = skua_context_spawn(ctx, &players, NULL, NULL, 0, &other);
    stress_spawned(NULL, error, NULL);
    return error == 0 && throw_ball(ctx, other, throws);
}

static int player_step(void *self, skua_context *ctx, skua_event *events, size_t event_count,
                       skua_step *out)
{
    struct player *player = self;
    bool goes_on = player->is_playing != 0 || begin_game(player, ctx);
    for (size_t i = 0; i < event_count; i++) {
        stress_operation();
        if (events[i].type != SKUA_EVENT_MESSAGE) {
            goes_on = false; /* the shutdown */
            continue;
        }
        const uint64_t throws_left = skua_payload_to_u64(&events[i].payload);
        goes_on = goes_on && throws_left > 0 && throw_ball(ctx, events[i].from, throws_left - 1);
    }
    if (!goes_on) {
        skua_step_done(out, skua_payload_empty(PAYLOAD_OTHER));
    }
    return 0;
}

void watch_game(uint64_t *random, uint64_t hang_ns)
{
    skua_payload throws = skua_payload_u64(PAYLOAD_OTHER, 1 + random_below(random, 60));
    skua_pid pid;
    const int error = skua_process_submit(current.runtime, &players, NULL, &throws, 1, &pid);
    stress_spawned(NULL, error, NULL);
    if (error == 0 && stress_wait(pid, hang_ns) == SKUA_E_TIMEOUT) {
        stress_fault(&stress, STRESS_LOST, "a game did not end");
    }
}

/* ---- echoes ---- */

struct echo {
    skua_payload input;
};

static int echo_init(void *self, skua_context *ctx, const char *method, skua_payload *input,
                     size_t input_count)
{
    (void)ctx;
    (void)method;
    (void)input_count;
    struct echo *echo = self;
    echo->input = skua_payload_take(&input[0]);
    stress_tally(TALLY_INITS);
    return 0;
}

static int echo_step(void *self, skua_context *ctx, skua_event *events, size_t event_count,
                     skua_step *out)
{
    (void)ctx;
    (void)events;
    (void)event_count;
    struct echo *echo = self;
    skua_step_done(out, skua_payload_take(&echo->input));
    return 0;
}

static void echo_close(void *self)
{
    struct echo *echo = self;
    skua_payload_drop(&echo->input);
    count_close(self);
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
    const int error = skua_process_run(current.runtime, &echoes, NULL, &input, 1, &end);
    stress_spawned(NULL, error, NULL);
    if (error != 0) {
        return;
    }
    if (end.error == 0 && end.type == &echoes) {
        /* on_exit may have taken the result. */
        stress_expect(end.result.storage == SKUA_PAYLOAD_EMPTY ||
                          stress_read_token(&end.result) == token,
                      "result of an echo", end.error);
    } else {
        stress_expect(end.error == SKUA_E_TERMINATED, "end of an echo", end.error);
    }
    skua_payload_drop(&end.result);
}
