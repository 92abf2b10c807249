/* SPDX-License-Identifier: MIT */
/* The simulator's choices: the same seed gives the same run, another seed another one, and among
 * many seeds all choices occur; the hash of a run. */
#include "actor.h"
#include "desk.h"
#include "sim_trace.h"

#define SEED  11
#define SEEDS 50
#define START SKUA_SIM_START_NS

/* ---- a program that does a little of everything ---- */

#define CITIZENS 8
#define ROUNDS   6
#define WAKE_UP  1 /* the tag of their sleep */

static struct actor *citizens[CITIZENS];

static int double_it(skua_payload *input, skua_payload *result)
{
    *result = skua_payload_u64(2, 2 * skua_payload_to_u64(input));
    return 0;
}

/* Results of the calls do not matter: with faults, some fail, and they do so in every run. */
static void live_one_round(struct turn *turn)
{
    const uint64_t chance = skua_random(turn->ctx);
    const uint64_t tag = 100 + turn->actor->counter;
    char news[40] = "longer than a payload holds inside";
    skua_payload letter;
    memcpy(news, &chance, sizeof chance);
    if (skua_payload_copy(world_runtime(), 3, news, sizeof news, &letter) == 0) {
        (void)perform(turn, with_payload(sends(citizens[chance % CITIZENS], 0, 0), letter));
    }
    (void)perform(turn, yields(tag, DESK_DOUBLE, 4, chance));
    const struct act job = offloads(tag, "pool", double_it, tag);
    const struct act urgent = within(SKUA_MILLISECOND, job);
    if (perform(turn, chance % 3 == 0 ? urgent : job) == 0 && chance % 5 == 0) {
        assert_int_equal(perform(turn, cancels(tag)), 0);
    }
    const int asleep = perform(turn, sleeps(WAKE_UP, chance % (20 * SKUA_MILLISECOND)));
    assert_true(asleep == 0 || asleep == SKUA_E_NO_MEMORY);
}

static int live(struct turn *turn, const struct act *act)
{
    bool is_awake = turn_starts(turn);
    (void)act;
    for (size_t i = 0; i < turn->count; i++) {
        is_awake = is_awake || (turn->events[i].type == SKUA_EVENT_COMPLETION &&
                                turn->events[i].tag == WAKE_UP);
    }
    if (is_awake && turn->actor->counter++ == ROUNDS) {
        return 0;
    }
    if (is_awake) {
        live_one_round(turn);
    }
    return ACT_WAITS;
}

static void open_town(uint64_t seed, skua_sim_faults faults)
{
    world_create_sim(seed, (skua_sim_config){.faults = faults});
    (void)desk_open();
    world_register_pool((skua_blocking_pool){.name = "pool", .sim_safe = true});
    world_start();
    for (size_t i = 0; i < CITIZENS; i++) {
        citizens[i] = actor_start(ACTS(does(live, NULL), finishes(ROUNDS)));
    }
}

struct run {
    uint64_t hash;
    uint64_t now;
    struct sim_trace trace; /* to be freed */
    size_t faults[SKUA_SIM_PROCESS_KILL + 1];
};

static struct run run_town(uint64_t seed, skua_sim_faults faults)
{
    open_town(seed, faults);
    world_settle();
    struct run run = {.hash = skua_sim_hash(world_runtime()), .now = world_now()};
    for (uint32_t what = 1; what < COUNT_OF(run.faults); what++) {
        run.faults[what] = sim_fault_count(what);
    }
    run.trace = world->sim.trace;
    world->sim.trace = (struct sim_trace){0};
    world_close();
    return run;
}

static uint64_t hash_of_town(uint64_t seed, skua_sim_faults faults)
{
    struct run run = run_town(seed, faults);
    sim_trace_free(&run.trace);
    return run.hash;
}

static const skua_sim_faults all_faults = {
    .message_delay = 200000,
    .handler_error = 100000,
    .slow_completion = 200000,
    .no_memory = 50000,
    .spurious_wake = 100000,
    .process_kill = 5000,
};

/* ---- the same seed, the same run ---- */

TEST(seed_repeats_a_run_to_the_last_record)
{
    size_t faults[SKUA_SIM_PROCESS_KILL + 1] = {0};
    FOR_ROUNDS (seed, 20) {
        struct run first = run_town(seed, all_faults);
        struct run second = run_town(seed, all_faults);
        assert_int_equal(first.hash, second.hash);
        assert_int_equal(first.now, second.now);
        assert_int_equal(first.trace.count, second.trace.count);
        for (size_t i = 0; i < first.trace.count; i++) {
            assert_same_record(&first.trace.records[i], &second.trace.records[i]);
        }
        for (uint32_t what = 1; what < COUNT_OF(faults); what++) {
            faults[what] += first.faults[what];
        }
        sim_trace_free(&first.trace);
        sim_trace_free(&second.trace);
    }
    for (uint32_t what = 1; what < COUNT_OF(faults); what++) { /* all of them were part of it */
        assert_true(faults[what] > 0);
    }
}

/* Cutting a run into pieces changes nothing: by instants, by waiting, by single steps. */
TEST(run_in_pieces_is_the_same_run)
{
    FOR_ROUNDS (seed, 20) {
        const uint64_t hash = hash_of_town(seed, all_faults);
        open_town(seed, all_faults);
        uint64_t until = START;
        while (skua_sim_run(world_runtime(), until) == 1 && until < START + SKUA_SECOND / 20) {
            until += SKUA_MILLISECOND / 3;
        }
        const int waited =
            skua_process_wait(world_runtime(), citizens[0]->pid, SKUA_MILLISECOND, NULL);
        assert_true(waited == 0 || waited == SKUA_E_TIMEOUT || waited == SKUA_E_NO_PROCESS);
        for (int i = 0; i < 50; i++) {
            (void)skua_sim_step(world_runtime());
        }
        world_settle();
        assert_int_equal(skua_sim_hash(world_runtime()), hash);
    }
}

TEST(seeds_differ)
{
    uint64_t hashes[SEEDS + 1] = {0};
    FOR_ROUNDS (seed, SEEDS) {
        hashes[seed] = hash_of_town(seed, SIM_NO_FAULTS);
        for (uint64_t i = 0; i < seed; i++) {
            assert_true(hashes[i] != hashes[seed]);
        }
    }
}

/* Seed 0 is the default, as everywhere. */
TEST(seed_zero_is_the_default)
{
    assert_int_equal(hash_of_town(0, SIM_NO_FAULTS), hash_of_town(1, SIM_NO_FAULTS));
}

TEST(pids_are_the_same_in_every_simulation)
{
    struct sim_scene other;
    sim_begin(&other, SEED, SIM_NO_FAULTS);
    world_open_sim(SEED, SIM_NO_FAULTS);
    const struct actor *actor = actor_start(NO_ACTS);
    assert_true(skua_pid_equal(api_submit(&other.api, &api_idler, NULL), actor->pid));
    sim_end(&other);
}

/* ---- choices ---- */

TEST(next_process_is_any_of_the_ready_ones)
{
    unsigned seen[27] = {0};
    FOR_ROUNDS (seed, SEEDS) {
        struct actor *racers[3];
        world_open_sim(seed, SIM_NO_FAULTS);
        for (size_t i = 0; i < 3; i++) {
            racers[i] = actor_start(ACTS(finishes(0)));
        }
        world_settle();
        assert_int_equal(sim_count(SKUA_SIM_STEP, 0), 3);
        size_t order = 0;
        for (size_t i = 0; i < 3; i++) {
            const skua_pid pid = sim_find(SKUA_SIM_STEP, 0, i)->pid;
            order = 3 * order + (skua_pid_equal(pid, racers[1]->pid) ? 1 : 0) +
                    (skua_pid_equal(pid, racers[2]->pid) ? 2 : 0);
        }
        seen[order]++;
    }
    unsigned orders = 0;
    for (size_t i = 0; i < COUNT_OF(seen); i++) {
        orders += seen[i] > SEEDS / 20;
    }
    assert_int_equal(orders, 6);
}

#define LETTERS 30

TEST(batches_are_cut_in_many_ways)
{
    test_of_steps("a task receives one event at a time");
    unsigned batches[LETTERS + 2] = {0}; /* how often that many events came at once */
    FOR_ROUNDS (seed, SEEDS) {
        world_open_sim(seed, SIM_NO_FAULTS);
        struct actor *reader = actor_start(ACTS(awaits(LETTERS), finishes(0)));
        for (uint64_t i = 0; i < LETTERS; i++) {
            assert_int_equal(world_send(reader->pid, skua_payload_u64(0, i)), 0);
        }
        world_settle();
        assert_int_equal(reader->closes, 1);
        assert_int_equal(reader->seen_count, LETTERS);
        for (size_t i = 0; i < LETTERS; i++) {
            assert_int_equal(reader->seen[i].value, i);
        }
        for (size_t i = 0; i < reader->steps; i++) {
            batches[sim_find(SKUA_SIM_STEP, 0, i)->count]++;
        }
    }
    for (size_t i = 1; i <= 8; i++) {
        assert_true(batches[i] > 0);
    }
    assert_true(batches[LETTERS + 1] > SEEDS / 4); /* often all at once, as on threads */
}

TEST(turns_have_different_lengths)
{
    unsigned turns_seen[11] = {0};
    FOR_ROUNDS (seed, SEEDS) {
        world_open_sim(seed, SIM_NO_FAULTS);
        (void)actor_start(ACTS(continues(9), finishes(0)));
        unsigned turns = 0;
        while (skua_sim_step(world_runtime()) == 1) {
            turns++;
        }
        assert_in_range(turns, 3, 10); /* one to four steps each */
        turns_seen[turns]++;
    }
    assert_true(turns_seen[3] > 0 && turns_seen[4] > 0 && turns_seen[5] > 0);
}

/* ---- the hash ---- */

/* What a process does in its life. */
struct life {
    skua_payload message; /* that it sends to itself */
    skua_payload input;   /* of a command */
    uint32_t command;
    uint64_t tag;
    uint64_t timeout;
    bool cancels;
    int error; /* with which it ends */
};

static uint64_t hash_of(struct life life)
{
    world_create_sim(SEED, (skua_sim_config){0});
    (void)desk_open();
    world_start();
    assert_int_equal(skua_sim_hash(world_runtime()), 0);
    struct actor *actor = actor_new(NO_ACTS);
    actor->script =
        ACTS(with_payload(sends(actor, 0, 0), life.message), awaits(1),
             within(life.timeout, with_payload(yields(life.tag, life.command, 0, 0), life.input)),
             life.cancels ? cancels(999) : repeats(0), awaits(1),
             life.error != 0 ? fails(life.error) : finishes(0));
    assert_int_equal(actor_run(actor).error, life.error);
    const uint64_t hash = skua_sim_hash(world_runtime());
    assert_int_equal(skua_sim_hash(world_runtime()), hash);
    world_close();
    return hash;
}

TEST(hash_tells_runs_apart)
{
    char text[] = "forty bytes of text that are not inside";
    char same[] = "forty bytes of text that are not inside";
    char other[] = "forty bytes of text that are not insidf";
    const struct life plain = {
        .message = skua_payload_owned(1, text, sizeof text, NULL),
        .input = skua_payload_u64(2, 3),
        .command = DESK_DOUBLE,
        .tag = 4,
        .timeout = SKUA_FOREVER,
    };
    const uint64_t hash = hash_of(plain);
    assert_int_equal(hash_of(plain), hash);
    struct life elsewhere = plain;
    elsewhere.message = skua_payload_owned(1, same, sizeof same, NULL);
    assert_int_equal(hash_of(elsewhere), hash);

    struct life different[8];
    for (size_t i = 0; i < COUNT_OF(different); i++) {
        different[i] = plain;
    }
    different[0].message = skua_payload_owned(1, other, sizeof other, NULL);
    different[1].message = skua_payload_owned(9, text, sizeof text, NULL);
    different[2].input = skua_payload_u64(2, 4);
    different[3].tag = 5;
    different[4].command = DESK_UNKNOWN;
    different[5].cancels = true;
    different[6].timeout = SKUA_SECOND;
    different[7].error = SKUA_E_USER;
    FOR_ROWS (life, different) {
        assert_true(hash_of(*life) != hash);
    }
    struct life unknown = different[4]; /* no completion brings its input back */
    unknown.input = skua_payload_u64(2, 4);
    assert_true(hash_of(unknown) != hash_of(different[4]));
}

TEST(hash_leaves_pointers_out)
{
    int objects[2];
    const struct life plain = {
        .message = skua_payload_pointer(1, &objects[0], NULL),
        .input = skua_payload_empty(0),
        .command = DESK_DOUBLE,
        .tag = 4,
        .timeout = SKUA_FOREVER,
    };
    struct life changed = plain;
    changed.message = skua_payload_pointer(1, &objects[1], NULL);
    assert_int_equal(hash_of(changed), hash_of(plain));
    changed.message = skua_payload_pointer(2, &objects[1], NULL);
    assert_true(hash_of(changed) != hash_of(plain));
}
