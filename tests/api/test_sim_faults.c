/* SPDX-License-Identifier: MIT */
/* The simulator's choices: the same seed gives the same run, another seed another one; each fault,
 * that it comes, that it is recorded, and that nothing comes at rate 0; the trace and the hash;
 * handlers and pools in a simulation. */

#include "sim_support.h"

#define SEED         11
#define SEEDS        50
#define COMMAND_ECHO 1
#define START        SKUA_SIM_START_NS

static const skua_sim_faults no_faults = {0};

/* Gives back its input at once. */
static int echo(void *arg, skua_command *command, skua_payload *result)
{
    unsigned *calls = arg;
    *calls += 1;
    *result = skua_payload_take(&command->input);
    return 0;
}

static void create_with_echo(struct sim_scene *scene, uint64_t seed, skua_sim_faults faults,
                             unsigned *calls)
{
    sim_create(scene, seed, (skua_sim_config){.faults = faults});
    const skua_handler handler = {.name = "echo", .run = echo, .arg = calls, .sim_safe = true};
    const skua_blocking_pool pool = {.name = "pool", .sim_safe = true};
    assert_int_equal(skua_command_register(scene->runtime, COMMAND_ECHO, &handler), 0);
    assert_int_equal(skua_blocking_register(scene->runtime, &pool), 0);
    api_start(&scene->api);
}

static bool is_waiting_for_cancel(const struct sim_turn *turn)
{
    return !api_finish_if_cancelled(turn->events, turn->count, turn->out);
}

/* Does nothing until it is cancelled. */
static int obedient(void *arg, const struct sim_turn *turn)
{
    (void)arg;
    (void)is_waiting_for_cancel(turn);
    return 0;
}

/* ---- a program that does a little of everything ---- */

#define CITIZENS 8
#define ROUNDS   6

struct town {
    struct citizen {
        struct town *town;
        struct sim_actor actor;
        unsigned rounds;
    } citizens[CITIZENS];
    unsigned echoes;
};

static int work_a_little(skua_payload *input, skua_payload *result)
{
    *result = skua_payload_u64(2, 2 * skua_payload_to_u64(input));
    return 0;
}

/* Results of the calls do not matter: with faults, some fail, and they do so in every run. */
static void live_one_round(struct citizen *citizen, const struct sim_turn *turn)
{
    const uint64_t chance = skua_context_random(turn->ctx);
    const struct citizen *friend = &citizen->town->citizens[chance % CITIZENS];
    const uint64_t tag = 100 + citizen->rounds;
    char news[40] = "longer than a payload holds inside";
    skua_payload letter;
    memcpy(news, &chance, sizeof chance);
    if (skua_payload_copy(skua_context_runtime(turn->ctx), 3, news, sizeof news, &letter) == 0) {
        (void)skua_context_send(turn->ctx, friend->actor.pid, letter);
    }
    (void)skua_step_yield(turn->out, COMMAND_ECHO, tag, skua_payload_u64(4, chance));
    if (chance % 3 == 0) {
        (void)skua_step_deadline(turn->out, skua_context_deadline(turn->ctx, SKUA_MILLISECOND));
    }
    if (skua_step_blocking(turn->out, tag, "pool", work_a_little, skua_payload_u64(5, tag)) == 0 &&
        chance % 5 == 0) {
        assert_int_equal(skua_step_cancel(turn->out, tag), 0);
    }
    const int asleep = skua_step_sleep(turn->out, 1, chance % (20 * SKUA_MILLISECOND));
    assert_true(asleep == 0 || asleep == SKUA_E_NO_MEMORY);
}

static int citizen_step(void *arg, const struct sim_turn *turn)
{
    struct citizen *citizen = arg;
    if (!is_waiting_for_cancel(turn)) {
        return 0;
    }
    if (turn->count == 0 || sim_completion(turn, 1) != NULL) {
        if (citizen->rounds++ == ROUNDS) {
            skua_step_done(turn->out, skua_payload_u64(0, citizen->rounds));
            return 0;
        }
        live_one_round(citizen, turn);
    }
    return 0;
}

static const skua_sim_faults all_faults = {
    .message_delay = 200000,
    .handler_error = 100000,
    .slow_completion = 200000,
    .no_memory = 50000,
    .spurious_wake = 100000,
    .process_kill = 5000,
};

static void found_town(struct sim_scene *scene, struct town *town, uint64_t seed,
                       skua_sim_faults faults)
{
    memset(town, 0, sizeof *town);
    create_with_echo(scene, seed, faults, &town->echoes);
    for (size_t i = 0; i < CITIZENS; i++) {
        struct citizen *citizen = &town->citizens[i];
        citizen->town = town;
        citizen->actor = (struct sim_actor){.function = citizen_step, .arg = citizen};
        sim_submit(scene, &citizen->actor);
    }
}

static void assert_same_record(const skua_sim_record *a, const skua_sim_record *b)
{
    assert_int_equal(a->type, b->type);
    assert_int_equal(a->what, b->what);
    assert_int_equal(a->now_ns, b->now_ns);
    assert_int_equal(a->pid.bits, b->pid.bits);
    assert_ptr_equal(a->type_name, b->type_name);
    assert_int_equal(a->step, b->step);
    assert_int_equal(a->count, b->count);
    assert_int_equal(a->tag, b->tag);
    assert_int_equal(a->from.bits, b->from.bits);
    assert_int_equal(a->error, b->error);
}

static void assert_same_trace(const struct sim_trace *a, const struct sim_trace *b)
{
    assert_int_equal(a->count, b->count);
    for (size_t i = 0; i < a->count; i++) {
        assert_same_record(&a->records[i], &b->records[i]);
    }
}

/* ---- the same seed, the same run ---- */

TEST(sim_seed_repeats_a_run_to_the_last_record)
{
    static struct town town;
    size_t faults[SKUA_SIM_PROCESS_KILL + 1] = {0};
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct sim_scene first;
        struct sim_scene second;
        found_town(&first, &town, seed, all_faults);
        sim_run_to_rest(&first);
        found_town(&second, &town, seed, all_faults);
        sim_run_to_rest(&second);
        assert_int_equal(skua_sim_hash(first.runtime), skua_sim_hash(second.runtime));
        assert_int_equal(skua_sim_now(first.runtime), skua_sim_now(second.runtime));
        assert_same_trace(&first.trace, &second.trace);
        for (uint32_t what = 1; what < COUNT_OF(faults); what++) {
            faults[what] += sim_count(&first, SKUA_SIM_FAULT, what);
        }
        sim_end(&first);
        sim_end(&second);
    }
    for (uint32_t what = 1; what < COUNT_OF(faults); what++) { /* all of them were part of it */
        assert_true(faults[what] > 0);
    }
}

/* Cutting a run into pieces changes nothing: by instants, by single things, by waiting. */
TEST(sim_run_in_pieces_is_the_same_run)
{
    static struct town town;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct sim_scene whole;
        struct sim_scene pieces;
        found_town(&whole, &town, seed, all_faults);
        sim_run_to_rest(&whole);
        found_town(&pieces, &town, seed, all_faults);
        uint64_t until = START;
        while (skua_sim_run(pieces.runtime, until) == 1 && until < START + SKUA_SECOND / 20) {
            until += SKUA_MILLISECOND / 3;
        }
        const int waited =
            skua_process_wait(pieces.runtime, town.citizens[0].actor.pid, SKUA_MILLISECOND, NULL);
        assert_true(waited == 0 || waited == SKUA_E_TIMEOUT || waited == SKUA_E_NO_PROCESS);
        for (int i = 0; i < 50; i++) {
            (void)skua_sim_step(pieces.runtime);
        }
        sim_run_to_rest(&pieces);
        assert_int_equal(skua_sim_hash(whole.runtime), skua_sim_hash(pieces.runtime));
        sim_end(&whole);
        sim_end(&pieces);
    }
}

TEST(sim_seeds_differ)
{
    static struct town town;
    uint64_t hashes[SEEDS];
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct sim_scene scene;
        found_town(&scene, &town, seed, no_faults);
        sim_run_to_rest(&scene);
        hashes[seed - 1] = skua_sim_hash(scene.runtime);
        for (uint64_t i = 0; i < seed - 1; i++) {
            assert_true(hashes[i] != hashes[seed - 1]);
        }
        sim_end(&scene);
    }
}

/* Seed 0 is the default, as everywhere. */
TEST(sim_seed_zero_is_the_default)
{
    static struct town town;
    uint64_t hashes[2];
    for (uint64_t seed = 0; seed < 2; seed++) {
        struct sim_scene scene;
        found_town(&scene, &town, seed, no_faults);
        sim_run_to_rest(&scene);
        hashes[seed] = skua_sim_hash(scene.runtime);
        sim_end(&scene);
    }
    assert_int_equal(hashes[0], hashes[1]);
}

/* ---- choices ---- */

struct order {
    unsigned first[3];
    unsigned count;
};

struct racer {
    struct order *order;
    unsigned number;
};

static int race(void *arg, const struct sim_turn *turn)
{
    struct racer *racer = arg;
    racer->order->first[racer->order->count++] = racer->number;
    return sim_done(turn);
}

TEST(sim_next_process_is_any_of_the_ready_ones)
{
    unsigned seen[27] = {0};
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct sim_scene scene;
        struct order order = {.count = 0};
        struct racer racers[3];
        struct sim_actor actors[3];
        sim_begin(&scene, seed, no_faults);
        for (unsigned i = 0; i < 3; i++) {
            racers[i] = (struct racer){&order, i};
            actors[i] = (struct sim_actor){.function = race, .arg = &racers[i]};
            sim_submit(&scene, &actors[i]);
        }
        sim_run_to_rest(&scene);
        assert_int_equal(order.count, 3);
        seen[order.first[0] * 9 + order.first[1] * 3 + order.first[2]]++;
        sim_end(&scene);
    }
    unsigned orders = 0;
    for (size_t i = 0; i < COUNT_OF(seen); i++) {
        orders += seen[i] > SEEDS / 20;
    }
    assert_int_equal(orders, 6);
}

#define LETTERS 30

struct reader {
    uint64_t next;
    uint64_t batches[LETTERS + 1]; /* how often that many came at once */
};

static int read_in_order(void *arg, const struct sim_turn *turn)
{
    struct reader *reader = arg;
    reader->batches[turn->count]++;
    for (size_t i = 0; i < turn->count; i++) {
        if (turn->events[i].type == SKUA_EVENT_MESSAGE) {
            assert_int_equal(skua_payload_to_u64(&turn->events[i].payload), reader->next++);
        }
    }
    return reader->next == LETTERS ? sim_done(turn) : 0;
}

TEST(sim_batches_are_cut_in_many_ways)
{
    struct reader total = {0};
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct sim_scene scene;
        struct reader reader = {0};
        struct sim_actor actor = {.function = read_in_order, .arg = &reader};
        sim_begin(&scene, seed, no_faults);
        sim_submit(&scene, &actor);
        for (uint64_t i = 0; i < LETTERS; i++) {
            assert_int_equal(skua_message_send(scene.runtime, actor.pid, skua_payload_u64(0, i)),
                             0);
        }
        sim_run_to_rest(&scene);
        assert_int_equal(actor.closes, 1);
        for (size_t i = 0; i <= LETTERS; i++) {
            total.batches[i] += reader.batches[i];
        }
        sim_end(&scene);
    }
    for (size_t i = 1; i <= 8; i++) {
        assert_true(total.batches[i] > 0);
    }
    assert_true(total.batches[LETTERS] > SEEDS / 4); /* often all at once, as on threads */
}

static int continue_ten_times(void *arg, const struct sim_turn *turn)
{
    unsigned *steps = arg;
    if (++*steps == 10) {
        return sim_done(turn);
    }
    skua_step_continue(turn->out);
    return 0;
}

TEST(sim_turns_have_different_lengths)
{
    unsigned turns_seen[11] = {0};
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct sim_scene scene;
        unsigned steps = 0;
        struct sim_actor actor = {.function = continue_ten_times, .arg = &steps};
        sim_begin(&scene, seed, no_faults);
        sim_submit(&scene, &actor);
        unsigned turns = 0;
        while (skua_sim_step(scene.runtime) == 1) {
            turns++;
        }
        assert_in_range(turns, 3, 10); /* four steps at most, as on threads */
        turns_seen[turns]++;
        sim_end(&scene);
    }
    assert_true(turns_seen[3] > 0 && turns_seen[4] > 0 && turns_seen[5] > 0);
}

/* ---- the hash ---- */

struct hashed {
    skua_payload message;
    skua_payload input;
    uint32_t command;
    uint64_t tag;
    bool cancels;
    uint64_t deadline;
    int error;
};

static int do_hashed(void *arg, const struct sim_turn *turn)
{
    struct hashed *hashed = arg;
    if (turn->count == 0) {
        return skua_context_send(turn->ctx, skua_context_self(turn->ctx), hashed->message);
    }
    if (sim_completion(turn, hashed->tag) == NULL) {
        assert_int_equal(skua_step_yield(turn->out, hashed->command, hashed->tag, hashed->input),
                         0);
        assert_int_equal(skua_step_deadline(turn->out, hashed->deadline), 0);
        return hashed->cancels ? skua_step_cancel(turn->out, 999) : 0;
    }
    skua_step_done(turn->out, skua_payload_empty(0));
    return hashed->error;
}

static uint64_t hash_of(struct hashed hashed)
{
    struct sim_scene scene;
    unsigned calls = 0;
    create_with_echo(&scene, SEED, no_faults, &calls);
    assert_int_equal(skua_sim_hash(scene.runtime), 0);
    (void)sim_run_actor(&scene, do_hashed, &hashed);
    const uint64_t hash = skua_sim_hash(scene.runtime);
    assert_int_equal(hash, skua_sim_hash(scene.runtime));
    sim_end(&scene);
    return hash;
}

TEST(sim_hash_tells_runs_apart)
{
    char text[] = "forty bytes of text that are not inside";
    char other[] = "forty bytes of text that are not inside";
    struct hashed plain = {
        .message = skua_payload_owned(1, text, sizeof text, NULL),
        .input = skua_payload_u64(2, 3),
        .command = COMMAND_ECHO,
        .tag = 4,
        .deadline = SKUA_FOREVER,
    };
    const uint64_t hash = hash_of(plain);
    assert_int_equal(hash_of(plain), hash);
    struct hashed changed = plain;
    changed.message = skua_payload_owned(1, other, sizeof other, NULL);
    assert_int_equal(hash_of(changed), hash); /* the same bytes, elsewhere */
    other[sizeof other - 2] ^= 1;
    assert_true(hash_of(changed) != hash);
    changed.message = skua_payload_owned(9, text, sizeof text, NULL);
    assert_true(hash_of(changed) != hash);
    changed = plain;
    changed.input = skua_payload_u64(2, 4);
    assert_true(hash_of(changed) != hash);
    changed = plain;
    changed.tag = 5;
    assert_true(hash_of(changed) != hash);
    changed = plain;
    changed.command = 77; /* unknown */
    const uint64_t unknown = hash_of(changed);
    assert_true(unknown != hash);
    changed.input = skua_payload_u64(2, 4); /* which no completion brings back */
    assert_true(hash_of(changed) != unknown);
    changed = plain;
    changed.cancels = true;
    assert_true(hash_of(changed) != hash);
    changed = plain;
    changed.deadline = START + SKUA_SECOND;
    assert_true(hash_of(changed) != hash);
    changed = plain;
    changed.error = SKUA_E_USER;
    assert_true(hash_of(changed) != hash);
}

TEST(sim_hash_leaves_pointers_out)
{
    int object[2];
    struct hashed plain = {
        .message = skua_payload_pointer(1, &object[0], NULL),
        .input = skua_payload_empty(0),
        .command = COMMAND_ECHO,
        .tag = 4,
        .deadline = SKUA_FOREVER,
    };
    struct hashed changed = plain;
    changed.message = skua_payload_pointer(1, &object[1], NULL);
    assert_int_equal(hash_of(changed), hash_of(plain));
    changed.message = skua_payload_pointer(2, &object[1], NULL);
    assert_true(hash_of(changed) != hash_of(plain));
}

/* ---- faults: messages ---- */

struct mail {
    skua_pid to;
    uint64_t first;   /* the number of the first letter */
    uint64_t letters; /* how many, one per step */
    uint64_t sent;
};

static int send_letters(void *arg, const struct sim_turn *turn)
{
    struct mail *mail = arg;
    if (mail->sent == mail->letters) {
        return sim_done(turn);
    }
    const uint64_t number = mail->first + mail->sent++;
    assert_int_equal(skua_context_send(turn->ctx, mail->to, skua_payload_u64(0, number)), 0);
    skua_step_continue(turn->out);
    return 0;
}

#define SENDER_GAP 1000

/* Letters of two senders: each sender's in order. */
struct inbox {
    uint64_t next[2];
    uint64_t received;
    uint64_t swaps; /* a letter that was sent earlier came after one of the other sender */
    uint64_t came_at;
};

static int receive_letters(void *arg, const struct sim_turn *turn)
{
    struct inbox *inbox = arg;
    for (size_t i = 0; i < turn->count; i++) {
        if (turn->events[i].type != SKUA_EVENT_MESSAGE) {
            continue;
        }
        const uint64_t number = skua_payload_to_u64(&turn->events[i].payload);
        const size_t sender = number / SENDER_GAP;
        assert_int_equal(number % SENDER_GAP, inbox->next[sender]++);
        inbox->swaps += inbox->next[sender] + 5 < inbox->next[1 - sender];
        inbox->received++;
        inbox->came_at = skua_context_now(turn->ctx);
    }
    (void)is_waiting_for_cancel(turn);
    return 0;
}

static void exchange_letters(uint64_t seed, skua_sim_faults faults, struct inbox *inbox,
                             size_t *delays)
{
    struct sim_scene scene;
    struct sim_actor receiver = {.function = receive_letters, .arg = inbox};
    sim_begin(&scene, seed, faults);
    sim_submit(&scene, &receiver);
    struct mail mails[2] = {{receiver.pid, 0, 20, 0}, {receiver.pid, SENDER_GAP, 20, 0}};
    struct sim_actor senders[2] = {{.function = send_letters, .arg = &mails[0]},
                                   {.function = send_letters, .arg = &mails[1]}};
    sim_submit(&scene, &senders[0]);
    sim_submit(&scene, &senders[1]);
    sim_run_to_rest(&scene);
    assert_int_equal(inbox->received, 40);
    *delays += sim_count(&scene, SKUA_SIM_FAULT, SKUA_SIM_MESSAGE_DELAY);
    sim_end(&scene);
}

TEST(sim_message_delay_keeps_the_order_of_each_sender)
{
    uint64_t swaps = 0;
    size_t delays = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct inbox inbox = {0};
        exchange_letters(seed, (skua_sim_faults){.message_delay = SIM_ALWAYS / 4}, &inbox, &delays);
        swaps += inbox.swaps > 0;
    }
    assert_true(swaps > 0);
    assert_in_range(delays, SEEDS * 40 / 5, SEEDS * 40 / 3); /* about a quarter */
}

TEST(sim_message_delay_comes_always_or_never)
{
    size_t delays = 0;
    struct inbox late = {0};
    exchange_letters(SEED, (skua_sim_faults){.message_delay = SIM_ALWAYS}, &late, &delays);
    assert_int_equal(delays, 40);
    assert_true(late.came_at > START + 100 * SKUA_MICROSECOND);
    struct inbox prompt = {0};
    delays = 0;
    exchange_letters(SEED, no_faults, &prompt, &delays);
    assert_int_equal(delays, 0);
    assert_true(prompt.came_at < START + 100 * SKUA_MICROSECOND);
}

/* From outside, nothing is delayed. */
TEST(sim_message_from_outside_is_not_delayed)
{
    struct sim_scene scene;
    struct inbox inbox = {0};
    struct sim_actor receiver = {.function = receive_letters, .arg = &inbox};
    sim_begin(&scene, SEED, (skua_sim_faults){.message_delay = SIM_ALWAYS});
    sim_submit(&scene, &receiver);
    assert_int_equal(skua_message_send(scene.runtime, receiver.pid, skua_payload_u64(0, 0)), 0);
    sim_run_to_rest(&scene);
    assert_int_equal(inbox.received, 1);
    assert_int_equal(sim_count(&scene, SKUA_SIM_FAULT, 0), 0);
    sim_end(&scene);
}

/* Delays are spread from right away to the longest. */
TEST(sim_delay_is_at_most_the_longest)
{
    const uint64_t longest = SKUA_SECOND;
    uint64_t shortest_seen = UINT64_MAX;
    uint64_t longest_seen = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct sim_scene scene;
        struct inbox inbox = {0};
        struct sim_actor receiver = {.function = receive_letters, .arg = &inbox};
        sim_begin(&scene, seed,
                  (skua_sim_faults){.message_delay = SIM_ALWAYS, .delay_max_ns = longest});
        sim_submit(&scene, &receiver);
        struct mail mail = {.to = receiver.pid, .letters = 1};
        (void)sim_run_actor(&scene, send_letters, &mail);
        sim_run_to_rest(&scene);
        const skua_sim_record *fault = sim_find(&scene, SKUA_SIM_FAULT, SKUA_SIM_MESSAGE_DELAY, 0);
        assert_int_equal(fault->pid.bits, receiver.pid.bits);
        assert_false(skua_pid_is_none(fault->from));
        assert_string_equal(fault->type_name, "actor");
        const uint64_t delay = inbox.came_at - fault->now_ns;
        assert_in_range(delay, 1, longest + 10 * SKUA_MICROSECOND); /* and the turn may wait */
        shortest_seen = delay < shortest_seen ? delay : shortest_seen;
        longest_seen = delay > longest_seen ? delay : longest_seen;
        sim_end(&scene);
    }
    assert_true(shortest_seen < longest / 10);
    assert_true(longest_seen > longest - longest / 10);
}

static const skua_process_type small_mailbox = {.name = "small", .step = NULL, .mailbox_limit = 1};

struct crammer {
    skua_pid to;
    struct tracked letters[2];
    int results[2];
};

static int cram(void *arg, const struct sim_turn *turn)
{
    struct crammer *crammer = arg;
    for (size_t i = 0; i < 2; i++) {
        crammer->results[i] =
            skua_context_send(turn->ctx, crammer->to, tracked_payload(0, &crammer->letters[i]));
    }
    return sim_done(turn);
}

static int idle_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                     skua_step *out)
{
    (void)self;
    (void)ctx;
    (void)api_finish_if_cancelled(events, count, out);
    return 0;
}

TEST(sim_message_has_its_place_while_it_is_under_way)
{
    struct sim_scene scene;
    skua_process_type type = small_mailbox;
    type.step = idle_step;
    struct crammer crammer = {.results = {1, 1}};
    skua_process_info info;
    sim_begin(&scene, SEED, (skua_sim_faults){.message_delay = SIM_ALWAYS});
    assert_int_equal(skua_process_submit(scene.runtime, &type, NULL, NULL, 0, &crammer.to), 0);
    (void)sim_run_actor(&scene, cram, &crammer);
    assert_int_equal(crammer.results[0], 0);
    assert_int_equal(crammer.results[1], SKUA_E_MAILBOX_FULL);
    assert_drops(&crammer.letters[1], 1, 1);
    assert_int_equal(skua_process_info_read(scene.runtime, crammer.to, &info), 0);
    assert_int_equal(info.mailbox_length, 1);
    sim_run_to_rest(&scene);
    assert_drops(crammer.letters, 2, 1);
    assert_int_equal(skua_process_info_read(scene.runtime, crammer.to, &info), 0);
    assert_int_equal(info.mailbox_length, 0);
    sim_end(&scene);
}

#define HEIRS 200

struct heirs {
    skua_process_type type;
    skua_pid pids[HEIRS];
    unsigned messages;
};

static int start_heirs(void *arg, const struct sim_turn *turn)
{
    struct heirs *heirs = arg;
    skua_runtime *runtime = skua_context_runtime(turn->ctx);
    for (size_t i = 0; i < HEIRS; i++) {
        assert_int_equal(
            skua_context_spawn(turn->ctx, &heirs->type, NULL, NULL, 0, &heirs->pids[i]), 0);
        heirs->messages += skua_message_send(runtime, heirs->pids[i], skua_payload_u64(0, 1)) == 0;
    }
    return sim_done(turn);
}

/* The receiver ends while messages are under way: they are dropped, and whoever gets its place has
 * the whole mailbox. */
TEST(sim_message_to_one_that_has_ended_is_dropped)
{
    struct sim_scene scene;
    struct sim_actor receiver = {.function = obedient};
    struct crammer crammer = {0};
    struct heirs heirs = {.type = small_mailbox};
    heirs.type.step = idle_step;
    sim_begin(&scene, SEED,
              (skua_sim_faults){.message_delay = SIM_ALWAYS, .delay_max_ns = 1000 * SKUA_SECOND});
    sim_submit(&scene, &receiver);
    crammer.to = receiver.pid;
    (void)sim_run_actor(&scene, cram, &crammer);
    assert_drops(crammer.letters, 2, 0);
    assert_int_equal(skua_process_terminate(scene.runtime, receiver.pid), 0);
    assert_int_equal(skua_process_wait(scene.runtime, receiver.pid, SKUA_MILLISECOND, NULL), 0);
    assert_drops(crammer.letters, 2, 1);
    (void)sim_run_actor(&scene, start_heirs, &heirs);
    assert_int_equal(heirs.messages, HEIRS);
    sim_run_to_rest(&scene);
    assert_drops(crammer.letters, 2, 1);
    for (size_t i = 0; i < HEIRS; i++) {
        skua_process_info info;
        assert_int_equal(skua_process_info_read(scene.runtime, heirs.pids[i], &info), 0);
        assert_int_equal(info.mailbox_length, 0);
    }
    sim_end(&scene);
}

/* ---- faults: handlers ---- */

struct client {
    int error[3]; /* of the command, the blocking call, the timer */
    uint64_t result[2];
    uint64_t came_at[3];
    unsigned ends;
};

static int use_everything(void *arg, const struct sim_turn *turn)
{
    struct client *client = arg;
    if (turn->count == 0) {
        assert_int_equal(skua_step_yield(turn->out, COMMAND_ECHO, 0, skua_payload_u64(0, 42)), 0);
        assert_int_equal(
            skua_step_blocking(turn->out, 1, "pool", work_a_little, skua_payload_u64(0, 21)), 0);
        return skua_step_sleep(turn->out, 2, SKUA_MILLISECOND);
    }
    for (size_t i = 0; i < turn->count; i++) {
        const uint64_t tag = turn->events[i].tag;
        assert_int_equal(turn->events[i].type, SKUA_EVENT_COMPLETION);
        client->error[tag] = turn->events[i].error;
        client->came_at[tag] = skua_context_now(turn->ctx);
        if (tag < 2) {
            client->result[tag] = skua_payload_to_u64(&turn->events[i].payload);
        }
        client->ends++;
    }
    return client->ends == 3 ? sim_done(turn) : 0;
}

static void run_client(struct sim_scene *scene, skua_sim_faults faults, struct client *client,
                       unsigned *calls)
{
    *calls = 0;
    *client = (struct client){0};
    create_with_echo(scene, SEED, faults, calls);
    assert_int_equal(sim_run_actor(scene, use_everything, client).error, 0);
    assert_int_equal(client->ends, 3);
    assert_int_equal(client->error[2], 0); /* timers are spared */
}

TEST(sim_handlers_without_faults_work_as_always)
{
    struct sim_scene scene;
    struct client client;
    unsigned calls;
    run_client(&scene, no_faults, &client, &calls);
    assert_int_equal(calls, 1);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(client.error[i], 0);
        assert_int_equal(client.result[i], 42);
        assert_true(client.came_at[i] < START + 10 * SKUA_MICROSECOND);
    }
    assert_int_equal(sim_count(&scene, SKUA_SIM_FAULT, 0), 0);
    sim_end(&scene);
}

TEST(sim_handler_error_is_injected_without_a_call)
{
    struct sim_scene scene;
    struct client client;
    unsigned calls;
    run_client(&scene, (skua_sim_faults){.handler_error = SIM_ALWAYS}, &client, &calls);
    assert_int_equal(calls, 0);
    assert_int_equal(client.error[0], SKUA_E_INJECTED);
    assert_int_equal(client.error[1], SKUA_E_INJECTED);
    assert_int_equal(sim_count(&scene, SKUA_SIM_FAULT, SKUA_SIM_HANDLER_ERROR), 2);
    const skua_sim_record *fault = sim_find(&scene, SKUA_SIM_FAULT, SKUA_SIM_HANDLER_ERROR, 0);
    assert_string_equal(fault->type_name, "echo");
    assert_int_equal(fault->pid.bits, sim_find(&scene, SKUA_SIM_STEP, 0, 0)->pid.bits);
    assert_string_equal(sim_find(&scene, SKUA_SIM_FAULT, SKUA_SIM_HANDLER_ERROR, 1)->type_name,
                        "blocking");
    sim_end(&scene);
}

TEST(sim_slow_completion_brings_the_same_later)
{
    struct sim_scene scene;
    struct client client;
    unsigned calls;
    const uint64_t longest = 1000 * SKUA_SECOND;
    run_client(&scene, (skua_sim_faults){.slow_completion = SIM_ALWAYS, .delay_max_ns = longest},
               &client, &calls);
    assert_int_equal(calls, 1);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(client.error[i], 0);
        assert_int_equal(client.result[i], 42);
        assert_in_range(client.came_at[i], START + SKUA_MILLISECOND, START + longest + SKUA_SECOND);
    }
    assert_true(client.came_at[2] < START + 2 * SKUA_MILLISECOND);
    assert_int_equal(sim_count(&scene, SKUA_SIM_FAULT, SKUA_SIM_SLOW_COMPLETION), 2);
    sim_end(&scene);
}

static int fail_at_once(void *arg, skua_command *command, skua_payload *result)
{
    (void)command;
    *result = tracked_payload(0, arg);
    return SKUA_E_USER;
}

static int end_with_error(void *arg, const struct sim_turn *turn)
{
    (void)arg;
    const skua_event *completion = sim_completion(turn, 1);
    if (completion == NULL) {
        return skua_step_yield(turn->out, COMMAND_ECHO, 1, skua_payload_empty(0));
    }
    return completion->error != 0 ? completion->error : sim_done(turn);
}

/* Errors can be slow, too, and what comes with them is dropped once. */
TEST(sim_slow_completion_of_a_failure_is_a_failure)
{
    for (uint32_t rate = 0; rate <= SIM_ALWAYS; rate += SIM_ALWAYS) {
        struct sim_scene scene;
        struct tracked result = {0};
        const skua_handler handler = {
            .name = "fails", .run = fail_at_once, .arg = &result, .sim_safe = true};
        sim_create(&scene, SEED, (skua_sim_config){.faults.slow_completion = rate});
        assert_int_equal(skua_command_register(scene.runtime, COMMAND_ECHO, &handler), 0);
        api_start(&scene.api);
        assert_int_equal(sim_run_actor(&scene, end_with_error, NULL).error, SKUA_E_USER);
        assert_drops(&result, 1, 1);
        sim_end(&scene);
    }
}

struct doubles {
    unsigned run;
    unsigned simulate;
};

static int count_run(void *arg, skua_command *command, skua_payload *result)
{
    struct doubles *doubles = arg;
    (void)command;
    (void)result;
    doubles->run++;
    return 0;
}

static int count_simulate(void *arg, skua_command *command, skua_payload *result)
{
    struct doubles *doubles = arg;
    (void)result;
    doubles->simulate++;
    assert_int_equal(command->id, COMMAND_ECHO);
    assert_int_equal(command->deadline, SKUA_FOREVER);
    return 0;
}

static struct doubles run_double(skua_handler handler, int expected_error)
{
    struct sim_scene scene;
    struct doubles doubles = {0};
    handler.arg = &doubles;
    sim_create(&scene, SEED, (skua_sim_config){0});
    assert_int_equal(skua_command_register(scene.runtime, COMMAND_ECHO, &handler), 0);
    assert_int_equal(skua_command_register(scene.runtime, COMMAND_ECHO, &handler),
                     SKUA_E_COMMAND_EXISTS);
    api_start(&scene.api);
    assert_int_equal(skua_command_register(scene.runtime, 9, &handler), SKUA_E_FROZEN);
    assert_int_equal(sim_run_actor(&scene, end_with_error, NULL).error, expected_error);
    sim_end(&scene);
    return doubles;
}

static int end_when_complete(void *arg, const struct sim_turn *turn)
{
    const skua_event *completion = sim_completion(turn, 1);
    int *error = arg;
    if (completion != NULL) {
        *error = completion->error;
        return sim_done(turn);
    }
    return turn->count == 0
               ? skua_step_blocking(turn->out, 1, NULL, work_a_little, skua_payload_u64(0, 1))
               : 0;
}

TEST(sim_handlers_say_whether_they_may_be_called)
{
    skua_handler handler = {.name = "double", .run = count_run};
    struct doubles calls = run_double(handler, SKUA_E_NOT_SIMULATED);
    assert_int_equal(calls.run + calls.simulate, 0);
    handler.sim_safe = true;
    calls = run_double(handler, 0);
    assert_int_equal(calls.run, 1);
    handler.simulate = count_simulate; /* the double comes first */
    calls = run_double(handler, 0);
    assert_int_equal(calls.run, 0);
    assert_int_equal(calls.simulate, 1);
    handler.sim_safe = false;
    calls = run_double(handler, 0);
    assert_int_equal(calls.run, 0);
    assert_int_equal(calls.simulate, 1);
}

TEST(sim_pools_say_whether_they_may_be_used)
{
    for (int safe = 0; safe < 2; safe++) {
        struct sim_scene scene;
        int error = 1;
        sim_create(&scene, SEED, (skua_sim_config){0});
        const skua_blocking_pool pool = {
            .name = SKUA_BLOCKING_DEFAULT, .direct = true, .sim_safe = safe != 0};
        assert_int_equal(skua_blocking_register(scene.runtime, &pool), 0);
        api_start(&scene.api);
        assert_int_equal(sim_run_actor(&scene, end_when_complete, &error).error, 0);
        assert_int_equal(error, safe != 0 ? 0 : SKUA_E_NOT_SIMULATED);
        sim_end(&scene);
    }
}

/* ---- faults: memory ---- */

struct hungry {
    void *memory;
    int copied;
};

static int allocate_in_a_step(void *arg, const struct sim_turn *turn)
{
    struct hungry *hungry = arg;
    char bytes[100] = {0};
    skua_payload copy;
    hungry->memory = skua_context_alloc(turn->ctx, 100);
    skua_context_free(turn->ctx, hungry->memory, 100);
    hungry->copied =
        skua_payload_copy(skua_context_runtime(turn->ctx), 0, bytes, sizeof bytes, &copy);
    skua_payload_drop(&copy);
    return sim_done(turn);
}

TEST(sim_memory_fails_always_or_never)
{
    for (uint32_t rate = 0; rate <= SIM_ALWAYS; rate += SIM_ALWAYS) {
        struct sim_scene scene;
        struct hungry hungry = {0};
        char bytes[100] = {0};
        skua_payload copy;
        sim_begin(&scene, SEED, (skua_sim_faults){.no_memory = rate});
        assert_int_equal(sim_run_actor(&scene, allocate_in_a_step, &hungry).error, 0);
        assert_true((hungry.memory == NULL) == (rate > 0));
        assert_int_equal(hungry.copied, rate > 0 ? SKUA_E_NO_MEMORY : 0);
        assert_int_equal(sim_count(&scene, SKUA_SIM_FAULT, SKUA_SIM_NO_MEMORY), rate > 0 ? 2 : 0);
        /* Outside of turns there is memory. */
        assert_int_equal(skua_payload_copy(scene.runtime, 0, bytes, sizeof bytes, &copy), 0);
        skua_payload_drop(&copy);
        sim_end(&scene);
    }
}

/* ---- the program's own allocator has no memory ---- */

struct starved {
    struct sim_scene *scene;
    struct tracked letter;
    struct tracked result;
    int sent;
    int completed;
    int slow_error;
    uint64_t slow_result;
    uint64_t came_at;
};

/* A message to itself, which has to be delayed, and a command whose completion has to be slow. */
static int starve(void *arg, const struct sim_turn *turn)
{
    struct starved *starved = arg;
    const skua_event *completion = sim_completion(turn, 1);
    if (completion != NULL) {
        counting_allocator_fail_never(&starved->scene->api.memory);
        starved->slow_error = completion->error;
        starved->slow_result = skua_payload_to_u64(&completion->payload);
        starved->came_at = skua_context_now(turn->ctx);
        return sim_done(turn);
    }
    if (turn->count == 0) {
        return skua_step_sleep(turn->out, 2, 1); /* so that there are event nodes */
    }
    counting_allocator_fail_from(&starved->scene->api.memory, 1);
    starved->sent = skua_context_send(turn->ctx, skua_context_self(turn->ctx),
                                      tracked_payload(0, &starved->letter));
    starved->completed =
        skua_sim_complete_after(skua_context_runtime(turn->ctx), (skua_completion){{0}, 0}, 1, 0,
                                tracked_payload(0, &starved->result));
    return skua_step_yield(turn->out, COMMAND_ECHO, 1, skua_payload_u64(0, 42));
}

/* What cannot be put off is refused, or happens at once. */
TEST(sim_agenda_without_memory_loses_nothing)
{
    struct sim_scene scene;
    unsigned calls = 0;
    struct starved starved = {.scene = &scene, .slow_error = 1};
    create_with_echo(&scene, SEED,
                     (skua_sim_faults){.message_delay = SIM_ALWAYS, .slow_completion = SIM_ALWAYS},
                     &calls);
    assert_int_equal(sim_run_actor(&scene, starve, &starved).error, 0);
    assert_int_equal(starved.sent, SKUA_E_NO_MEMORY);
    assert_drops(&starved.letter, 1, 1);
    assert_int_equal(starved.completed, SKUA_E_NO_MEMORY);
    assert_drops(&starved.result, 1, 1);
    assert_int_equal(starved.slow_error, 0);
    assert_int_equal(starved.slow_result, 42);
    assert_true(starved.came_at < START + SKUA_MILLISECOND);
    sim_end(&scene);
}

/* More are Ready than the driver has room for. */
TEST(sim_crowd_without_memory_runs_all_the_same)
{
    struct sim_scene scene;
    static struct sim_actor actors[500];
    sim_begin(&scene, SEED, no_faults);
    for (size_t i = 0; i < COUNT_OF(actors); i++) {
        actors[i] = (struct sim_actor){.function = obedient};
        sim_submit(&scene, &actors[i]);
    }
    counting_allocator_fail_from(&scene.api.memory, 1);
    sim_run_to_rest(&scene);
    for (size_t i = 0; i < COUNT_OF(actors); i++) {
        assert_int_equal(actors[i].steps, 1);
    }
    sim_end(&scene);
    for (size_t i = 0; i < COUNT_OF(actors); i++) {
        assert_int_equal(actors[i].closes, 1);
    }
}

TEST(sim_registering_without_memory_leaves_nothing_behind)
{
    struct sim_scene scene;
    const skua_handler handler = {.name = "far", .run = echo, .sim_safe = true};
    sim_create(&scene, SEED, (skua_sim_config){0});
    uint64_t failures = 0;
    for (int error = SKUA_E_NO_MEMORY; error != 0; failures += error != 0) {
        counting_allocator_fail_once(&scene.api.memory, failures + 1);
        error = skua_command_register(scene.runtime, 100000, &handler);
        assert_true(error == 0 || error == SKUA_E_NO_MEMORY);
    }
    assert_true(failures > 0);
    counting_allocator_fail_never(&scene.api.memory);
    assert_int_equal(skua_runtime_destroy(scene.runtime), 0); /* without a start */
    assert_true(counting_allocator_is_clean(&scene.api.memory));
    sim_trace_free(&scene.trace);
}

/* ---- faults: processes ---- */

#define TICKS 50

/* Gives the simulation turns to interfere before. */
static int tick(void *arg, const struct sim_turn *turn)
{
    unsigned *ticks = arg;
    for (size_t i = 0; i < turn->count; i++) {
        if (turn->events[i].type == SKUA_EVENT_TICK && ++*ticks == TICKS) {
            return sim_done(turn);
        }
    }
    return turn->count == 0 ? skua_step_ticker(turn->out, 1, SKUA_MILLISECOND) : 0;
}

static size_t wakes_of(const struct sim_scene *scene, skua_pid pid)
{
    size_t count = 0;
    for (size_t i = 0; i < scene->trace.count; i++) {
        const skua_sim_record *record = &scene->trace.records[i];
        count += record->type == SKUA_SIM_FAULT && record->what == SKUA_SIM_SPURIOUS_WAKE &&
                 skua_pid_equal(record->pid, pid);
    }
    return count;
}

TEST(sim_wake_for_no_reason_calls_no_step)
{
    for (uint32_t rate = 0; rate <= SIM_ALWAYS; rate += SIM_ALWAYS) {
        struct sim_scene scene;
        struct sim_actor sleepers[3] = {
            {.function = obedient}, {.function = obedient}, {.function = obedient}};
        unsigned ticks = 0;
        sim_begin(&scene, SEED, (skua_sim_faults){.spurious_wake = rate});
        for (size_t i = 0; i < 3; i++) {
            sim_submit(&scene, &sleepers[i]);
        }
        sim_run_to_rest(&scene); /* it comes to rest, however often they are woken */
        assert_int_equal(sim_run_actor(&scene, tick, &ticks).error, 0);
        sim_run_to_rest(&scene);
        const size_t wakes = sim_count(&scene, SKUA_SIM_FAULT, SKUA_SIM_SPURIOUS_WAKE);
        assert_in_range(wakes, rate > 0 ? TICKS : 0, rate > 0 ? 2 * TICKS : 0);
        for (size_t i = 0; i < 3; i++) {
            skua_process_info info;
            assert_int_equal(sleepers[i].steps, 1);
            assert_int_equal(skua_process_info_read(scene.runtime, sleepers[i].pid, &info), 0);
            assert_int_equal(info.steps, 1);
            assert_int_equal(info.state, SKUA_PROCESS_IDLE);
            if (rate > 0) { /* each has its share */
                assert_in_range(wakes_of(&scene, sleepers[i].pid), wakes / 10, wakes / 2);
            }
        }
        sim_end(&scene);
    }
}

TEST(sim_wake_spares_those_that_are_ready)
{
    struct sim_scene scene;
    unsigned steps = 0;
    sim_begin(&scene, SEED, (skua_sim_faults){.spurious_wake = SIM_ALWAYS});
    assert_int_equal(sim_run_actor(&scene, continue_ten_times, &steps).error, 0);
    assert_int_equal(sim_count(&scene, SKUA_SIM_FAULT, 0), 0);
    sim_end(&scene);
}

static bool may_kill_others(void *arg, const skua_process_info *info)
{
    unsigned *asked = arg;
    *asked += 1;
    return strcmp(info->type_name, "other") == 0;
}

TEST(sim_kill_ends_those_that_may_be)
{
    struct sim_scene scene;
    unsigned asked = 0;
    unsigned ticks = 0;
    struct sim_actor victims[5];
    struct sim_actor spared = {.function = obedient};
    sim_begin(&scene, SEED,
              (skua_sim_faults){
                  .process_kill = SIM_ALWAYS, .may_kill = may_kill_others, .may_kill_arg = &asked});
    sim_submit(&scene, &spared);
    for (size_t i = 0; i < COUNT_OF(victims); i++) {
        victims[i] = (struct sim_actor){.function = obedient};
        victims[i].pid = api_submit(&scene.api, &sim_other_actor_type, &victims[i]);
    }
    assert_int_equal(sim_run_actor(&scene, tick, &ticks).error, 0);
    assert_true(asked >= COUNT_OF(victims));
    assert_int_equal(spared.closes, 0);
    assert_int_equal(sim_count(&scene, SKUA_SIM_FAULT, SKUA_SIM_PROCESS_KILL), COUNT_OF(victims));
    for (size_t i = 0; i < COUNT_OF(victims); i++) {
        const skua_sim_record *fault = sim_find(&scene, SKUA_SIM_FAULT, SKUA_SIM_PROCESS_KILL, i);
        const skua_sim_record *end = sim_find(&scene, SKUA_SIM_EXIT, 0, i);
        assert_int_equal(victims[i].closes, 1);
        assert_string_equal(fault->type_name, "other");
        assert_string_equal(end->type_name, "other");
        assert_int_equal(end->error, SKUA_E_TERMINATED);
    }
    sim_end(&scene);
}

TEST(sim_kill_without_a_say_ends_any)
{
    struct sim_scene scene;
    unsigned ticks = 0;
    struct sim_actor actor = {.function = tick, .arg = &ticks};
    sim_begin(&scene, SEED, (skua_sim_faults){.process_kill = SIM_ALWAYS});
    const skua_exit exit = api_run_process(&scene.api, &sim_actor_type, &actor);
    assert_int_equal(exit.error, SKUA_E_TERMINATED);
    assert_int_equal(actor.closes, 1);
    sim_end(&scene);
}

/* A rate is a rate: about a tenth, over many occasions. */
TEST(sim_rates_are_met)
{
    size_t wakes = 0;
    size_t turns = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct sim_scene scene;
        struct sim_actor asleep = {.function = obedient};
        unsigned ticks = 0;
        sim_begin(&scene, seed, (skua_sim_faults){.spurious_wake = SIM_ALWAYS / 10});
        sim_submit(&scene, &asleep);
        assert_int_equal(sim_run_actor(&scene, tick, &ticks).error, 0);
        wakes += sim_count(&scene, SKUA_SIM_FAULT, SKUA_SIM_SPURIOUS_WAKE);
        turns += sim_count(&scene, SKUA_SIM_STEP, 0);
        sim_end(&scene);
    }
    assert_in_range(wakes, turns / 13, turns / 8);
}

/* ---- the trace ---- */

static int yield_and_cancel(void *arg, const struct sim_turn *turn)
{
    (void)arg;
    if (turn->count > 0) {
        return SKUA_E_USER;
    }
    assert_int_equal(skua_step_yield(turn->out, COMMAND_ECHO, 5, skua_payload_u64(0, 6)), 0);
    assert_int_equal(skua_step_sleep(turn->out, 7, SKUA_SECOND), 0);
    return skua_step_cancel(turn->out, 7);
}

static skua_sim_record expected(skua_sim_record record, const struct sim_scene *scene, uint64_t now,
                                uint64_t step)
{
    record.pid = scene->trace.records[0].pid;
    record.now_ns = now;
    record.step = step;
    return record;
}

TEST(sim_trace_tells_all_of_a_process)
{
    struct sim_scene scene;
    unsigned calls = 0;
    create_with_echo(&scene, 3, no_faults, &calls);
    const char *name = sim_actor_type.name;
    struct sim_actor actor = {.function = yield_and_cancel};
    sim_submit(&scene, &actor);
    assert_int_equal(skua_sim_step(scene.runtime), 1);
    sim_run_to_rest(&scene);
    const struct sim_trace *trace = &scene.trace;
    assert_true(trace->count >= 7);
    assert_int_equal(trace->records[0].pid.bits, actor.pid.bits);
    const skua_sim_record beginning[] = {
        {.type = SKUA_SIM_STEP, .type_name = name},
        {.type = SKUA_SIM_YIELD, .what = COMMAND_ECHO, .tag = 5, .count = 8},
        {.type = SKUA_SIM_YIELD, .tag = 7},
        {.type = SKUA_SIM_CANCEL, .tag = 7},
    };
    for (size_t i = 0; i < COUNT_OF(beginning); i++) {
        skua_sim_record wanted = expected(beginning[i], &scene, START, 1);
        if (i == 1 || i == 2) { /* the handler's name; for the timer, its number and size as well */
            assert_non_null(trace->records[i].type_name);
            wanted.type_name = trace->records[i].type_name;
        }
        if (i == 2) {
            assert_true(trace->records[i].what >= SKUA_COMMAND_RESERVED);
            wanted.what = trace->records[i].what;
            wanted.count = trace->records[i].count;
        }
        assert_same_record(&trace->records[i], &wanted);
    }
    assert_string_equal(trace->records[1].type_name, "echo");
    /* Both completions, in one step or in two. */
    assert_int_equal(sim_count(&scene, SKUA_SIM_STEP, 0), 2);
    const skua_sim_record *second = sim_find(&scene, SKUA_SIM_STEP, 0, 1);
    assert_int_equal(second->step, 2);
    assert_in_range(second->count, 1, 2);
    const uint64_t later = second->now_ns;
    const skua_sim_record echoed = expected((skua_sim_record){.type = SKUA_SIM_EVENT,
                                                              .what = SKUA_EVENT_COMPLETION,
                                                              .type_name = name,
                                                              .tag = 5,
                                                              .count = 8},
                                            &scene, later, 2);
    assert_same_record(sim_find(&scene, SKUA_SIM_EVENT, 0, 0), &echoed);
    if (second->count == 2) {
        const skua_sim_record cancelled = expected((skua_sim_record){.type = SKUA_SIM_EVENT,
                                                                     .what = SKUA_EVENT_COMPLETION,
                                                                     .type_name = name,
                                                                     .tag = 7,
                                                                     .error = SKUA_E_CANCELLED},
                                                   &scene, later, 2);
        assert_same_record(sim_find(&scene, SKUA_SIM_EVENT, 0, 1), &cancelled);
    }
    const skua_sim_record end =
        expected((skua_sim_record){.type = SKUA_SIM_EXIT, .type_name = name, .error = SKUA_E_USER},
                 &scene, later, 0);
    assert_same_record(&trace->records[trace->count - 1], &end);
    sim_end(&scene);
}

TEST(sim_trace_tells_who_sent_a_message)
{
    struct sim_scene scene;
    struct inbox inbox = {0};
    struct sim_actor receiver = {.function = receive_letters, .arg = &inbox};
    sim_begin(&scene, SEED, no_faults);
    sim_submit(&scene, &receiver);
    struct mail mail = {.to = receiver.pid, .letters = 1};
    struct sim_actor sender = {.function = send_letters, .arg = &mail};
    sim_submit(&scene, &sender);
    sim_run_to_rest(&scene);
    const skua_sim_record *event = sim_find(&scene, SKUA_SIM_EVENT, SKUA_EVENT_MESSAGE, 0);
    assert_int_equal(event->pid.bits, receiver.pid.bits);
    assert_int_equal(event->from.bits, sender.pid.bits);
    assert_int_equal(event->count, 8);
    sim_end(&scene);
}

/* ---- records as text ---- */

static void assert_text(skua_sim_record record, const char *wanted)
{
    char text[200];
    record.now_ns = 3 * SKUA_SECOND + 5;
    const int length = skua_sim_record_format(&record, text, sizeof text);
    assert_string_equal(text, wanted);
    assert_int_equal(length, strlen(wanted));
    assert_int_equal(skua_sim_record_format(&record, NULL, 0), length);
    for (size_t size = 1; size <= strlen(wanted) + 1; size++) { /* as snprintf: cut, and ended */
        memset(text, '#', sizeof text);
        assert_int_equal(skua_sim_record_format(&record, text, size), length);
        assert_memory_equal(text, wanted, size - 1);
        assert_int_equal(text[size - 1], '\0');
        assert_int_equal(text[size], '#');
    }
}

TEST(sim_record_becomes_one_line_of_text)
{
    const char *const clock = "       3.000000005  the clock moves on";
    assert_text((skua_sim_record){.type = SKUA_SIM_CLOCK}, clock);
    assert_text((skua_sim_record){.type = SKUA_SIM_STEP, .type_name = "bee", .step = 4, .count = 2},
                "       3.000000005  bee 0.0 step 4, 2 events");
    assert_text((skua_sim_record){.type = SKUA_SIM_EVENT, .what = SKUA_EVENT_MESSAGE, .count = 8},
                "       3.000000005      message from 0.0, 8 bytes");
    assert_text((skua_sim_record){.type = SKUA_SIM_EVENT,
                                  .what = SKUA_EVENT_COMPLETION,
                                  .tag = 6,
                                  .error = SKUA_E_TIMEOUT},
                "       3.000000005      completion tag 6, 0 bytes, SKUA_E_TIMEOUT (-5016)");
    assert_text((skua_sim_record){.type = SKUA_SIM_EVENT, .what = SKUA_EVENT_TICK, .tag = 1},
                "       3.000000005      tick tag 1, 0 bytes");
    assert_text((skua_sim_record){.type = SKUA_SIM_EVENT,
                                  .what = SKUA_EVENT_CANCEL,
                                  .error = SKUA_E_STOPPED},
                "       3.000000005      cancel, 0 bytes, SKUA_E_STOPPED (-5014)");
    assert_text(
        (skua_sim_record){
            .type = SKUA_SIM_YIELD, .type_name = "sleep", .what = 9, .tag = 8, .count = 7},
        "       3.000000005      yields sleep (9) tag 8, 7 bytes");
    assert_text((skua_sim_record){.type = SKUA_SIM_YIELD, .what = 9},
                "       3.000000005      yields ? (9) tag 0, 0 bytes");
    assert_text((skua_sim_record){.type = SKUA_SIM_CANCEL, .tag = 8},
                "       3.000000005      takes back tag 8");
    assert_text((skua_sim_record){.type = SKUA_SIM_EXIT, .type_name = "bee"},
                "       3.000000005  bee 0.0 ends");
    assert_text(
        (skua_sim_record){.type = SKUA_SIM_EXIT, .type_name = "bee", .error = SKUA_E_TERMINATED},
        "       3.000000005  bee 0.0 ends, SKUA_E_TERMINATED (-5017)");
    assert_text((skua_sim_record){.type = 99}, "       3.000000005  ?");
    assert_text((skua_sim_record){.type = SKUA_SIM_EVENT, .what = 99, .count = 1},
                "       3.000000005      ? tag 0, 1 bytes");
}

TEST(sim_record_of_each_fault_has_a_text)
{
    const struct {
        uint32_t what;
        const char *text;
    } faults[] = {
        {SKUA_SIM_MESSAGE_DELAY, "       3.000000005  fault: a message is delayed: bee 0.0"},
        {SKUA_SIM_HANDLER_ERROR, "       3.000000005  fault: a handler fails: bee 0.0"},
        {SKUA_SIM_SLOW_COMPLETION, "       3.000000005  fault: a completion comes late: bee 0.0"},
        {SKUA_SIM_NO_MEMORY, "       3.000000005  fault: an allocation fails: bee 0.0"},
        {SKUA_SIM_SPURIOUS_WAKE, "       3.000000005  fault: woken for no reason: bee 0.0"},
        {SKUA_SIM_PROCESS_KILL, "       3.000000005  fault: terminated: bee 0.0"},
        {99, "       3.000000005  fault: ?: bee 0.0"},
    };
    for (size_t i = 0; i < COUNT_OF(faults); i++) {
        assert_text(
            (skua_sim_record){.type = SKUA_SIM_FAULT, .what = faults[i].what, .type_name = "bee"},
            faults[i].text);
    }
    assert_text((skua_sim_record){.type = SKUA_SIM_FAULT, .what = SKUA_SIM_NO_MEMORY},
                "       3.000000005  fault: an allocation fails");
}

TEST(sim_record_format_refuses_nothing_to_read_or_write)
{
    char text[10];
    const skua_sim_record record = {.type = SKUA_SIM_CLOCK};
    assert_int_equal(skua_sim_record_format(NULL, text, sizeof text), SKUA_E_INVALID);
    assert_int_equal(skua_sim_record_format(&record, NULL, 1), SKUA_E_INVALID);
}
