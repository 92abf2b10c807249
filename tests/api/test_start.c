/* SPDX-License-Identifier: MIT */
/* The events that nobody sends: START, which is the first of all, and CONTINUE, which is the last
 * of the step after skua_continue. */
#include "actor.h"
#include "sim_trace.h"
#include "standstill.h"

#define SEEDS     60
#define PAGES_MAX 1024

/* One step of a process. */
struct page {
    size_t count;   /* its events */
    size_t sent;    /* those that somebody sent */
    bool starts;    /* START is the first */
    bool resumes;   /* CONTINUE is the last */
    bool continues; /* the step asked for the next one */
};

/* What a process noted of its steps; it continues in the first `continues` of them. */
struct diary {
    uint64_t continues;
    struct page pages[PAGES_MAX];
    size_t count;
};

static int write_page(struct turn *turn, const struct act *act)
{
    struct diary *diary = act->arg;
    struct page *page = &diary->pages[diary->count % PAGES_MAX];
    *page = (struct page){
        .count = turn->count,
        .starts = turn_starts(turn),
        .resumes = turn->events[turn->count - 1].type == SKUA_EVENT_CONTINUE,
        .continues = diary->count < diary->continues,
    };
    for (size_t i = 0; i < turn->count; i++) {
        const uint32_t type = turn->events[i].type;
        page->sent += type != SKUA_EVENT_START && type != SKUA_EVENT_CONTINUE;
    }
    diary->count++;
    if (page->continues) {
        (void)skua_continue(turn->ctx);
    }
    return ACT_WAITS;
}

/* START is in the first step alone, CONTINUE in each that was asked for, nothing made up stands
 * elsewhere, and no step has too many events or none. */
static void assert_diary(const struct diary *diary, size_t sent)
{
    assert_in_range(diary->count, 1, PAGES_MAX);
    for (size_t i = 0; i < diary->count; i++) {
        const struct page *page = &diary->pages[i];
        assert_in_range(page->count, 1, SKUA_EVENTS_PER_STEP);
        assert_int_equal(page->starts, i == 0);
        assert_int_equal(page->resumes, i > 0 && diary->pages[i - 1].continues);
        assert_int_equal(page->count, page->sent + page->starts + page->resumes);
        sent -= page->sent;
    }
    assert_int_equal(sent, 0);
}

static void send_messages(const struct actor *to, size_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        assert_int_equal(world_send(to->pid, skua_payload_u64(1, i)), 0);
    }
}

static void assert_in_order(const struct actor *actor, size_t messages)
{
    for (uint64_t i = 0; i < messages; i++) {
        const struct seen expected = message(1, i);
        assert_true(seen_matches(&actor->seen[i], &expected));
    }
}

TEST(start_comes_alone_if_nothing_was_sent)
{
    struct diary diary = {0};
    world_open();
    struct actor *actor = actor_start(ACTS(does(write_page, &diary)));
    actor_await_state(actor, SKUA_PROCESS_IDLE);
    assert_int_equal(world_info(actor->pid).steps, 1);
    send_messages(actor, 1);
    actor_await_seen(actor, 1);
    world_close();
    assert_int_equal(diary.pages[0].count, 1);
    assert_diary(&diary, 2); /* and the stop's cancel */
}

static const size_t waiting[] = {1,
                                 2,
                                 SKUA_EVENTS_PER_STEP - 2,
                                 SKUA_EVENTS_PER_STEP - 1,
                                 SKUA_EVENTS_PER_STEP,
                                 SKUA_EVENTS_PER_STEP + 1,
                                 3 * SKUA_EVENTS_PER_STEP};

TEST(start_comes_before_the_messages_that_wait)
{
    test_of_steps("a task receives one event at a time");
    FOR_ROWS (count, waiting) {
        struct diary diary = {0};
        world_open();
        standstill_begin();
        struct actor *actor = actor_start(ACTS(does(write_page, &diary)));
        send_messages(actor, *count);
        standstill_end();
        actor_await_seen(actor, *count);
        world_close();
        assert_true(diary.pages[0].sent > 0);
        assert_diary(&diary, *count + 1);
        assert_in_order(actor, *count);
    }
}

/* A cancel that waits does not come before it either. */
TEST(start_comes_before_a_cancel_event)
{
    struct diary diary = {0};
    world_open();
    standstill_begin();
    struct actor *actor = actor_start(ACTS(does(write_page, &diary)));
    assert_int_equal(world_cancel(actor->pid, SKUA_E_USER), 0);
    standstill_end();
    actor_await_end(actor);
    assert_saw(actor, cancel(SKUA_E_USER));
    assert_diary(&diary, 1);
}

TEST(continue_comes_after_the_messages_that_wait)
{
    test_of_steps("a task receives one event at a time");
    FOR_ROWS (count, waiting) {
        struct diary diary = {.continues = 7};
        world_open();
        standstill_begin();
        struct actor *actor = actor_start(ACTS(does(write_page, &diary)));
        send_messages(actor, *count);
        standstill_end();
        actor_await_seen(actor, *count);
        api_wait_steps(world->api, actor->pid, 8);
        world_close();
        assert_true(diary.count >= 8);
        assert_diary(&diary, *count + 1);
        assert_in_order(actor, *count);
    }
}

/* What comes meanwhile does not keep CONTINUE away, nor CONTINUE what comes. */
TEST(continue_comes_while_messages_keep_arriving)
{
    test_of_steps("a task receives one event at a time");
    struct diary diary = {.continues = PAGES_MAX / 2};
    world_open();
    struct actor *actor = actor_start(ACTS(does(write_page, &diary)));
    send_messages(actor, 200);
    actor_await_seen(actor, 200);
    api_wait_steps(world->api, actor->pid, PAGES_MAX / 2);
    world_close();
    assert_diary(&diary, 201);
    assert_in_order(actor, 200);
}

static int continue_twice(struct turn *turn, const struct act *act)
{
    (void)act;
    const int error = skua_continue(turn->ctx);
    return error != 0 ? error : skua_continue(turn->ctx);
}

TEST(continue_asked_for_twice_comes_once)
{
    struct diary diary = {0};
    world_open();
    struct actor *actor = actor_start(ACTS(does(continue_twice, NULL), does(write_page, &diary)));
    api_wait_steps(world->api, actor->pid, 2);
    actor_await_state(actor, SKUA_PROCESS_IDLE);
    assert_int_equal(world_info(actor->pid).steps, 2);
    world_close();
    assert_int_equal(diary.pages[1].count, 1);
    assert_true(diary.pages[1].resumes);
}

/* ---- in the simulator, where batches are small ---- */

TEST(start_and_continue_have_their_places_in_every_run)
{
    test_of_steps("a task receives one event at a time");
    FOR_ROUNDS (seed, SEEDS) {
        const size_t count = (size_t)(seed % 40);
        struct diary diary = {.continues = seed % 7};
        world_open_sim(seed, SIM_NO_FAULTS);
        struct actor *actor = actor_start(ACTS(does(write_page, &diary)));
        send_messages(actor, count);
        world_settle();
        assert_diary(&diary, count);
        assert_int_equal(sim_count(SKUA_SIM_EVENT, SKUA_EVENT_START), 1);
        assert_int_equal(sim_count(SKUA_SIM_EVENT, SKUA_EVENT_CONTINUE), seed % 7);
        world_close();
        assert_diary(&diary, count + 1);
        assert_in_order(actor, count);
    }
}

TEST(spurious_wake_gives_no_step)
{
    struct diary diary = {.continues = 20};
    world_open_sim(5, (skua_sim_faults){.spurious_wake = SIM_ALWAYS});
    (void)actor_start(ACTS(does(write_page, &diary)));
    (void)actor_start(ACTS(continues(30)));
    world_settle();
    assert_true(sim_fault_count(SKUA_SIM_SPURIOUS_WAKE) > 0);
    assert_diary(&diary, 0);
    world_close();
    assert_diary(&diary, 1);
}
