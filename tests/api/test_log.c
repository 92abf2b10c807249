/* SPDX-License-Identifier: MIT */
/* What the runtime says by on_log: processes that failed and nobody watched, contexts misused. */
#include <stdio.h>

#include "errand.h"
#include "exits.h"
#include "names.h"
#include "timers.h"

#define LINES_MAX  64
#define LINES_RATE 5 /* a second */

/* All that was said in the current test. */
struct lines {
    pthread_mutex_t lock;
    size_t count;
    struct {
        enum skua_log_level level;
        skua_pid pid;
        char type_name[32];
        char text[400];
    } list[LINES_MAX];
    struct tally written;
};

static struct lines *lines;

static void note_line(void *arg, const skua_log *log)
{
    struct lines *notes = arg;
    (void)pthread_mutex_lock(&notes->lock);
    if (notes->count < LINES_MAX) {
        notes->list[notes->count].level = log->level;
        notes->list[notes->count].pid = log->pid;
        (void)snprintf(notes->list[notes->count].type_name, 32, "%s",
                       log->type_name != NULL ? log->type_name : "");
        (void)snprintf(notes->list[notes->count].text, 400, "%s", log->text);
    }
    notes->count++;
    (void)pthread_mutex_unlock(&notes->lock);
    tally_add(&notes->written, 1);
}

static skua_runtime_config noting_lines(void)
{
    lines = test_alloc(sizeof *lines);
    (void)pthread_mutex_init(&lines->lock, NULL);
    tally_init(&lines->written);
    return (skua_runtime_config){.on_log = note_line, .on_log_arg = lines};
}

static void assert_says(size_t line, const char *part)
{
    assert_in_range(line, 0, lines->count - 1);
    if (strstr(lines->list[line].text, part) == NULL) {
        fail_msg("line %zu is '%s', without '%s'", line, lines->list[line].text, part);
    }
}

static struct actor *failing_start(struct script script, const char *name)
{
    struct actor *actor = actor_new(script);
    actor->type.name = name;
    actor->type.cancel = SKUA_CANCEL_END;
    actor_submit(actor);
    return actor;
}

/* ---- processes that fail ---- */

TEST(process_that_fails_unwatched_gives_a_line)
{
    char digits[SKUA_PID_TEXT_SIZE];
    world_open_with(noting_lines());
    struct actor *actor = failing_start(ACTS(continues(6), fails(SKUA_E_CLOSED)), "sad");
    tally_wait(&lines->written, 1);
    world_close();
    assert_int_equal(lines->count, 1);
    assert_int_equal(lines->list[0].level, SKUA_LOG_ERROR);
    assert_true(skua_pid_equal(lines->list[0].pid, actor->pid));
    assert_string_equal(lines->list[0].type_name, "sad");
    assert_says(0, "sad");
    assert_says(0, skua_pid_format(actor->pid, digits));
    assert_says(0, "SKUA_E_CLOSED");
    assert_says(0, skua_error_text(SKUA_E_CLOSED));
    assert_says(0, "step 7");
    assert_null(strchr(lines->list[0].text, '\n'));
}

TEST(process_that_fails_with_an_error_of_its_own_gives_a_line)
{
    world_open_with(noting_lines());
    (void)failing_start(ACTS(fails(SKUA_E_USER - 17)), "sad");
    tally_wait(&lines->written, 1);
    assert_says(0, "-10017");
}

TEST(process_that_is_ended_for_a_reason_gives_a_line)
{
    world_open_virtual_with(noting_lines());
    struct actor *killed = failing_start(NO_ACTS, "killed");
    struct actor *cancelled = failing_start(NO_ACTS, "cancelled");
    world_settle();
    assert_int_equal(world_terminate(killed->pid), 0);
    world_settle();
    assert_int_equal(world_cancel(cancelled->pid, SKUA_E_TIMEOUT), 0);
    world_settle();
    assert_int_equal(lines->count, 2);
    assert_says(0, "SKUA_E_TERMINATED");
    assert_says(1, "SKUA_E_TIMEOUT");
}

TEST(process_with_a_long_name_gives_a_line_all_the_same)
{
    static char name[1000];
    memset(name, 'n', sizeof name - 1);
    world_open_virtual_with(noting_lines());
    (void)failing_start(ACTS(fails(SKUA_E_CLOSED)), name);
    world_settle();
    assert_int_equal(lines->count, 1);
    assert_says(0, "nnnn");
    assert_says(0, "SKUA_E_CLOSED");
}

TEST(process_that_ends_in_order_gives_no_line)
{
    world_open_virtual_with(noting_lines());
    (void)failing_start(ACTS(finishes(0)), "done");
    struct actor *cancelled = failing_start(NO_ACTS, "cancelled");
    (void)failing_start(ACTS(fails(SKUA_E_CANCELLED)), "cancelled");
    (void)failing_start(ACTS(fails(SKUA_E_STOPPED)), "stopped");
    (void)failing_start(NO_ACTS, "stopped");
    world_settle();
    assert_int_equal(world_cancel(cancelled->pid, 0), 0);
    world_close();
    assert_int_equal(lines->count, 0);
}

TEST(process_that_is_waited_for_gives_no_line)
{
    world_open_with(noting_lines());
    assert_failed(actor_run(actor_new(ACTS(fails(SKUA_E_CLOSED)))), SKUA_E_CLOSED);
    world_close();
    assert_int_equal(lines->count, 0);
}

/* How many lines are about the process of an actor. */
static size_t lines_about(const struct actor *actor)
{
    size_t count = 0;
    for (size_t i = 0; i < lines->count; i++) {
        count += skua_pid_equal(lines->list[i].pid, actor->pid);
    }
    return count;
}

/* Each of them could count on the next one. */
TEST(processes_that_fail_together_give_a_line_each_and_the_first_comes_first)
{
    FOR_ROUNDS (round, 2) {
        struct actor *ring[3];
        const size_t size = 1 + round;
        world_open_virtual_with(noting_lines());
        ring[0] = actor_start(NO_ACTS);
        for (size_t i = 1; i < size; i++) {
            ring[i] = actor_start(ACTS(links(ring[i - 1], SKUA_LINK_BOTH, 0, NULL)));
        }
        world_settle();
        actor_perform(ring[0], ACTS(links(ring[size - 1], SKUA_LINK_BOTH, 0, NULL)));
        actor_perform(ring[0], ACTS(fails(SKUA_E_CLOSED)));
        world_settle();
        assert_int_equal(lines->count, size);
        assert_true(skua_pid_equal(lines->list[0].pid, ring[0]->pid));
        for (size_t i = 0; i < size; i++) {
            assert_int_equal(lines_about(ring[i]), 1);
        }
        world_close();
    }
}

TEST(process_whose_link_tells_nobody_gives_a_line)
{
    static const struct {
        uint32_t flags;
        bool maker_fails;
    } rows[] = {{SKUA_LINK_ONLY_ME, true}, {SKUA_LINK_ONLY_IT, false}, {SKUA_LINK_TELL, true}};
    FOR_ROWS (row, rows) {
        world_open_virtual_with(noting_lines());
        struct actor *peer = actor_start(NO_ACTS);
        struct actor *maker = actor_start(ACTS(links(peer, row->flags, 0, NULL)));
        struct actor *failing = row->maker_fails ? maker : peer;
        world_settle();
        actor_perform(failing, ACTS(fails(SKUA_E_CLOSED)));
        world_settle();
        assert_int_equal(lines_about(failing), 1);
        world_close();
    }
}

TEST(process_whose_link_tells_another_gives_no_line)
{
    world_open_virtual_with(noting_lines());
    struct actor *peer = actor_start(NO_ACTS);
    (void)actor_start(ACTS(links(peer, SKUA_LINK_TELL, 0, NULL)));
    world_settle();
    actor_perform(peer, ACTS(fails(SKUA_E_CLOSED)));
    world_settle();
    assert_int_equal(lines->count, 0);
}

/* The link was on its way when the process failed. */
TEST(process_that_is_told_of_by_a_link_it_has_not_seen_gives_no_line)
{
    static const struct {
        uint32_t flags;
        size_t lines;
    } rows[] = {{SKUA_LINK_TELL, 0}, {SKUA_LINK_ONLY_IT, 1}};
    FOR_ROWS (row, rows) {
        world_open_with(noting_lines());
        struct actor *peer = actor_start(NO_ACTS);
        struct actor *maker = actor_start(NO_ACTS);
        actor_perform_until_held(peer, ACTS(blocks(), fails(SKUA_E_CLOSED)));
        actor_perform(maker, ACTS(links(peer, row->flags, 0, NULL)));
        actor_let_go(peer);
        world_await_live(1);
        world_close();
        assert_int_equal(lines->count, row->lines);
    }
}

#define CROWD 1500 /* more than are told in one slice */

TEST(process_with_very_many_links_gives_the_first_line)
{
    world_open_virtual_with(noting_lines());
    struct actor *hub = actor_start(NO_ACTS);
    for (size_t i = 0; i < CROWD; i++) {
        (void)actor_start(ACTS(links(hub, SKUA_LINK_BOTH, 0, NULL)));
    }
    world_settle();
    actor_perform(hub, ACTS(fails(SKUA_E_CLOSED)));
    world_settle();
    assert_int_equal(lines->count, LINES_RATE);
    assert_true(skua_pid_equal(lines->list[0].pid, hub->pid));
    assert_int_equal(lines_about(hub), 1);
}

TEST(process_taken_along_gives_a_line_that_names_who_failed_first)
{
    char digits[SKUA_PID_TEXT_SIZE];
    world_open_virtual_with(noting_lines());
    struct actor *first = actor_start(NO_ACTS);
    struct actor *second = actor_start(ACTS(links(first, SKUA_LINK_BOTH, 0, NULL)));
    struct actor *third = actor_start(ACTS(links(second, SKUA_LINK_BOTH, 0, NULL)));
    (void)actor_start(ACTS(monitors(1, first))); /* so that the first gives no line */
    world_settle();
    actor_perform(first, ACTS(fails(SKUA_E_CLOSED)));
    world_settle();
    assert_int_equal(lines->count, 2);
    assert_int_equal(lines_about(second) + lines_about(third), 2);
    for (size_t i = 0; i < 2; i++) {
        assert_says(i, skua_pid_format(first->pid, digits));
        assert_says(i, "failed first");
    }
}

/* Its first name, and only if it has none its label. */
TEST(process_with_a_name_gives_a_line_with_it)
{
    const struct {
        struct script script;
        const char *says;
    } rows[] = {
        {ACTS(takes_name("clock"), takes_name("watch")), "(actor, clock) failed"},
        {ACTS(takes_label("a clock"), takes_name("clock")), "(actor, clock) failed"},
        {ACTS(takes_label("a clock")), "(actor, a clock) failed"},
    };
    FOR_ROWS (row, rows) {
        world_open_virtual_with(noting_lines());
        struct actor *actor = actor_start(row->script);
        world_settle();
        actor_perform(actor, ACTS(fails(SKUA_E_CLOSED)));
        world_settle();
        assert_int_equal(lines->count, 1);
        assert_says(0, row->says);
        assert_null(strstr(lines->list[0].text, "failed first"));
        world_close();
    }
}

/* The hook hears of every end, but watches no process in particular. */
TEST(process_whose_end_the_program_is_told_gives_a_line_all_the_same)
{
    struct exits *exits = exits_new();
    skua_runtime_config config = noting_lines();
    config.on_exit = exits_note;
    config.on_exit_arg = exits;
    world_open_with(config);
    (void)failing_start(ACTS(fails(SKUA_E_CLOSED)), "sad");
    exits_await(exits, 1);
    world_close();
    assert_int_equal(lines->count, 1);
}

/* Whoever started it has been told. */
TEST(init_that_fails_gives_no_line)
{
    world_open_with(noting_lines());
    struct actor *actor = actor_new(NO_ACTS);
    actor->init_returns = SKUA_E_CLOSED;
    assert_int_equal(actor_try_submit(actor), SKUA_E_CLOSED);
    world_close();
    assert_int_equal(lines->count, 0);
}

TEST(runtime_without_a_log_is_silent)
{
    world_open();
    (void)failing_start(ACTS(fails(SKUA_E_CLOSED)), "sad");
    world_await_live(0);
}

/* ---- how many ---- */

static void fail_many(size_t count)
{
    for (size_t i = 0; i < count; i++) {
        (void)failing_start(ACTS(fails(SKUA_E_CLOSED)), "sad");
    }
    world_settle();
}

/* How many lines have this in them. */
static size_t count_of(const char *part)
{
    size_t count = 0;
    for (size_t i = 0; i < lines->count; i++) {
        count += strstr(lines->list[i].text, part) != NULL;
    }
    return count;
}

/* In virtual time, and in the simulator's. */
static void check_rate(void)
{
    fail_many(LINES_RATE + 7);
    assert_int_equal(lines->count, LINES_RATE);
    world_advance(SKUA_SECOND / 2);
    fail_many(1);
    assert_int_equal(lines->count, LINES_RATE);
    for (size_t i = 0; i < LINES_RATE; i++) {
        assert_null(strstr(lines->list[i].text, "left out"));
    }
    world_advance(SKUA_SECOND);
    fail_many(2);
    const size_t told = count_of("left out"); /* with the next line, or before it, by the monitor */
    assert_int_equal(told, 1);
    assert_int_equal(count_of("left out before: 8") + count_of("lines left out: 8"), 1);
    assert_in_range(lines->count, LINES_RATE + 2, LINES_RATE + 3);
    const size_t before = lines->count;
    world_advance(2 * SKUA_SECOND);
    fail_many(LINES_RATE);
    assert_int_equal(lines->count, before + LINES_RATE);
}

TEST(lines_beyond_five_a_second_are_counted)
{
    world_open_virtual_with(noting_lines());
    check_rate();
}

TEST(lines_beyond_five_a_second_are_counted_in_the_simulator)
{
    skua_runtime_config config = noting_lines();
    config.sim = &(skua_sim_config){0};
    world_open_with(config);
    check_rate();
}

TEST(stop_tells_how_many_lines_were_left_out)
{
    skua_runtime_config config = noting_lines();
    config.sim = &(skua_sim_config){0};
    world_open_with(config);
    fail_many(LINES_RATE + 3);
    assert_int_equal(lines->count, LINES_RATE);
    world_close();
    assert_int_equal(lines->count, LINES_RATE + 1);
    assert_says(LINES_RATE, "lines left out: 3");
    assert_int_equal(lines->list[LINES_RATE].level, SKUA_LOG_WARNING);
}

/* ---- contexts ---- */

TEST(misuse_of_a_context_gives_a_line)
{
    world_open_with(noting_lines());
    struct actor *actor = actor_new(NO_ACTS);
    actor->in_init = ACTS(refused(sleeps(1, 0), SKUA_E_CONTEXT));
    actor->in_close = ACTS(refused(sleeps(1, 0), SKUA_E_CONTEXT));
    actor_submit(actor);
    world_close();
    assert_int_equal(lines->count, 2);
    assert_says(0, "init");
    assert_says(1, "close");
    for (size_t i = 0; i < 2; i++) {
        assert_true(skua_pid_equal(lines->list[i].pid, actor->pid));
        assert_says(i, "actor");
    }
}

/* ---- what the hook may do ---- */

static void send_line(void *arg, const skua_log *log)
{
    const struct actor *clerk = arg;
    (void)world_send(clerk->pid, skua_payload_u64(1, log->pid.bits));
}

TEST(log_may_call_the_runtime)
{
    struct actor *clerk = actor_new(NO_ACTS);
    world_open_with((skua_runtime_config){.on_log = send_line, .on_log_arg = clerk});
    actor_submit(clerk);
    struct actor *actor = failing_start(ACTS(fails(SKUA_E_CLOSED)), "sad");
    actor_await_seen(clerk, 1);
    assert_saw(clerk, message(1, actor->pid.bits));
}

/* ---- calls that wait for each other ---- */

static size_t lines_about_cycles(void)
{
    size_t count = 0;
    for (size_t i = 0; i < lines->count; i++) {
        count += strstr(lines->list[i].text, "calls wait for each other: ") != NULL;
    }
    return count;
}

/* Three servers, each of which calls the next one before it answers. */
TEST(cycle_of_calls_is_named_when_a_simulation_comes_to_rest)
{
    skua_sim_config sim = {0};
    skua_runtime_config config = noting_lines();
    config.sim = &sim;
    world_open_with(config);
    struct actor *servers[3];
    for (size_t i = 0; i < COUNT_OF(servers); i++) {
        servers[i] = server_start(NO_ACTS);
    }
    for (size_t i = 0; i < COUNT_OF(servers); i++) {
        actor_tell(servers[i], ACTS(asks(1, servers[(i + 1) % COUNT_OF(servers)], 0)));
    }
    world_settle();
    assert_int_equal(lines_about_cycles(), 1);
    for (size_t i = 0; i < COUNT_OF(servers); i++) {
        char digits[SKUA_PID_TEXT_SIZE];
        assert_says(0, skua_pid_format(servers[i]->pid, digits));
    }
}

/* The caller depends on whom the call was forwarded to; and on each of those that it has called. */
TEST(cycle_is_found_through_forwards_and_among_other_calls)
{
    skua_sim_config sim = {0};
    skua_runtime_config config = noting_lines();
    config.sim = &sim;
    world_open_with(config);
    struct actor *client = server_start(NO_ACTS);
    struct actor *last = server_start(NO_ACTS);
    struct actor *quiet = server_start(NO_ACTS);
    struct actor *first = server_start(ACTS(expects(request(1)), forwards(0, last, 1)));
    actor_tell(client, ACTS(asks(1, first, 1), asks(2, quiet, 2)));
    world_settle();
    actor_tell(last, ACTS(asks(1, client, 3)));
    world_settle();
    world_settle();
    assert_int_equal(lines_about_cycles(), 1); /* once, though it came to rest twice */
}

/* The last one of a chain could answer, if it were asked to. */
TEST(chain_of_calls_is_not_a_cycle)
{
    skua_sim_config sim = {0};
    skua_runtime_config config = noting_lines();
    config.sim = &sim;
    world_open_with(config);
    struct actor *last = server_start(NO_ACTS);
    struct actor *middle = server_start(NO_ACTS);
    struct actor *first = server_start(NO_ACTS);
    actor_tell(middle, ACTS(asks(1, last, 0)));
    actor_tell(first, ACTS(asks(1, middle, 0)));
    world_settle();
    assert_int_equal(lines_about_cycles(), 0);
}

/* ---- calls that tasks do not look at while they wait ---- */

static int calls_other(struct errand *errand, skua_context *ctx)
{
    CHECK(errand, skua_task_pause(ctx) == 0); /* until the other is there */
    return skua_task_call(ctx, errand->other, skua_payload_u64(0, 0), SKUA_FOREVER, NULL);
}

TEST(cycle_of_tasks_that_put_calls_aside_is_named)
{
    skua_sim_config sim = {0};
    skua_runtime_config config = noting_lines();
    config.sim = &sim;
    world_open_with(config);
    struct errand *errands[2];
    for (size_t i = 0; i < COUNT_OF(errands); i++) {
        errands[i] = errand_new(calls_other);
        errands[i]->type.calls = true;
        errand_submit(errands[i]);
    }
    errands[0]->other = errands[1]->pid;
    errands[1]->other = errands[0]->pid;
    world_settle();
    assert_int_equal(lines_about_cycles(), 1);
    for (size_t i = 0; i < COUNT_OF(errands); i++) {
        char digits[SKUA_PID_TEXT_SIZE];
        assert_says(0, skua_pid_format(errands[i]->pid, digits));
    }
}
