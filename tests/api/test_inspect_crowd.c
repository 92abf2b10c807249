/* SPDX-License-Identifier: MIT */
/* A look into a program with a million processes: the pages have every one of them, and the sorted
 * lists are those of the few that stand out. How long it takes is measured elsewhere
 * (tools/inspect_cost). */
#include "actor.h"
#include "effort.h"
#include "inspected.h"
#include "standstill.h"

#define CROWD   EFFORT(1000000)
#define PAGE    256
#define CHOSEN  (PAGE + 50)
#define PORTION 1000

/* ---- the crowd ---- */

struct crowd {
    skua_pid *pids; /* sorted */
    uint32_t count;
    bool *marks; /* of those that were seen */
};

/* One of the crowd, smaller than an actor: makes as many steps as a message says. */
static int member_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    uint64_t *left = self;
    for (size_t i = 0; i < count; i++) {
        *left += skua_payload_to_u64(&events[i].payload);
    }
    if (*left > 0 && --*left > 0) {
        skua_continue(ctx);
    }
    return 0;
}

static const skua_process_type member = {
    .name = "member", .state_size = sizeof(uint64_t), .step = member_step};

/* Starts some of them. */
static int start_portion(struct turn *turn, const struct act *act)
{
    struct crowd *crowd = act->arg;
    int error = 0;
    for (uint32_t i = 0; i < PORTION && crowd->count < CROWD && error == 0; i++) {
        error = skua_spawn(turn->ctx, &member, skua_nothing(), &crowd->pids[crowd->count]);
        crowd->count++;
    }
    return error;
}

static int earlier_first(const void *a, const void *b)
{
    const uint64_t left = ((const skua_pid *)a)->bits;
    const uint64_t right = ((const skua_pid *)b)->bits;
    return (left > right) - (left < right);
}

static bool all_rest(void *arg)
{
    (void)arg;
    return world_stats().steps >= CROWD + 1 + CROWD / PORTION;
}

static struct crowd *crowd_open(void)
{
    struct crowd *crowd = test_alloc(sizeof *crowd);
    crowd->pids = test_alloc(CROWD * sizeof *crowd->pids);
    crowd->marks = test_alloc(CROWD * sizeof *crowd->marks);
    inspected_open((skua_runtime_config){.worker_count = 2});
    struct actor *founder = actor_new(
        ACTS(does(start_portion, crowd), continues(1), repeats(CROWD / PORTION - 1), finishes(0)));
    assert_result(actor_run(founder), 0);
    assert_int_equal(crowd->count, CROWD);
    wait_until(all_rest, NULL, "the crowd to come to rest");
    qsort(crowd->pids, CROWD, sizeof crowd->pids[0], earlier_first);
    return crowd;
}

static void mark(struct crowd *crowd, skua_pid pid)
{
    const skua_pid *place = bsearch(&pid, crowd->pids, CROWD, sizeof pid, earlier_first);
    assert_non_null(place);
    assert_false(crowd->marks[place - crowd->pids]);
    crowd->marks[place - crowd->pids] = true;
}

/* ---- pages ---- */

static void mark_page(void *arg, const struct inspect_client *page)
{
    for (size_t i = 0; strcmp(page->lines[i].fields[0], "process") == 0; i++) {
        mark(arg, inspect_pid(&page->lines[i], 1));
    }
    assert_int_equal(inspect_number(inspect_find(page, "seen", 0), 1), CROWD);
}

static void assert_pages_have_all_once(struct crowd *crowd)
{
    static skua_process_snapshot infos[10000];
    skua_pid after = {0};
    size_t total = 0;
    int count;
    do {
        count = skua_process_list(world_runtime(), after, infos, COUNT_OF(infos));
        assert_in_range(count, 0, COUNT_OF(infos));
        for (int i = 0; i < count; i++) {
            mark(crowd, infos[i].pid);
        }
        total += (size_t)count;
        after = count > 0 ? infos[count - 1].pid : after;
    } while ((size_t)count == COUNT_OF(infos));
    assert_int_equal(total, CROWD);
}

/* ---- those that stand out ---- */

/* One that is far from the others. */
static skua_pid chosen(const struct crowd *crowd, uint32_t i)
{
    return crowd->pids[(uint64_t)i * 7919 * 13 % CROWD];
}

/* A number for each, in no order: 1 to CHOSEN, as that is no multiple of 7. */
static uint32_t number_of(uint32_t i)
{
    return 1 + i * 7 % CHOSEN;
}

static void send_number(skua_pid pid, uint64_t number)
{
    assert_int_equal(world_send(pid, skua_payload_u64(0, number)), 0);
}

/* The first lines have the largest numbers, each one less than that before it. */
static void assert_largest(struct inspect_client *client, const char *order, size_t field,
                           uint32_t largest)
{
    client_ask(client, "processes %s 0 %d", order, PAGE);
    assert_int_equal(inspect_count(client, "process"), PAGE);
    for (uint32_t i = 0; i < PAGE; i++) {
        assert_int_equal(inspect_number(&client->lines[i], field), largest - i);
    }
}

static void assert_those_that_stand_out_are_found(const struct crowd *crowd,
                                                  struct inspect_client *client)
{
    for (uint32_t i = 0; i < CHOSEN; i++) {
        send_number(chosen(crowd, i), number_of(i));
    }
    for (uint32_t i = 0; i < CHOSEN; i++) { /* the first step of all was without a message */
        api_wait_steps(world->api, chosen(crowd, i), 1 + number_of(i));
        api_wait_state(world->api, chosen(crowd, i), SKUA_PROCESS_IDLE);
    }
    standstill_begin();
    for (uint32_t i = 0; i < CHOSEN; i++) {
        for (uint32_t m = 0; m < number_of(i); m++) {
            send_number(chosen(crowd, i), 0);
        }
    }
    assert_largest(client, "mailbox", 4, CHOSEN);
    assert_largest(client, "steps", 5, CHOSEN + 1);
    standstill_end();
    world_await_live(CROWD);
}

/* One crowd for all, as it takes its time. A sorted list is kept for a while, so these come first,
 * before any was made. */
TEST(crowd_is_told_in_full_and_sorted)
{
    struct crowd *crowd = crowd_open();
    struct inspect_client *client = client_open();
    assert_those_that_stand_out_are_found(crowd, client);
    assert_int_equal(client_walk(client, "256", mark_page, crowd), CROWD);
    memset(crowd->marks, 0, CROWD * sizeof *crowd->marks);
    assert_pages_have_all_once(crowd);
}
