/* SPDX-License-Identifier: MIT */
/* What a process can do through its context: look around, draw random numbers, have memory, start
 * processes; and that the PIDs of processes are their own for ever. */
#include "exits.h"

#define ERROR_INIT (SKUA_E_USER - 1)

/* ---- looking around ---- */

struct view {
    skua_pid self;
    skua_runtime *runtime;
    uint64_t now;
};

static int look_around(struct turn *turn, const struct act *act)
{
    struct view *view = act->arg;
    view->self = skua_self(turn->ctx);
    view->runtime = skua_runtime_of(turn->ctx);
    view->now = skua_now(turn->ctx);
    return 0;
}

/* That the submit has written this PID before the process runs. */
static int compare_pid(struct turn *turn, const struct act *act)
{
    const skua_pid *submitted = act->arg;
    return skua_pid_equal(*submitted, turn->actor->pid) ? 0 : SKUA_E_USER;
}

TEST(context_shows_itself_its_runtime_and_time)
{
    struct view views[4] = {0};
    skua_pid submitted = {0};
    world_open();
    struct actor *actor =
        actor_new(ACTS(does(look_around, &views[1]), does(look_around, &views[2]),
                       does(compare_pid, &submitted), continues(1), does(look_around, &views[3])));
    /* Nobody can send to it before its init has ended. */
    actor->in_init =
        ACTS(does(look_around, &views[0]), refused(sends(actor, 0, 0), SKUA_E_NO_PROCESS));
    skua_payload input = api_world_payload(actor);
    assert_int_equal(skua_process_submit(world_runtime(), &actor->type, input, &submitted), 0);
    tally_wait(&actor->performed, 1);
    for (size_t i = 0; i < COUNT_OF(views); i++) {
        assert_true(skua_pid_equal(views[i].self, submitted));
        assert_ptr_equal(views[i].runtime, world_runtime());
    }
    assert_true(views[0].now > 0 && views[0].now <= views[1].now);
    assert_int_equal(views[1].now, views[2].now);
    assert_true(views[2].now <= views[3].now);
}

/* ---- random numbers ---- */

enum { DRAW_STEPS = 3, DRAW_CALLS = 4, DRAWS = DRAW_STEPS * DRAW_CALLS };

struct draws {
    uint64_t values[DRAWS];
    size_t count;
};

static int draw(struct turn *turn, const struct act *act)
{
    struct draws *draws = act->arg;
    for (unsigned i = 0; i < DRAW_CALLS; i++) {
        draws->values[draws->count++] = skua_random(turn->ctx);
    }
    return 0;
}

/* By two processes of one runtime. */
static void draw_twice(uint64_t seed, struct draws *draws)
{
    world_open_with((skua_runtime_config){.worker_count = 1, .seed = seed});
    for (size_t i = 0; i < 2; i++) {
        assert_result(actor_run(actor_new(ACTS(does(draw, &draws[i]), continues(1),
                                               repeats(DRAW_STEPS - 1), finishes(0)))),
                      0);
    }
    world_close();
}

static int compare_numbers(const void *a, const void *b)
{
    const uint64_t left = *(const uint64_t *)a;
    const uint64_t right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

/* Sorts them. */
static void assert_all_different(uint64_t *values, size_t count)
{
    qsort(values, count, sizeof *values, compare_numbers);
    for (size_t i = 1; i < count; i++) {
        assert_true(values[i - 1] != values[i]);
    }
}

TEST(context_random_depends_on_seed_process_step_and_call)
{
    struct draws draws[6] = {0};
    uint64_t all[4 * DRAWS];
    draw_twice(5, &draws[0]);
    draw_twice(6, &draws[2]);
    draw_twice(5, &draws[4]);
    assert_memory_equal(&draws[0], &draws[4], 2 * sizeof draws[0]);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(draws[i].count, DRAWS);
        memcpy(&all[i * DRAWS], draws[i].values, sizeof draws[i].values);
    }
    assert_all_different(all, COUNT_OF(all));
}

/* ---- memory ---- */

static int use_memory(struct turn *turn, const struct act *act)
{
    static const size_t sizes[] = {1, 100000};
    (void)act;
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        unsigned char *memory = skua_alloc(turn->ctx, sizes[i]);
        if (memory == NULL || (uintptr_t)memory % _Alignof(max_align_t) != 0) {
            return SKUA_E_NO_MEMORY;
        }
        memset(memory, 1, sizes[i]);
        skua_free(turn->ctx, memory, sizes[i]);
    }
    skua_free(turn->ctx, NULL, 0);
    return 0;
}

TEST(context_memory_comes_from_the_runtime)
{
    world_open();
    const uint64_t before = counting_allocator_attempts(&world->api->memory);
    assert_result(actor_run(actor_new(ACTS(does(use_memory, NULL), finishes(0)))), 0);
    assert_true(counting_allocator_attempts(&world->api->memory) >= before + 2);
}

/* ---- processes that start processes ---- */

static struct actor *child_new(void)
{
    return actor_new(ACTS(finishes(0)));
}

static void assert_child_ran(struct actor *child)
{
    actor_await_end(child);
    assert_int_equal(child->inits, 1);
    assert_int_equal(child->steps, 1);
}

static int check_no_step_yet(struct turn *turn, const struct act *act)
{
    const struct actor *child = act->arg;
    (void)turn;
    return child->steps == 0 ? 0 : SKUA_E_USER;
}

TEST(spawn_in_a_step_starts_a_child_after_it)
{
    world_open_with((skua_runtime_config){.worker_count = 1});
    struct actor *child = child_new();
    assert_result(
        actor_run(actor_new(ACTS(spawns(child), does(check_no_step_yet, child), finishes(0)))), 0);
    assert_child_ran(child);
}

/* Started from outside or by a spawn, and whether or not its own init then fails. */
TEST(spawn_in_init_starts_a_child_of_its_own)
{
    static const struct {
        bool is_spawned;
        int init_error;
    } rows[] = {{false, 0}, {false, ERROR_INIT}, {true, 0}, {true, ERROR_INIT}};
    FOR_ROWS (row, rows) {
        world_open();
        struct actor *child = child_new();
        struct actor *parent = actor_new(ACTS(finishes(0)));
        parent->in_init = ACTS(spawns(child));
        parent->init_returns = row->init_error;
        if (row->is_spawned) {
            const struct act spawning = refused(spawns(parent), row->init_error);
            assert_result(actor_run(actor_new(ACTS(spawning, finishes(0)))), 0);
        } else {
            assert_int_equal(actor_try_submit(parent), row->init_error);
        }
        assert_child_ran(child);
    }
}

#define CHILDREN 100000

/* An actor for each would be too large. */
struct member {
    skua_pid pid; /* as its spawn has told it, before its first step */
    unsigned steps;
    bool has_other_pid;
};

static int member_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    struct member *member = api_world(self);
    (void)events;
    (void)count;
    member->steps++;
    member->has_other_pid = !skua_pid_equal(member->pid, skua_self(ctx));
    skua_done(ctx, skua_payload_empty(0));
    return 0;
}

static const skua_process_type member_type = {
    .name = "member", .state_size = sizeof(void *), .init = api_init_world, .step = member_step};

static int spawn_all(struct turn *turn, const struct act *act)
{
    struct member *members = act->arg;
    int error = 0;
    for (size_t i = 0; i < CHILDREN && error == 0; i++) {
        skua_payload input = api_world_payload(&members[i]);
        error = skua_spawn(turn->ctx, &member_type, input, &members[i].pid);
    }
    return error;
}

TEST(spawn_of_100000_children_in_one_step_runs_all)
{
    struct member *members = test_alloc(CHILDREN * sizeof *members);
    uint64_t *pids = test_alloc(CHILDREN * sizeof *pids);
    world_open();
    assert_result(actor_run(actor_new(ACTS(does(spawn_all, members), finishes(0)))), 0);
    world_await_live(0);
    assert_int_equal(world_stats().spawned, CHILDREN + 1);
    world_close();
    for (size_t i = 0; i < CHILDREN; i++) {
        assert_int_equal(members[i].steps, 1);
        assert_false(members[i].has_other_pid);
        pids[i] = members[i].pid.bits;
    }
    assert_all_different(pids, CHILDREN);
}

/* ---- PIDs ---- */

#define REUSES 20000

TEST(pid_is_never_given_twice)
{
    uint64_t *pids = test_alloc(REUSES * sizeof *pids);
    world_open_with((skua_runtime_config){.worker_count = 2, .process_limit = 4});
    struct actor *actor = actor_new(ACTS(finishes(0)));
    for (size_t i = 0; i < REUSES; i++) {
        assert_result(actor_run(actor), 0);
        world_await_live(0); /* so its place is free again */
        pids[i] = actor->pid.bits;
        assert_int_not_equal(pids[i], 0);
    }
    assert_all_different(pids, REUSES);
}

TEST(pid_of_a_finished_process_receives_nothing)
{
    struct tracked item = {0};
    world_open();
    struct actor *actor = actor_new(ACTS(finishes(0)));
    const skua_exit exit = actor_run(actor);
    assert_true(skua_pid_equal(exit.pid, actor->pid));
    assert_int_equal(world_send(exit.pid, tracked_payload(0, &item)), SKUA_E_NO_PROCESS);
    assert_drops(&item, 1, 1);
    world_close();
    assert_int_equal(actor->steps, 1);
    assert_saw_nothing(actor);
}
