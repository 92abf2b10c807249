/* SPDX-License-Identifier: MIT */
/* Plays random games of related processes and checks what must hold for each (game.h).
 *
 *   property_relations [--seeds N] [--first S] [--driver sim|threads|both]
 *   property_relations --first S --seeds 1 --driver sim [--trace]      one game */
#include <inttypes.h>
#include <limits.h>
#include <malloc.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/monotonic.h"
#include "counting_allocator.h"
#include "game.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SEEDS_DEFAULT 100
#else
#define SEEDS_DEFAULT 400
#endif

/* Ends a hang; a game takes milliseconds. */
#define HANG_SECONDS 120

struct options {
    uint64_t first;
    uint64_t seeds;
    bool uses_sim;
    bool uses_threads;
    bool trace;
};

/* ---- a game ---- */

static uint32_t rate(uint64_t *random, uint32_t most)
{
    const bool is_there = random_below(random, 2) == 0;
    const uint32_t often = 1 + random_below(random, most);
    return is_there ? often : 0;
}

static void generate(uint64_t seed, bool is_simulated, bool trace)
{
    uint64_t random = random_mix(seed + RANDOM_STEP);
    books_begin();
    game = (struct game){.seed = seed, .is_simulated = is_simulated, .trace = trace};
    game.players = 3 + random_below(&random, PLAYERS_MAX - 2);
    game.plan = 2 + random_below(&random, 30);
    game.workers = 1 + random_below(&random, 4);
    game.has_names = random_below(&random, 2) == 0;
    game.has_groups = random_below(&random, 2) == 0;
    game.name_limit = is_simulated && random_below(&random, 4) == 0 ? 2 : 0;
    game.moment_ns = is_simulated ? SKUA_MILLISECOND : 20 * SKUA_MICROSECOND;
    if (is_simulated && random_below(&random, 3) == 0) {
        game.step_ns = 1 + random_below(&random, 2 * SKUA_MILLISECOND);
    }
    if (is_simulated && random_below(&random, 4) > 0) {
        game.faults = (skua_sim_faults){.delay_max_ns = 8 * game.moment_ns,
                                        .message_delay = rate(&random, 400000),
                                        .process_kill = rate(&random, 3000),
                                        .no_memory = rate(&random, 60000),
                                        .spurious_wake = rate(&random, 100000)};
    }
    for (uint32_t i = 0; i < game.players; i++) {
        player_prepare(i, &random);
    }
}

static void print_record(void *arg, const skua_sim_record *record)
{
    char text[300];
    (void)arg;
    (void)skua_sim_record_format(record, text, sizeof text);
    (void)printf("%s\n", text);
}

static uint32_t start_player(skua_runtime *runtime, uint32_t number, uint32_t name)
{
    struct player *player = &players[number];
    skua_payload input = player_input(number);
    const bool is_named = name < GAME_NAMES;
    const skua_spawn_options options = {.type = &player->type,
                                        .input = &input,
                                        .input_count = 1,
                                        .name = is_named ? game_name_text(name) : NULL};
    player_expect_name(player, name);
    const int error = skua_process_submit_with(runtime, &options, NULL);
    if (error == 0 && is_named && game.is_simulated) {
        game_name_given(NULL, player, player, name); /* nobody runs yet */
    }
    return error == 0 || load_relaxed(&player->closes) > 0; /* its name was taken */
}

/* The first half; the others are spawned by these, or not at all. Every third has a name. */
static uint32_t start_players(skua_runtime *runtime)
{
    const uint32_t roots = (game.players + 1) / 2;
    uint32_t started = 0;
    for (uint32_t i = 0; i < roots; i++) {
        store_relaxed(&players[i].inits, 2); /* nobody else may start it */
    }
    for (uint32_t i = 0; i < roots; i++) {
        started += start_player(runtime, i, game.has_names && i % 3 == 0 ? i / 3 : GAME_NAMES);
    }
    return started;
}

/* Ends a hang, with a word. */
static void await_names(skua_runtime *runtime)
{
    const uint64_t deadline = monotonic_ns() + HANG_SECONDS / 4 * SKUA_SECOND;
    while (!game_names_hear_all(runtime)) {
        if (monotonic_ns() > deadline) {
            game_violated("36: whoever waits for a name hears of its holder", 0, 0);
            return;
        }
        (void)sched_yield();
    }
}

static void play(skua_runtime *runtime)
{
    const uint32_t started = start_players(runtime);
    if (game.is_simulated) {
        const int error = skua_sim_run(runtime, SKUA_FOREVER);
        if (error != SKUA_E_AT_REST && error < 0) {
            game_violated("a game comes to rest", 0, (uint64_t)-error);
        }
        books_check_rest(runtime);
    } else {
        while (load_relaxed(&game_plans_over) < started) { /* counter */
            (void)sched_yield();
        }
        await_names(runtime);
    }
    /* Whoever wants a cancel as an event obeys; all others are ended. */
    const int error = skua_runtime_stop(runtime, 60 * SKUA_SECOND);
    if (error != 0) {
        game_violated("a game can be stopped", 0, (uint64_t)-error);
    }
}

static bool run_game(const struct options *options, uint64_t seed, bool is_simulated)
{
    struct counting_allocator memory;
    skua_runtime *runtime = NULL;
    generate(seed, is_simulated, options->trace);
    const skua_sim_config sim = {.faults = game.faults,
                                 .step_ns = game.step_ns,
                                 .on_record = game.trace ? print_record : NULL};
    counting_allocator_init(&memory);
    const skua_runtime_config config = {.seed = seed,
                                        .sim = is_simulated ? &sim : NULL,
                                        .worker_count = is_simulated ? 0 : game.workers,
                                        .name_limit = game.name_limit,
                                        .on_exit = books_on_exit,
                                        .on_dead_letter = game_groups_on_dead_letter,
                                        .alloc = counting_allocate,
                                        .alloc_arg = &memory};
    if (skua_runtime_create(&runtime, &config) != 0 || skua_runtime_start(runtime) != 0) {
        abort();
    }
    play(runtime);
    skua_runtime_destroy(runtime);
    books_check_ends();
    if (!counting_allocator_is_clean(&memory)) {
        game_violated("nothing leaks", 0, 0);
    }
    return game_violations() == 0;
}

static int run_games(const struct options *options, bool is_simulated)
{
    const char *driver = is_simulated ? "sim" : "threads";
    for (uint64_t i = 0; i < options->seeds; i++) {
        const uint64_t seed = options->first + i;
        (void)alarm(HANG_SECONDS);
        if (!run_game(options, seed, is_simulated)) {
            return EXIT_FAILURE;
        }
    }
    (void)alarm(0);
    (void)printf("%s: %" PRIu64 " games from seed %" PRIu64 " on: all properties hold\n", driver,
                 options->seeds, options->first);
    if (!books_cover_all() && options->seeds >= SEEDS_DEFAULT) {
        (void)fprintf(stderr, "something never happened\n");
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}

/* ---- games that do not end by themselves ---- */

static struct sigaction former[NSIG];

/* Names the game, and lets the signal do what it did before. */
static void name_game(int number)
{
    game_violated("a game neither crashes nor hangs", 0, (uint64_t)number);
    (void)sigaction(number, &former[number], NULL);
    (void)raise(number);
}

static void watch_for_crashes(void)
{
    static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGABRT, SIGALRM};
    struct sigaction action = {.sa_handler = name_game};
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        (void)sigaction(signals[i], &action, &former[signals[i]]);
    }
}

/* ---- arguments ---- */

static int complain(const char *name)
{
    (void)fprintf(
        stderr, "usage: %s [--seeds N] [--first S] [--driver sim|threads|both] [--trace]\n", name);
    return EXIT_FAILURE;
}

/* Reads one option; returns how many arguments it took, or 0. */
static int read_one(const char *option, const char *value, struct options *options)
{
    if (strcmp(option, "--trace") == 0) {
        options->trace = true;
        return 1;
    }
    if (value == NULL) {
        return 0;
    }
    if (strcmp(option, "--driver") == 0) {
        options->uses_sim = strcmp(value, "threads") != 0;
        options->uses_threads = strcmp(value, "sim") != 0;
        return 2;
    }
    uint64_t *number = strcmp(option, "--seeds") == 0   ? &options->seeds
                       : strcmp(option, "--first") == 0 ? &options->first
                                                        : NULL;
    if (number != NULL) {
        *number = strtoull(value, NULL, 10);
    }
    return number != NULL ? 2 : 0;
}

int main(int argc, char **argv)
{
    struct options options = {.seeds = SEEDS_DEFAULT, .uses_sim = true, .uses_threads = true};
    for (int i = 1; i < argc;) {
        const int taken = read_one(argv[i], argv[i + 1], &options);
        if (taken == 0) {
            return complain(argv[0]);
        }
        i += taken;
    }
    watch_for_crashes();
    (void)mallopt(M_MMAP_THRESHOLD, INT_MAX);
    (void)mallopt(M_TRIM_THRESHOLD, INT_MAX);
    if (options.uses_sim && run_games(&options, true) != EXIT_SUCCESS) {
        return EXIT_FAILURE;
    }
    return options.uses_threads ? run_games(&options, false) : EXIT_SUCCESS;
}
