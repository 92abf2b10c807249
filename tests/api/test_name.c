/* SPDX-License-Identifier: MIT */
/* Names: who has one, who finds whom by it, and when it is free again; and labels. */
#include <stdio.h>

#include "effort.h"
#include "names.h"
#include "timers.h"

#define LONGEST  "123456789 123456789 123456789 123456789 123456789 123456789 123"
#define TOO_LONG LONGEST "4"

/* ---- having one ---- */

TEST(name_finds_its_holder_until_that_gives_it_up)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor *holder = actor_start(NO_ACTS);
        struct actor *other = actor_start(ACTS(finds("clock", NULL)));
        world_settle();
        actor_perform(holder, ACTS(takes_name("clock"), finds("clock", holder)));
        assert_found("clock", holder);
        assert_nobody_has("clock ");
        assert_nobody_has("cloc");
        actor_perform(other, ACTS(finds("clock", holder)));
        actor_perform(holder, ACTS(gives_up_name("clock"), finds("clock", NULL),
                                   refused(gives_up_name("clock"), SKUA_E_NO_PROCESS)));
        assert_nobody_has("clock");
        actor_perform(other, ACTS(takes_name("clock")));
        assert_found("clock", other);
        actor_perform(holder, ACTS(takes_name("other clock"), gives_up_name("other clock")));
    }
}

TEST(process_may_have_several_names)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor *holder = named_start("one", ACTS(takes_name("two"), takes_name("three")));
        world_settle();
        assert_found("one", holder);
        assert_found("two", holder);
        assert_found("three", holder);
        actor_perform(holder, ACTS(gives_up_name("two")));
        assert_found("one", holder);
        assert_nobody_has("two");
        assert_found("three", holder);
        actor_perform(holder, ACTS(takes_name("two"), gives_up_name("one")));
        assert_found("two", holder);
        actor_perform(holder, ACTS(finishes(0)));
        assert_nobody_has("one");
        assert_nobody_has("two");
        assert_nobody_has("three");
    }
}

/* Names are given up in any order, each at once: also one of very many. */
enum { MANY_NAMES = 20000 };

static const char *numbered(uint64_t number)
{
    static _Thread_local char text[32];
    (void)snprintf(text, sizeof text, "many.%llu", (unsigned long long)number);
    return text;
}

static int take_numbered(struct turn *turn, const struct act *act)
{
    return skua_name_register(turn->ctx, numbered(act->number), NULL);
}

/* Those with a number below 1,000, from both ends of that; then the others, oldest first. */
static int give_up_numbered(struct turn *turn, const struct act *act)
{
    const uint64_t n = act->number;
    const uint64_t number = n >= 1000 ? n : n % 2 == 0 ? n / 2 : 999 - n / 2;
    const int error = skua_name_unregister(turn->ctx, numbered(number));
    return error != 0 ? error
           : skua_name_unregister(turn->ctx, numbered(number)) == SKUA_E_NO_PROCESS
               ? 0
               : SKUA_E_INVALID;
}

TEST(names_of_a_process_are_given_up_in_any_order)
{
    world_open_virtual();
    struct actor *holder = actor_start(ACTS(for_each_tag(MANY_NAMES, does(take_numbered, NULL))));
    world_settle();
    actor_perform(holder, ACTS(for_each_tag(MANY_NAMES - 2, does(give_up_numbered, NULL))));
    assert_nobody_has(numbered(0));
    assert_nobody_has(numbered(MANY_NAMES - 3));
    assert_found(numbered(MANY_NAMES - 2), holder);
    assert_found(numbered(MANY_NAMES - 1), holder);
    actor_perform(holder, ACTS(finishes(0)));
    assert_nobody_has(numbered(MANY_NAMES - 2));
    assert_nobody_has(numbered(MANY_NAMES - 1));
}

TEST(name_that_is_taken_tells_by_whom)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor *holder = actor_start(ACTS(takes_name("clock")));
        world_settle();
        struct actor *other = actor_start(ACTS(meets_holder("clock", holder),
                                               refused(gives_up_name("clock"), SKUA_E_NO_PROCESS)));
        actor_perform(holder, ACTS(meets_holder("clock", holder)));
        assert_found("clock", holder);
        actor_perform(holder, ACTS(gives_up_name("clock")));
        actor_perform(other, ACTS(takes_name("clock")));
    }
}

static int take_without_asking_who(struct turn *turn, const struct act *act)
{
    return skua_name_register(turn->ctx, act->arg, NULL);
}

TEST(name_needs_no_place_for_its_holder)
{
    static char text[8];
    strcpy(text, "clock");
    world_open_virtual();
    struct actor *holder =
        actor_start(ACTS(does(take_without_asking_who, text),
                         refused(does(take_without_asking_who, text), SKUA_E_NAME_TAKEN)));
    world_settle();
    strcpy(text, "watch"); /* it was borrowed only */
    assert_found("clock", holder);
}

/* ---- what can be a name ---- */

static const struct {
    const char *text;
    int error;
} bad_names[] = {
    {NULL, SKUA_E_NAME},           {"", SKUA_E_NAME},
    {"\n", SKUA_E_NAME},           {"clock\t", SKUA_E_NAME},
    {"\x1f", SKUA_E_NAME},         {"a name of many words\x7f and more", SKUA_E_NAME},
    {"12345678\x01", SKUA_E_NAME}, {TOO_LONG, SKUA_E_NAME_LENGTH},
};

TEST(no_function_takes_a_bad_name)
{
    FOR_ROWS (bad, bad_names) {
        struct tracked items[2] = {{.value = 1}, {.value = 2}};
        skua_pid pid = {1};
        skua_name number = {1};
        world_open_virtual();
        struct actor *child = actor_new(NO_ACTS);
        struct actor *actor =
            actor_start(ACTS(refused(takes_name(bad->text), bad->error),
                             refused(gives_up_name(bad->text), bad->error),
                             refused(awaits_name(1, bad->text), bad->error),
                             refused(sends_item_to_name(bad->text, &items[0]), bad->error),
                             refused(asks_name_item(2, bad->text, &items[1]), bad->error)));
        world_settle();
        assert_saw_nothing(actor);
        assert_drops(items, 2, 1);
        assert_int_equal(skua_name_find(world_runtime(), bad->text, &pid), bad->error);
        assert_int_equal(pid.bits, 0);
        assert_int_equal(skua_name_of(world_runtime(), bad->text, &number), bad->error);
        if (bad->text != NULL) { /* for these two that is none */
            actor_perform(actor, ACTS(refused(spawns_named(child, bad->text), bad->error),
                                      refused(takes_label(bad->text), bad->error)));
            assert_int_equal(child->closes, 1);
        }
        world_close();
    }
}

TEST(name_has_up_to_63_bytes_of_any_text)
{
    static const char *const names[] = {LONGEST,
                                        " ",
                                        "1234567",
                                        "12345678",
                                        "123456789",
                                        "sp ace/\"q\"",
                                        "\xc3\xa4\xe2\x82\xac\xff"};
    world_open_virtual();
    struct actor *actors[COUNT_OF(names)];
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        actors[i] = named_start(names[i], NO_ACTS);
    }
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        assert_found(names[i], actors[i]);
    }
}

TEST(names_have_a_limit)
{
    world_open_virtual_with((skua_runtime_config){.name_limit = 3});
    struct actor *child = actor_new(NO_ACTS);
    struct actor *waiter = actor_start(ACTS(awaits_name(1, "later")));
    world_settle();
    struct actor *actor = named_start(
        "one", ACTS(takes_name("two"), refused(takes_name("three"), SKUA_E_NAME_LIMIT),
                    refused(spawns_named(child, "three"), SKUA_E_NAME_LIMIT),
                    awaits_name(2, "three"), awaits_name(3, "later"), awaits_name(4, "two")));
    world_settle();
    assert_then_saw_in_any_order(actor, failure(2, SKUA_E_NAME_LIMIT), holder_of(4, actor));
    assert_then_saw_nothing(waiter);
    /* One that is awaited counts already. */
    actor_perform(actor, ACTS(takes_name("later"), refused(takes_name("x"), SKUA_E_NAME_LIMIT)));
    assert_then_saw(waiter, holder_of(1, actor));
    assert_then_saw(actor, holder_of(3, actor));
    actor_perform(actor, ACTS(gives_up_name("two"), takes_name("three")));
    /* One that is not awaited any more does not. */
    actor_perform(actor, ACTS(gives_up_name("three")));
    actor_perform(waiter, ACTS(awaits_name(5, "x"), continues(1), cancels(5), awaits(1)));
    actor_perform(actor, ACTS(takes_name("y")));
    assert_found("y", actor);
}

/* ---- free again when the end can be observed ---- */

/* Of each kind of ending: the name is free in the step that is told of it. */
static void let_heir_follow(struct actor *holder, struct actor *heir, struct script end)
{
    world_settle();
    assert_found("throne", holder);
    actor_tell(holder, end);
    world_settle();
    assert_found("throne", heir);
    assert_found("second throne", heir);
}

static struct script inherits(struct act relation)
{
    return ACTS(relation, awaits(1), finds("throne", NULL), takes_name("throne"),
                takes_name("second throne"));
}

static struct actor *start_holder(void)
{
    struct actor *holder = server_new(ACTS(takes_name("throne"), takes_name("second throne")));
    actor_submit(holder);
    return holder;
}

TEST(name_is_free_when_a_monitor_tells_of_the_end)
{
    FOR_ROUNDS (seed, 50) {
        world_open_sim(seed, (skua_sim_faults){.message_delay = seed % 2 * 400000});
        struct actor *holder = start_holder();
        struct actor *heir =
            actor_start(inherits(seed % 3 == 0 ? monitors(1, holder) : joins(1, holder)));
        let_heir_follow(holder, heir, seed % 5 == 0 ? ACTS(fails(SKUA_E_USER)) : ACTS(finishes(0)));
    }
}

TEST(name_is_free_when_a_link_or_a_call_tells_of_the_end)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor *holder = start_holder();
        struct actor *heir = actor_start(inherits(links(holder, SKUA_LINK_TELL, 1, NULL)));
        let_heir_follow(holder, heir, ACTS(fails(SKUA_E_USER)));
        actor_perform(heir, ACTS(gives_up_name("throne"), gives_up_name("second throne")));
        struct actor *next = start_holder();
        let_heir_follow(next, actor_start(inherits(asks(2, next, 1))), ACTS(terminates(next)));
    }
}

TEST(name_is_free_when_a_thread_has_waited_for_the_end)
{
    world_open();
    for (int i = 0; i < 200; i++) {
        struct actor *actor = actor_new(ACTS(takes_name("one"), takes_name("two"), finishes(0)));
        assert_result(actor_run(actor), 0);
        assert_nobody_has("one");
        assert_nobody_has("two");
    }
}

/* Heirs that follow each other on threads: each takes the name in the step that hears of the end.*/
TEST(name_goes_from_heir_to_heir_on_threads)
{
    enum { HEIRS = 50 };
    FOR_ROUNDS (round, 20) {
        struct actor *heirs[HEIRS];
        world_open();
        heirs[0] = actor_start(ACTS(takes_name("throne"), expects(message(0, 0)), finishes(0)));
        for (size_t i = 1; i < HEIRS; i++) {
            heirs[i] = actor_start(ACTS(monitors(1, heirs[i - 1]), awaits(1), finds("throne", NULL),
                                        takes_name("throne"), finishes(0)));
        }
        for (size_t i = 1; i < HEIRS; i++) {
            actor_await_state(heirs[i], SKUA_PROCESS_BLOCKED);
        }
        assert_int_equal(world_send(heirs[0]->pid, skua_payload_u64(0, 0)), 0);
        actor_await_end(heirs[HEIRS - 1]);
        assert_nobody_has("throne");
    }
}

/* A process has no name any more when its close runs. */
TEST(name_is_free_in_close)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor *holder = named_start("one", ACTS(takes_name("two")));
        world_settle();
        holder->in_close = ACTS(finds("one", NULL), finds("two", NULL),
                                refused(gives_up_name("two"), SKUA_E_NO_PROCESS));
        actor_perform(holder, ACTS(finishes(0)));
        assert_ended(holder, 0);
    }
}

/* ---- numbers ---- */

static void assert_holder(skua_name number, int error, const struct actor *holder)
{
    skua_pid pid = {1};
    assert_int_equal(skua_name_holder(world_runtime(), number, &pid), error);
    assert_int_equal(pid.bits, error == 0 ? holder->pid.bits : 0);
}

static skua_name number_of(const char *name)
{
    skua_name number = {0};
    assert_int_equal(skua_name_of(world_runtime(), name, &number), 0);
    assert_int_not_equal(number.bits, 0);
    return number;
}

TEST(number_leads_to_whoever_has_the_name)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        const skua_name number = number_of("clock");
        const skua_name other = number_of("watch");
        assert_int_not_equal(number.bits, other.bits);
        assert_holder(number, SKUA_E_NO_PROCESS, NULL);
        for (int i = 0; i < 5; i++) { /* restarts */
            struct actor *holder = named_start("clock", NO_ACTS);
            assert_holder(number, 0, holder);
            assert_int_equal(number_of("clock").bits, number.bits);
            assert_holder(other, SKUA_E_NO_PROCESS, NULL);
            actor_perform(holder, ACTS(finishes(0)));
            assert_holder(number, SKUA_E_NO_PROCESS, NULL);
        }
    }
}

TEST(number_expires_only_if_nobody_has_the_name)
{
    enum { OTHERS = 20000 };
    world_open_virtual();
    struct actor *holder = named_start("held", NO_ACTS);
    struct actor *waiter = actor_start(ACTS(awaits_name(1, "awaited")));
    world_settle();
    const skua_name held = number_of("held");
    const skua_name awaited = number_of("awaited");
    const skua_name idle = number_of("idle");
    for (unsigned i = 0; i < OTHERS; i++) {
        char text[16];
        (void)snprintf(text, sizeof text, "other %u", i);
        (void)number_of(text);
    }
    assert_holder(held, 0, holder);
    assert_holder(awaited, SKUA_E_NO_PROCESS, NULL);
    assert_holder(idle, SKUA_E_LATE, NULL);
    assert_holder(number_of("idle"), SKUA_E_NO_PROCESS, NULL);
    actor_perform(holder, ACTS(takes_name("awaited"), takes_name("idle")));
    assert_holder(awaited, 0, holder);
    assert_holder(idle, SKUA_E_LATE, NULL);
    assert_holder(number_of("idle"), 0, holder);
    assert_saw(waiter, holder_of(1, holder));
}

TEST(number_that_is_none_is_late)
{
    world_open_virtual();
    static const uint64_t forged[] = {0, 1, UINT64_MAX, UINT32_MAX, UINT64_C(1) << 32};
    for (size_t i = 0; i < COUNT_OF(forged); i++) {
        assert_holder((skua_name){forged[i]}, SKUA_E_LATE, NULL);
    }
    struct actor *holder = named_start("clock", NO_ACTS);
    const skua_name number = number_of("clock");
    assert_holder((skua_name){number.bits ^ UINT64_C(1) << 33}, SKUA_E_LATE, NULL);
    assert_holder(number, 0, holder);
}

/* ---- start it, or find it ---- */

TEST(start_with_a_name_that_is_taken_finds_the_holder)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor *child = actor_new(NO_ACTS);
        struct actor *late = actor_new(NO_ACTS);
        struct actor *parent =
            actor_start(ACTS(spawns_named(child, "clock"), finds("clock", child),
                             finds_by_spawn(late, (skua_spawn_options){.name = "clock"}, child),
                             sends_to_name("clock", 0, 5)));
        world_settle();
        assert_saw(child, message(0, 5));
        assert_int_equal(late->inits, 1);
        assert_ended(late, SKUA_E_NAME_TAKEN);
        skua_pid pid = {0};
        assert_int_equal(actor_try_submit_with(late, (skua_spawn_options){.name = "clock"}, &pid),
                         SKUA_E_NAME_TAKEN);
        assert_int_equal(pid.bits, child->pid.bits);
        assert_int_equal(actor_try_submit_with(late, (skua_spawn_options){.name = "clock"}, NULL),
                         SKUA_E_NAME_TAKEN);
        actor_perform(child, ACTS(finishes(0)));
        actor_perform(parent, ACTS(spawns_named(late, "clock")));
        assert_found("clock", late);
    }
}

TEST(start_that_fails_leaves_no_name)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor *child = actor_new(NO_ACTS);
        child->init_returns = SKUA_E_USER;
        child->in_init = ACTS(takes_label("unborn"));
        struct actor *waiter = actor_start(ACTS(awaits_name(1, "clock")));
        struct actor *parent =
            actor_start(ACTS(refused(spawns_with(child, (skua_spawn_options){.name = "clock",
                                                                             .label = "child",
                                                                             .monitor = true,
                                                                             .join = true,
                                                                             .link = true}),
                                     SKUA_E_USER)));
        world_settle();
        assert_nobody_has("clock");
        assert_saw_nothing(waiter);
        assert_int_equal(actor_try_submit_with(child, (skua_spawn_options){.name = "clock"}, NULL),
                         SKUA_E_USER);
        assert_nobody_has("clock");
        child->init_returns = 0;
        actor_perform(parent, ACTS(spawns_named(child, "clock")));
        assert_saw(waiter, holder_of(1, child));
    }
}

/* A refused name undoes the relations that the start has made already. */
TEST(start_with_a_name_that_is_taken_undoes_its_relations)
{
    test_of_steps("a task keeps the node of an event until it receives the next");
    FOR_ROUNDS (driver, DRIVERS) {
        skua_link_id id = {1};
        world_open_driver(driver);
        struct actor *holder = named_start("clock", NO_ACTS);
        struct actor *child = actor_new(NO_ACTS);
        struct actor *parent = actor_start(NO_ACTS);
        const skua_spawn_options options = {.name = "clock",
                                            .label = "child",
                                            .monitor = true,
                                            .join = true,
                                            .link = true,
                                            .link_id = &id};
        const uint64_t nodes = nodes_in_use();
        for (int i = 0; i < 10; i++) {
            actor_perform(parent, ACTS(finds_by_spawn(child, options, holder)));
            assert_int_equal(id.bits, 0);
        }
        assert_saw_nothing(parent);
        assert_in_range(nodes_in_use(), nodes, nodes + 1); /* its annex */
        actor_perform(holder, ACTS(fails(SKUA_E_USER)));
        actor_perform(parent, ACTS(finishes(0)));
        assert_ended(parent, 0);
    }
}

/* Threads that start the same: one does, and the others find it and can reach it at once. */
enum { STARTERS = 4 };

struct start {
    struct actor *actor;
    skua_pid pid;
    int error;
    int send_error;
};

static void start_and_send(void *arg)
{
    struct start *start = arg;
    start->error =
        actor_try_submit_with(start->actor, (skua_spawn_options){.name = "clock"}, &start->pid);
    start->send_error = skua_process_send(world_runtime(), start->pid, skua_payload_u64(0, 1));
}

TEST(threads_that_start_the_same_name_have_one_process)
{
    world_open();
    for (int round = 0; round < EFFORT(500); round++) {
        struct start starts[STARTERS] = {0};
        const struct actor *winner = NULL;
        for (size_t i = 0; i < STARTERS; i++) {
            starts[i].actor = actor_new(ACTS(awaits(STARTERS), finishes(0)));
        }
        api_in_threads(STARTERS, start_and_send, starts, sizeof starts[0]);
        for (size_t i = 0; i < STARTERS; i++) {
            assert_int_equal(starts[i].pid.bits, starts[0].pid.bits);
            assert_int_equal(starts[i].send_error, 0);
            assert_true(starts[i].error == 0 || starts[i].error == SKUA_E_NAME_TAKEN);
            if (starts[i].error == 0) {
                assert_null(winner);
                winner = starts[i].actor;
            }
        }
        assert_non_null(winner);
        world_await_live(0);
        assert_nobody_has("clock");
    }
}

/* ---- labels ---- */

TEST(label_is_set_replaced_and_taken_away)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor *actor = actor_new(ACTS(takes_label(NULL)));
        actor->in_init = ACTS(takes_label("born"));
        actor_submit(actor);
        struct actor *child = actor_new(NO_ACTS);
        world_settle();
        assert_string_equal(label_of(actor), "");
        actor_perform(actor, ACTS(takes_label("first"), takes_label("second")));
        assert_string_equal(label_of(actor), "second");
        actor_perform(actor,
                      ACTS(takes_label(LONGEST), refused(takes_label(TOO_LONG), SKUA_E_NAME_LENGTH),
                           refused(takes_label(""), SKUA_E_NAME),
                           refused(takes_label("x\n"), SKUA_E_NAME)));
        assert_string_equal(label_of(actor), LONGEST);
        assert_nobody_has(LONGEST); /* nothing is found by it */
        actor_perform(actor, ACTS(takes_label(NULL), takes_label(NULL)));
        assert_string_equal(label_of(actor), "");
        actor_perform(actor, ACTS(spawns_with(child, (skua_spawn_options){.label = "child"})));
        assert_string_equal(label_of(child), "child");
    }
}

TEST(label_of_init_lasts_and_that_of_the_start_replaces_it)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor *one = actor_new(NO_ACTS);
        struct actor *two = actor_new(NO_ACTS);
        one->in_init = two->in_init = ACTS(takes_label("init"));
        actor_submit(one);
        assert_int_equal(actor_try_submit_with(two, (skua_spawn_options){.label = "start"}, NULL),
                         0);
        world_settle();
        assert_string_equal(label_of(one), "init");
        assert_string_equal(label_of(two), "start");
    }
}

/* ---- where it belongs ---- */

TEST(names_belong_into_steps)
{
    FOR_ROUNDS (driver, DRIVERS) {
        struct tracked item = {0};
        world_open_driver(driver);
        struct actor *holder = named_start("taken", NO_ACTS);
        struct actor *actor = actor_new(ACTS(finishes(0), takes_name("after done"),
                                             refused(awaits_name(1, "taken"), SKUA_E_DONE),
                                             refused(asks_name(1, "taken", 1), SKUA_E_DONE)));
        actor->in_init = ACTS(refused(takes_name("x"), SKUA_E_CONTEXT),
                              refused(awaits_name(1, "taken"), SKUA_E_CONTEXT),
                              refused(asks_name_item(1, "taken", &item), SKUA_E_CONTEXT),
                              sends_to_name("taken", 0, 1));
        actor->in_close =
            ACTS(refused(takes_name("x"), SKUA_E_CONTEXT),
                 refused(awaits_name(1, "taken"), SKUA_E_CONTEXT),
                 refused(asks_name(1, "taken", 2), SKUA_E_CONTEXT),
                 refused(takes_label("x"), SKUA_E_CONTEXT), sends_to_name("taken", 0, 2));
        assert_result(actor_run(actor), 0);
        world_settle();
        assert_saw(holder, message(0, 1), message(0, 2));
        assert_drops(&item, 1, 1);
        assert_nobody_has("x");
        assert_nobody_has("after done");
    }
}

TEST(names_without_a_runtime_or_a_place_are_invalid)
{
    skua_pid pid = {1};
    skua_name number = {1};
    struct tracked items[2] = {{.value = 1}, {.value = 2}};
    world_open_virtual();
    assert_int_equal(skua_name_find(NULL, "x", &pid), SKUA_E_INVALID);
    assert_int_equal(pid.bits, 0);
    assert_int_equal(skua_name_find(world_runtime(), "x", NULL), SKUA_E_INVALID);
    pid.bits = 1;
    assert_int_equal(skua_name_holder(NULL, number, &pid), SKUA_E_INVALID);
    assert_int_equal(pid.bits, 0);
    assert_int_equal(skua_name_holder(world_runtime(), number, NULL), SKUA_E_INVALID);
    assert_int_equal(skua_name_of(NULL, "x", &number), SKUA_E_INVALID);
    assert_int_equal(skua_name_of(world_runtime(), "x", NULL), SKUA_E_INVALID);
    pid.bits = 1;
    assert_int_equal(skua_name_register(NULL, "x", &pid), SKUA_E_INVALID);
    assert_int_equal(pid.bits, 0);
    assert_int_equal(skua_name_unregister(NULL, "x"), SKUA_E_INVALID);
    assert_int_equal(skua_label(NULL, "x"), SKUA_E_INVALID);
    assert_int_equal(skua_yield_await_name(NULL, 1, "x", SKUA_FOREVER), SKUA_E_INVALID);
    assert_int_equal(skua_send_name(NULL, "x", tracked_payload(0, &items[0])), SKUA_E_INVALID);
    assert_int_equal(
        skua_yield_call_name(NULL, 1, "x", tracked_payload(0, &items[1]), SKUA_FOREVER),
        SKUA_E_INVALID);
    assert_drops(items, 2, 1);
}
