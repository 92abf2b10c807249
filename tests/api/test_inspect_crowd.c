/* SPDX-License-Identifier: MIT */
/* A look into a program with a million processes: the pages have every one of them, and the sorted
 * lists are those of the few that stand out. How long it takes is measured elsewhere
 * (tools/inspect_cost). */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "effort.h"
#include "inspect_client.h"
#include "runtime_support.h"
#include "scratch.h"

#define CROWD   EFFORT(1000000)
#define WORKERS 2
#define PAGE    256
#define CHOSEN  (PAGE + 50)

/* ---- the crowd ---- */

struct crowd {
    skua_pid *pids;
    uint32_t count;
};

struct scene {
    struct api api;
    struct inspect_client client;
    struct crowd crowd;
};

static struct scene scene;

/* One of the crowd: makes as many steps as a message says. */
static int member_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                       skua_step *out)
{
    uint64_t *left = self;
    (void)ctx;
    if (api_finish_if_cancelled(events, count, out)) {
        return 0;
    }
    for (size_t i = 0; i < count; i++) {
        *left += skua_payload_to_u64(&events[i].payload);
    }
    if (*left > 0 && --*left > 0) {
        skua_step_continue(out);
    }
    return 0;
}

static const skua_process_type member = {
    .name = "member", .state_size = sizeof(uint64_t), .step = member_step};

#define PORTION 1000

/* Starts them all, some in each step. */
static int found_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                      skua_step *out)
{
    struct crowd *crowd = api_world(self);
    (void)events;
    (void)count;
    for (uint32_t i = 0; i < PORTION && crowd->count < CROWD; i++) {
        const int error =
            skua_context_spawn(ctx, &member, NULL, NULL, 0, &crowd->pids[crowd->count]);
        if (error != 0) {
            return error;
        }
        crowd->count++;
    }
    if (crowd->count < CROWD) {
        skua_step_continue(out);
    } else {
        skua_step_done(out, skua_payload_empty(0));
    }
    return 0;
}

static const skua_process_type founder = {
    .name = "founder", .state_size = sizeof(void *), .init = api_init_world, .step = found_step};

static int earlier_first(const void *a, const void *b)
{
    const uint64_t left = ((const skua_pid *)a)->bits;
    const uint64_t right = ((const skua_pid *)b)->bits;
    return (left > right) - (left < right);
}

static bool all_rest(void *arg)
{
    (void)arg;
    return api_stats(&scene.api).steps >= CROWD + (CROWD + PORTION - 1) / PORTION;
}

/* All tests look at the same one. */
static int setup(void **state)
{
    api_stall_limit_ns = API_NEVER_STUCK;
    if (scratch_setup(state) != 0) {
        return -1;
    }
    scene.crowd.pids = malloc(CROWD * sizeof scene.crowd.pids[0]);
    assert_non_null(scene.crowd.pids);
    api_create(&scene.api, (skua_runtime_config){.worker_count = WORKERS, .inspect = true});
    api_start(&scene.api);
    const skua_exit exit = api_run_process(&scene.api, &founder, &scene.crowd);
    assert_int_equal(exit.error, 0);
    wait_until(all_rest, NULL, "the crowd to come to rest");
    qsort(scene.crowd.pids, CROWD, sizeof scene.crowd.pids[0], earlier_first);
    inspect_open(&scene.client, scene.api.runtime);
    return 0;
}

static int teardown(void **state)
{
    inspect_close(&scene.client);
    api_stop(&scene.api);
    free(scene.crowd.pids);
    return scratch_teardown(state);
}

/* ---- pages ---- */

/* Which of the crowd have been seen. */
static bool *make_marks(void)
{
    bool *marks = calloc(CROWD, sizeof *marks);
    assert_non_null(marks);
    return marks;
}

static void mark(bool *marks, skua_pid pid)
{
    const skua_pid *found = bsearch(&pid, scene.crowd.pids, CROWD, sizeof pid, earlier_first);
    assert_non_null(found);
    assert_false(marks[found - scene.crowd.pids]);
    marks[found - scene.crowd.pids] = true;
}

static void pages_of_the_socket_have_all_once(void **state)
{
    (void)state;
    bool *marks = make_marks();
    skua_pid after = {0};
    size_t total = 0;
    const struct inspect_line *more;
    do {
        char request[60];
        (void)snprintf(request, sizeof request, "processes pid %016" PRIx64 " %d", after.bits,
                       PAGE);
        inspect_ask(&scene.client, request);
        size_t count = 0;
        for (; strcmp(scene.client.lines[count].fields[0], "process") == 0; count++) {
            mark(marks, inspect_pid(&scene.client.lines[count], 1));
        }
        total += count;
        assert_int_equal(inspect_number(inspect_find(&scene.client, "seen", 0), 1), CROWD);
        more = inspect_find(&scene.client, "more", 0);
        after = more != NULL ? inspect_pid(more, 1) : after;
    } while (more != NULL);
    assert_int_equal(total, CROWD);
    free(marks);
}

static void pages_of_the_function_have_all_once(void **state)
{
    (void)state;
    static skua_process_info infos[10000];
    bool *marks = make_marks();
    skua_pid after = {0};
    size_t total = 0;
    int count;
    do {
        count = skua_process_list(scene.api.runtime, after, infos, COUNT_OF(infos));
        assert_in_range(count, 0, COUNT_OF(infos));
        for (int i = 0; i < count; i++) {
            mark(marks, infos[i].pid);
        }
        total += (size_t)count;
        after = count > 0 ? infos[count - 1].pid : after;
    } while ((size_t)count == COUNT_OF(infos));
    assert_int_equal(total, CROWD);
    free(marks);
}

/* ---- those that stand out ---- */

/* One that is far from the others. */
static skua_pid chosen(uint32_t i)
{
    return scene.crowd.pids[(uint64_t)i * 7919 * 13 % CROWD];
}

/* A number for each, in no order: 1 to CHOSEN, as that is no multiple of 7. */
static uint32_t number_of(uint32_t i)
{
    return 1 + i * 7 % CHOSEN;
}

static void send_number(skua_pid pid, uint64_t number)
{
    assert_int_equal(skua_message_send(scene.api.runtime, pid, skua_payload_u64(0, number)), 0);
}

/* The first lines have the largest numbers, each one less than that before it. */
static void assert_largest(const char *order, size_t field, uint32_t largest)
{
    char request[60];
    (void)snprintf(request, sizeof request, "processes %s 0 %d", order, PAGE);
    inspect_ask(&scene.client, request);
    assert_int_equal(inspect_count(&scene.client, "process"), PAGE);
    for (uint32_t i = 0; i < PAGE; i++) {
        assert_int_equal(inspect_number(&scene.client.lines[i], field), largest - i);
    }
}

/* A list is kept for a while, so this comes first, before any list was made, and asks for all. */
static void those_that_stand_out_are_found(void **state)
{
    (void)state;
    struct blocker blockers[WORKERS];
    for (uint32_t i = 0; i < CHOSEN; i++) {
        send_number(chosen(i), number_of(i));
    }
    for (uint32_t i = 0; i < CHOSEN; i++) { /* the first step of all was without a message */
        api_wait_steps(&scene.api, chosen(i), 1 + number_of(i));
        api_wait_state(&scene.api, chosen(i), SKUA_PROCESS_IDLE);
    }
    for (uint32_t i = 0; i < WORKERS; i++) {
        blocker_start(&blockers[i], &scene.api);
    }
    for (uint32_t i = 0; i < CHOSEN; i++) {
        for (uint32_t m = 0; m < number_of(i); m++) {
            send_number(chosen(i), 0);
        }
    }
    assert_largest("mailbox", 4, CHOSEN);
    assert_largest("steps", 5, CHOSEN + 1);
    for (uint32_t i = 0; i < WORKERS; i++) {
        blocker_release(&blockers[i]);
    }
    api_wait_live(&scene.api, CROWD);
}

int main(void)
{
    watchdog_start();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(those_that_stand_out_are_found),
        cmocka_unit_test(pages_of_the_socket_have_all_once),
        cmocka_unit_test(pages_of_the_function_have_all_once),
    };
    return cmocka_run_group_tests_name("inspect_crowd", tests, setup, teardown);
}
