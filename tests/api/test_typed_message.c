/* SPDX-License-Identifier: MIT */
/* Messages with named fields: SKUA_MESSAGE. */
#include "actor.h"

#include <skua/message.h>

/* With gaps, if it were not packed. */
SKUA_MESSAGE(deposit, 7, uint8_t kind; uint64_t account; uint16_t cents;);
/* The largest that fits inside, and the smallest that does not. */
SKUA_MESSAGE(full, 8, uint64_t words[3];);
SKUA_MESSAGE(over, 9, uint64_t words[3]; uint8_t more;);
SKUA_MESSAGE(large, 10, uint32_t number; char text[200];);
SKUA_MESSAGE(tiny, 0, uint8_t byte;);

static struct deposit some_deposit(void)
{
    return (struct deposit){.kind = 200, .account = UINT64_MAX - 1, .cents = 65535};
}

static struct large some_large(void)
{
    struct large message = {.number = 77};
    memset(message.text, 'x', sizeof message.text);
    return message;
}

TEST(messages_are_packed_and_have_their_numbers)
{
    assert_int_equal(sizeof(struct deposit), 11);
    assert_int_equal(sizeof(struct over), 25);
    assert_int_equal(deposit_number, 7);
    assert_int_equal(tiny_number, 0);
}

/* ---- what arrives ---- */

enum { KINDS = 5 };

struct inbox {
    skua_payload payloads[KINDS];
    size_t count;
};

static int keep_payloads(struct turn *turn, const struct act *act)
{
    struct inbox *inbox = act->arg;
    for (size_t i = turn_starts(turn); i < turn->count && inbox->count < KINDS; i++) {
        inbox->payloads[inbox->count++] = skua_payload_take(&turn->events[i].payload);
    }
    return inbox->count < KINDS ? ACT_WAITS : 0;
}

static void check_inbox(struct inbox *inbox)
{
    struct deposit deposit;
    struct full full;
    struct over over;
    struct large large;
    struct tiny tiny;
    assert_int_equal(inbox->count, KINDS);
    assert_int_equal(deposit_get(&inbox->payloads[0], &deposit), 0);
    assert_int_equal(deposit.kind, 200);
    assert_true(deposit.account == UINT64_MAX - 1);
    assert_int_equal(deposit.cents, 65535);
    assert_int_equal(full_get(&inbox->payloads[1], &full), 0);
    assert_int_equal(full.words[2], 3);
    assert_int_equal(over_get(&inbox->payloads[2], &over), 0);
    assert_int_equal(over.words[2], 6);
    assert_int_equal(over.more, 250);
    assert_int_equal(large_get(&inbox->payloads[3], &large), 0);
    assert_int_equal(large.number, 77);
    assert_memory_equal(large.text, some_large().text, sizeof large.text);
    assert_int_equal(tiny_get(&inbox->payloads[4], &tiny), 0);
    assert_int_equal(tiny.byte, 9);
    for (size_t i = 0; i < KINDS; i++) {
        const bool is_inside = i != 2 && i != 3;
        assert_int_equal(inbox->payloads[i].storage,
                         is_inside ? SKUA_PAYLOAD_INLINE : SKUA_PAYLOAD_OWNED);
        skua_payload_drop(&inbox->payloads[i]);
    }
}

static int send_all(struct turn *turn, const struct act *act)
{
    skua_context *ctx = turn->ctx;
    const skua_pid to = act->peer->pid;
    int error = deposit_send(ctx, to, some_deposit());
    error = error != 0 ? error : full_send(ctx, to, (struct full){.words = {1, 2, 3}});
    error = error != 0 ? error : over_send(ctx, to, (struct over){.words = {4, 5, 6}, .more = 250});
    error = error != 0 ? error : large_send(ctx, to, some_large());
    return error != 0 ? error : tiny_send(ctx, to, (struct tiny){.byte = 9});
}

TEST(messages_arrive_as_a_process_has_sent_them)
{
    struct inbox inbox = {.count = 0};
    world_open();
    struct actor *reader = actor_start(ACTS(does(keep_payloads, &inbox)));
    struct actor *writer =
        actor_start(ACTS((struct act){.perform = send_all, .peer = reader}, finishes(0)));
    tally_wait(&reader->performed, 1);
    check_inbox(&inbox);
    for (size_t i = 0; i < KINDS; i++) {
        assert_true(skua_pid_equal(reader->seen[i].from, writer->pid));
    }
}

TEST(messages_arrive_as_a_thread_has_sent_them)
{
    struct inbox inbox = {.count = 0};
    world_open();
    struct actor *reader = actor_start(ACTS(does(keep_payloads, &inbox)));
    skua_runtime *runtime = world_runtime();
    assert_int_equal(deposit_post(runtime, reader->pid, some_deposit()), 0);
    assert_int_equal(full_post(runtime, reader->pid, (struct full){.words = {1, 2, 3}}), 0);
    assert_int_equal(
        over_post(runtime, reader->pid, (struct over){.words = {4, 5, 6}, .more = 250}), 0);
    assert_int_equal(large_post(runtime, reader->pid, some_large()), 0);
    assert_int_equal(tiny_post(runtime, reader->pid, (struct tiny){.byte = 9}), 0);
    tally_wait(&reader->performed, 1);
    check_inbox(&inbox);
    assert_true(skua_pid_is_none(reader->seen[0].from));
}

static int finish_with_message(struct turn *turn, const struct act *act)
{
    (void)act;
    skua_payload result;
    const int error = large_payload(skua_runtime_of(turn->ctx), some_large(), &result);
    return error != 0 ? error : skua_done_from(turn->ctx, &result);
}

TEST(messages_can_be_results)
{
    struct large large;
    world_open();
    skua_exit exit = actor_run(actor_new(ACTS(does(finish_with_message, NULL))));
    assert_int_equal(exit.error, 0);
    assert_int_equal(large_get(&exit.result, &large), 0);
    assert_int_equal(large.number, 77);
    skua_payload_drop(&exit.result);
}

/* ---- what is something else ---- */

TEST(payload_that_is_another_message_is_not_read)
{
    struct deposit deposit = some_deposit();
    struct deposit before = deposit;
    struct tiny tiny = {.byte = 1};
    skua_payload right;
    world_open();
    assert_int_equal(deposit_payload(world_runtime(), deposit, &right), 0);
    skua_payload other_type = right;
    other_type.type = deposit_number + 1;
    skua_payload shorter = right;
    shorter.inline_size = sizeof deposit - 1;
    skua_payload longer = right;
    longer.inline_size = sizeof deposit + 1;
    skua_payload taken = right;
    (void)skua_payload_take(&taken);
    const skua_payload wrong[] = {
        other_type,
        shorter,
        longer,
        taken,
        skua_payload_empty(deposit_number),
        skua_payload_u64(deposit_number, 1),
        skua_payload_pointer(deposit_number, &deposit, NULL),
        skua_payload_static(deposit_number, &deposit, sizeof deposit + 1),
    };
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        assert_int_equal(deposit_get(&wrong[i], &deposit), SKUA_E_PAYLOAD_TYPE);
        assert_memory_equal(&deposit, &before, sizeof before);
    }
    const skua_payload nothing = skua_nothing(); /* of the same type number, but empty */
    assert_int_equal(tiny_get(&nothing, &tiny), SKUA_E_PAYLOAD_TYPE);
    assert_int_equal(tiny.byte, 1);
    const skua_payload constant = skua_payload_static(deposit_number, &before, sizeof before);
    assert_int_equal(deposit_get(&constant, &deposit), 0);
}

/* ---- errors ---- */

TEST(messages_that_are_refused_leave_nothing_behind)
{
    world_open_with((skua_runtime_config){.payload_limit = 100});
    struct actor *actor = actor_start(NO_ACTS);
    const skua_pid nobody = {actor->pid.bits + 5000};
    assert_int_equal(large_post(world_runtime(), actor->pid, some_large()), SKUA_E_PAYLOAD_SIZE);
    assert_int_equal(over_post(world_runtime(), nobody, (struct over){.more = 1}),
                     SKUA_E_NO_PROCESS);
    assert_int_equal(tiny_post(NULL, nobody, (struct tiny){.byte = 1}), SKUA_E_INVALID);
    assert_int_equal(tiny_send(NULL, nobody, (struct tiny){.byte = 1}), SKUA_E_INVALID);
    assert_int_equal(over_send(NULL, nobody, (struct over){.more = 1}), SKUA_E_INVALID);
}

/* ---- hashes ---- */

/* Leaves its mark where the next function has its variables. */
static __attribute__((noinline)) void soil_stack(unsigned char mark)
{
    volatile unsigned char dirt[4096];
    for (size_t i = 0; i < sizeof dirt; i++) {
        dirt[i] = mark;
    }
}

static __attribute__((noinline)) int send_fields(struct turn *turn, const struct act *act)
{
    struct deposit small; /* no initialiser: all of it is written by field */
    struct over over;
    small.kind = 1;
    small.account = 2;
    small.cents = 3;
    over.words[0] = over.words[1] = over.words[2] = 4;
    over.more = 5;
    const int error = deposit_send(turn->ctx, act->peer->pid, small);
    return error != 0 ? error : over_send(turn->ctx, act->peer->pid, over);
}

static int soil_and_send(struct turn *turn, const struct act *act)
{
    soil_stack((unsigned char)act->number);
    return send_fields(turn, act);
}

static uint64_t hash_with(uint64_t mark)
{
    world_open_sim(3, SIM_NO_FAULTS);
    struct actor *reader = actor_start(NO_ACTS);
    (void)actor_start(
        ACTS((struct act){.perform = soil_and_send, .peer = reader, .number = mark}, finishes(0)));
    world_settle();
    assert_int_equal(reader->seen_count, 2);
    const uint64_t hash = skua_sim_hash(world_runtime());
    world_close();
    return hash;
}

TEST(messages_hash_alike_whatever_was_on_the_stack)
{
    const uint64_t hash = hash_with(0);
    assert_int_equal(hash_with(0x5a), hash);
    assert_int_equal(hash_with(0xff), hash);
}
