/* SPDX-License-Identifier: MIT */
/* Messages that the simulator delays: when they come, what must still come in order, and mailboxes
 * whose process ends meanwhile. */
#include "actor.h"
#include "sim_trace.h"

#define SEED  11
#define SEEDS 50
#define START SKUA_SIM_START_NS

/* ---- when they come ---- */

#define LETTERS 20

/* Letters of two senders, each with its number as type. */
struct mail {
    size_t delays;
    bool is_swapped; /* an early letter of one sender came after later ones of the other */
    uint64_t last_at;
};

/* One letter per step. */
static struct actor *start_sender(struct actor *to, uint32_t sender)
{
    struct act acts[2 * LETTERS + 1];
    for (size_t i = 0; i < LETTERS; i++) {
        acts[2 * i] = sends(to, sender, i);
        acts[2 * i + 1] = continues(1);
    }
    acts[2 * LETTERS] = finishes(0);
    return actor_start(script_copy(acts, COUNT_OF(acts)));
}

static struct mail exchange_letters(uint64_t seed, uint32_t message_delay)
{
    uint64_t next[2] = {0};
    struct mail mail = {0};
    world_open_sim(seed, (skua_sim_faults){.message_delay = message_delay});
    struct actor *receiver = actor_start(NO_ACTS);
    (void)start_sender(receiver, 0);
    (void)start_sender(receiver, 1);
    world_settle();
    assert_int_equal(receiver->seen_count, 2 * LETTERS);
    for (size_t i = 0; i < receiver->seen_count; i++) {
        const struct seen *seen = &receiver->seen[i];
        const uint32_t sender = seen->payload_type;
        assert_int_equal(seen->value, next[sender]++);
        mail.is_swapped = mail.is_swapped || next[sender] + 5 < next[1 - sender];
        mail.last_at = seen->now;
    }
    mail.delays = sim_fault_count(SKUA_SIM_MESSAGE_DELAY);
    world_close();
    return mail;
}

TEST(delay_keeps_the_order_of_each_sender)
{
    unsigned swapped = 0;
    size_t delays = 0;
    FOR_ROUNDS (seed, SEEDS) {
        const struct mail mail = exchange_letters(seed, SIM_ALWAYS / 4);
        swapped += mail.is_swapped;
        delays += mail.delays;
    }
    assert_true(swapped > 0);
    assert_in_range(delays, SEEDS * 40 / 5, SEEDS * 40 / 3); /* about a quarter */
}

TEST(delay_comes_always_or_never)
{
    const struct mail late = exchange_letters(SEED, SIM_ALWAYS);
    assert_int_equal(late.delays, 2 * LETTERS);
    assert_true(late.last_at > START + 100 * SKUA_MICROSECOND);
    const struct mail prompt = exchange_letters(SEED, 0);
    assert_int_equal(prompt.delays, 0);
    assert_true(prompt.last_at < START + 100 * SKUA_MICROSECOND);
}

TEST(message_from_outside_is_not_delayed)
{
    world_open_sim(SEED, (skua_sim_faults){.message_delay = SIM_ALWAYS});
    struct actor *receiver = actor_start(NO_ACTS);
    assert_int_equal(world_send(receiver->pid, skua_payload_u64(0, 5)), 0);
    world_settle();
    assert_saw(receiver, message(0, 5));
    assert_int_equal(sim_count(SKUA_SIM_FAULT, 0), 0);
}

/* Delays are spread from right away to the longest. */
TEST(delay_is_at_most_the_longest)
{
    const uint64_t longest = SKUA_SECOND;
    uint64_t shortest_seen = UINT64_MAX;
    uint64_t longest_seen = 0;
    FOR_ROUNDS (seed, SEEDS) {
        world_open_sim(seed,
                       (skua_sim_faults){.message_delay = SIM_ALWAYS, .delay_max_ns = longest});
        struct actor *receiver = actor_start(NO_ACTS);
        struct actor *sender = actor_start(ACTS(sends(receiver, 0, 5), finishes(0)));
        world_settle();
        assert_saw(receiver, message(0, 5));
        const skua_sim_record *fault = sim_find(SKUA_SIM_FAULT, SKUA_SIM_MESSAGE_DELAY, 0);
        assert_int_equal(fault->pid.bits, receiver->pid.bits);
        assert_int_equal(fault->from.bits, sender->pid.bits);
        assert_string_equal(fault->type_name, "actor");
        const uint64_t delay = receiver->seen[0].now - fault->now_ns;
        assert_in_range(delay, 1, longest + 10 * SKUA_MICROSECOND); /* and the turn may wait */
        shortest_seen = delay < shortest_seen ? delay : shortest_seen;
        longest_seen = delay > longest_seen ? delay : longest_seen;
    }
    assert_true(shortest_seen < longest / 10);
    assert_true(longest_seen > longest - longest / 10);
}

/* ---- order ---- */

/* A process that only looks on; terminated at the end of the test. */
static struct actor *start_onlooker(void)
{
    struct actor *actor = actor_new(NO_ACTS);
    actor->ignores_cancel = true;
    actor_submit(actor);
    return actor;
}

/* Does not say who sends. */
static int send_two(void *receiver)
{
    return world_send(((struct actor *)receiver)->pid, skua_payload_u64(0, 2));
}

static int cancel_it(void *receiver)
{
    return world_cancel(((struct actor *)receiver)->pid, SKUA_E_USER);
}

/* All the ways in which a step reaches another process. */
TEST(events_of_one_step_stay_in_order_however_they_are_delayed)
{
    size_t delays = 0;
    FOR_ROUNDS (seed, SEEDS) {
        world_open_sim(seed, (skua_sim_faults){.message_delay = SIM_ALWAYS / 2});
        struct actor *receiver = start_onlooker();
        (void)actor_start(ACTS(sends(receiver, 0, 1), calls(send_two, receiver),
                               sends(receiver, 0, 3), calls(cancel_it, receiver),
                               sends(receiver, 0, 4), finishes(0)));
        world_settle();
        assert_saw(receiver, message(0, 1), message(0, 2), message(0, 3), cancel(SKUA_E_USER),
                   message(0, 4));
        delays += sim_fault_count(SKUA_SIM_MESSAGE_DELAY);
        assert_int_equal(world_terminate(receiver->pid), 0);
    }
    assert_true(delays > SEEDS / 2);
}

/* In init a process sends on the turn of the one that spawns it. */
TEST(messages_of_init_stay_before_those_of_the_steps)
{
    FOR_ROUNDS (seed, SEEDS) {
        world_open_sim(seed, (skua_sim_faults){.message_delay = SIM_ALWAYS / 2});
        struct actor *receiver = actor_start(NO_ACTS);
        struct actor *child = actor_new(ACTS(sends(receiver, 0, 2), finishes(0)));
        child->in_init = ACTS(sends(receiver, 0, 1));
        (void)actor_start(ACTS(spawns(child), finishes(0)));
        world_settle();
        assert_saw(receiver, message(0, 1), message(0, 2));
    }
}

/* ---- mailboxes ---- */

static struct actor *new_with_mailbox_of_one(void)
{
    struct actor *actor = actor_new(NO_ACTS);
    actor->type.mailbox_limit = 1;
    return actor;
}

TEST(message_has_its_place_while_it_is_under_way)
{
    test_of_steps("a task drops a payload when it receives the next event");
    struct tracked letters[2] = {{0}};
    world_open_sim(SEED, (skua_sim_faults){.message_delay = SIM_ALWAYS});
    struct actor *receiver = new_with_mailbox_of_one();
    actor_submit(receiver);
    struct actor *sender = actor_new(
        ACTS(sends_item(receiver, 0, &letters[0]),
             refused(sends_item(receiver, 0, &letters[1]), SKUA_E_MAILBOX_FULL), finishes(0)));
    assert_result(actor_run(sender), 0);
    assert_drops(&letters[1], 1, 1);
    assert_int_equal(world_info(receiver->pid).mailbox_length, 1);
    world_settle();
    assert_drops(letters, 2, 1);
    assert_int_equal(world_info(receiver->pid).mailbox_length, 0);
}

#define HEIRS 200

/* The receiver ends while messages are under way: they are dropped, and whoever gets its place has
 * the whole mailbox. */
TEST(message_to_one_that_has_ended_is_dropped)
{
    struct tracked letters[2] = {{0}};
    struct actor *heirs[HEIRS];
    struct act starts[2 * HEIRS];
    world_open_sim(
        SEED, (skua_sim_faults){.message_delay = SIM_ALWAYS, .delay_max_ns = 1000 * SKUA_SECOND});
    struct actor *receiver = actor_start(NO_ACTS);
    assert_result(actor_run(actor_new(ACTS(sends_item(receiver, 0, &letters[0]),
                                           sends_item(receiver, 0, &letters[1]), finishes(0)))),
                  0);
    assert_drops(letters, 2, 0);
    assert_int_equal(world_terminate(receiver->pid), 0);
    assert_int_equal(skua_process_wait(world_runtime(), receiver->pid, SKUA_MILLISECOND, NULL), 0);
    assert_drops(letters, 2, 1);
    for (size_t i = 0; i < HEIRS; i++) {
        heirs[i] = new_with_mailbox_of_one();
        starts[2 * i] = spawns(heirs[i]);
        starts[2 * i + 1] = calls(send_two, heirs[i]);
    }
    (void)actor_start(script_copy(starts, COUNT_OF(starts)));
    world_settle();
    assert_drops(letters, 2, 1);
    for (size_t i = 0; i < HEIRS; i++) {
        assert_saw(heirs[i], message(0, 2));
        assert_int_equal(world_info(heirs[i]->pid).mailbox_length, 0);
    }
}

/* There is room for two processes, so the second receiver lives where the first one did. */
TEST(delayed_message_leaves_no_trace_in_the_next_mailbox)
{
    const skua_sim_config sim = {
        .faults = {.message_delay = SIM_ALWAYS, .delay_max_ns = SKUA_SECOND}};
    world_open_with((skua_runtime_config){.process_limit = 2, .sim = &sim});
    struct actor *first = new_with_mailbox_of_one();
    struct actor *second = new_with_mailbox_of_one();
    actor_submit(first);
    struct actor *sender = actor_start(ACTS(sends(first, 0, 5)));
    while (first->steps + sender->steps < 2) { /* then the message is under way */
        assert_int_equal(skua_sim_step(world_runtime()), 1);
    }
    assert_int_equal(world_terminate(first->pid), 0);
    assert_int_equal(skua_process_wait(world_runtime(), first->pid, SKUA_FOREVER, NULL), 0);
    actor_submit(second);
    assert_int_equal(world_info(second->pid).mailbox_length, 0);
    assert_int_equal(world_send(second->pid, skua_payload_empty(0)), 0);
}
