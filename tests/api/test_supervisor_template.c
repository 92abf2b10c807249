/* SPDX-License-Identifier: MIT */
/* Supervisors: children that others start, by a template. */
#include <skua/name.h>
#include <skua/upgrade.h>

#include "actor.h"
#include "timers.h"
#include "wards.h"

#define MANY 10000

static const skua_child ward_template = {.name = "wards", .type = &ward_type};

static skua_supervisor team(void)
{
    return (skua_supervisor){.name = "team", .templates = &ward_template, .template_count = 1};
}

static skua_supervisor team_with(const skua_child *template)
{
    return (skua_supervisor){.name = "team", .templates = template, .template_count = 1};
}

/* Starts a ward under a supervisor, from the thread of the test. */
static int submit_typed(skua_pid supervisor, const skua_process_type *type, char letter,
                        const char *name, skua_pid *pid)
{
    skua_payload input = ward_input(letter);
    return skua_process_submit_with(world_runtime(),
                                    &(skua_spawn_options){.type = type,
                                                          .input = &input,
                                                          .input_count = 1,
                                                          .name = name,
                                                          .supervisor = supervisor},
                                    pid);
}

static int submit_named(skua_pid supervisor, char letter, const char *name, skua_pid *pid)
{
    return submit_typed(supervisor, &ward_type, letter, name, pid);
}

static void submit(skua_pid supervisor, char letter)
{
    assert_int_equal(submit_named(supervisor, letter, NULL, NULL), 0);
}

static skua_pid open_team(skua_supervisor specification)
{
    world_open_virtual();
    wards_open();
    return supervise(specification);
}

/* ---- their lives ---- */

TEST(children_of_a_template_live_under_the_supervisor)
{
    const skua_pid team_pid = open_team(team());
    submit(team_pid, 'a');
    submit(team_pid, 'b');
    world_settle();
    assert_int_equal(world_info(ward_of('a')->pid).supervisor.bits, team_pid.bits);
    assert_int_equal(report_size(team_pid), 2);
    assert_true(report_on(team_pid, "wards").is_dynamic);
    ward_fail('a', SKUA_E_USER);
    assert_diary_in_any_order("+a+b-a+a");
    assert_int_equal(world_info(ward_of('a')->pid).supervisor.bits, team_pid.bits);
    assert_int_equal(world_cancel(team_pid, 0), 0);
    world_await_live(0);
    assert_diary_in_any_order("-a-b");
}

TEST(template_is_for_all_versions_of_its_type)
{
    static skua_process_type newer;
    const skua_pid team_pid = open_team(team());
    newer = ward_type;
    newer.version = 1;
    assert_int_equal(skua_runtime_upgrade(world_runtime(), &ward_type, &newer), 0);
    assert_int_equal(submit_typed(team_pid, &ward_type, 'a', NULL, NULL), 0);
    assert_int_equal(submit_typed(team_pid, &newer, 'b', NULL, NULL), 0);
    assert_int_equal(submit_typed(team_pid, &other_ward_type, 'c', NULL, NULL), SKUA_E_NO_TEMPLATE);
    world_settle();
    ward_fail('b', SKUA_E_USER);
    assert_diary_in_any_order("+a+b-b+b");
    assert_int_equal(world_info(ward_of('a')->pid).type_version, 1);
    assert_int_equal(world_info(ward_of('b')->pid).type_version, 1);
}

TEST(children_of_a_template_keep_name_and_input)
{
    skua_pid pid;
    const skua_pid team_pid = open_team(team());
    assert_int_equal(submit_named(team_pid, 'a', "anna", &pid), 0);
    world_settle();
    ward_fail('a', SKUA_E_USER);
    assert_diary("+a-a+a");
    skua_pid holder;
    assert_int_equal(skua_name_find(world_runtime(), "anna", &holder), 0);
    assert_int_equal(holder.bits, ward_of('a')->pid.bits);
    assert_int_not_equal(holder.bits, pid.bits);
    assert_int_equal(report_on(team_pid, "anna").restarts, 1);
    assert_int_equal(submit_named(team_pid, 'b', "anna", &pid), SKUA_E_NAME_TAKEN);
    assert_int_equal(pid.bits, holder.bits);
    assert_int_equal(report_size(team_pid), 1);
}

TEST(children_of_a_template_end_with_a_supervisor_that_is_terminated)
{
    const skua_pid team_pid = open_team(team());
    submit(team_pid, 'a');
    submit(team_pid, 'b');
    world_settle();
    assert_int_equal(world_terminate(team_pid), 0);
    world_await_live(0);
    assert_diary_in_any_order("+a+b-a-b");
}

TEST(children_of_a_template_leave_when_they_are_done)
{
    static const skua_child template = {
        .name = "wards", .type = &ward_type, .restart = SKUA_RESTART_ON_ERROR};
    const skua_pid team_pid = open_team(team_with(&template));
    for (size_t i = 0; i < 20; i++) {
        submit(team_pid, 'a');
        world_settle();
        ward_finish('a');
    }
    assert_int_equal(report_size(team_pid), 0);
}

TEST(children_of_a_template_are_on_their_own)
{
    const skua_pid team_pid = open_team((skua_supervisor){
        .name = "team",
        .strategy = SKUA_STRATEGY_ALL,
        WARDS(ward('a'), ward('b')),
        .templates = &(const skua_child){.name = "more", .type = &other_ward_type},
        .template_count = 1});
    skua_payload input = ward_input('z');
    assert_int_equal(skua_process_submit_with(world_runtime(),
                                              &(skua_spawn_options){.type = &other_ward_type,
                                                                    .input = &input,
                                                                    .input_count = 1,
                                                                    .supervisor = team_pid},
                                              NULL),
                     0);
    world_settle();
    ward_fail('b', SKUA_E_USER);
    assert_diary("+a+b+z-b-a+a+b");
    ward_fail('z', SKUA_E_USER);
    assert_diary("-z+z");
    assert_int_equal(world_cancel(team_pid, 0), 0);
    world_await_live(0);
    assert_diary("-z-b-a");
}

TEST(ten_thousand_children_stop_at_once)
{
    static const skua_child template = {.name = "wards", .type = &probe_type};
    static struct probe probes[MANY];
    memset(probes, 0, sizeof probes);
    world_open();
    wards_open();
    skua_pid team_pid;
    const skua_supervisor *specification = specification_copy(team_with(&template));
    assert_int_equal(skua_process_start_supervisor(world_runtime(), specification, &team_pid), 0);
    for (size_t i = 0; i < MANY; i++) {
        skua_payload input = skua_payload_pointer(0, &probes[i], NULL);
        assert_int_equal(skua_process_submit_with(world_runtime(),
                                                  &(skua_spawn_options){.type = &probe_type,
                                                                        .input = &input,
                                                                        .input_count = 1,
                                                                        .supervisor = team_pid},
                                                  NULL),
                         0);
    }
    assert_int_equal(world_cancel(team_pid, 0), 0);
    world_await_live(0);
    for (size_t i = 0; i < MANY; i++) {
        assert_int_equal(probes[i].closes, 1);
    }
}

/* ---- refusals ---- */

TEST(children_need_a_template)
{
    const skua_pid team_pid =
        open_team(team_with(&(const skua_child){.name = "others", .type = &other_ward_type}));
    struct actor *actor = actor_start(NO_ACTS);
    struct actor *gone = actor_new(ACTS(finishes(0)));
    skua_pid pid = {1};
    assert_result(actor_run(gone), 0);
    assert_int_equal(submit_named(team_pid, 'a', NULL, &pid), SKUA_E_NO_TEMPLATE);
    assert_int_equal(submit_named(actor->pid, 'a', NULL, &pid), SKUA_E_NO_TEMPLATE);
    assert_int_equal(submit_named(gone->pid, 'a', NULL, &pid), SKUA_E_NO_PROCESS);
    assert_int_equal(submit_named((skua_pid){UINT64_MAX}, 'a', NULL, &pid), SKUA_E_FOREIGN_PID);
    assert_diary("");
}

/* ---- a supervisor that is ending ---- */

#define TIMERS 2000 /* it takes a few turns to give them up */

static struct {
    skua_pid busy;
    unsigned late; /* starts that were refused because it stops */
} ends;

static int step_busy(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    static const skua_child template = {.name = "wards", .type = &ward_type};
    static const skua_supervisor busy = {
        .name = "busy", .templates = &template, .template_count = 1};
    (void)self;
    (void)count;
    if (events[0].type != SKUA_EVENT_START) {
        return 0;
    }
    for (uint64_t i = 1; i <= TIMERS; i++) {
        assert_int_equal(skua_yield_sleep(ctx, i, 60 * SKUA_SECOND), 0);
    }
    return skua_supervise(ctx, &busy);
}

/* Starts children until the supervisor is gone. */
static int step_rival(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    skua_payload input = ward_input('a');
    (void)self;
    (void)events;
    (void)count;
    const int error = skua_spawn_with(
        ctx,
        &(skua_spawn_options){
            .type = &ward_type, .input = &input, .input_count = 1, .supervisor = ends.busy},
        NULL);
    assert_true(error == 0 || error == SKUA_E_LATE || error == SKUA_E_NO_PROCESS);
    ends.late += error == SKUA_E_LATE;
    return error == SKUA_E_NO_PROCESS ? skua_done(ctx, skua_nothing()) : skua_continue(ctx);
}

TEST(a_supervisor_that_ends_is_one_until_it_is_gone)
{
    static const skua_process_type busy_type = {.name = "busy", .step = step_busy};
    static const skua_process_type rival_type = {.name = "rival", .step = step_rival};
    unsigned late = 0;
    FOR_ROUNDS (seed, 20) {
        world_open_sim(seed, SIM_NO_FAULTS);
        wards_open();
        memset(&ends, 0, sizeof ends);
        assert_int_equal(
            skua_process_submit(world_runtime(), &busy_type, skua_nothing(), &ends.busy), 0);
        (void)skua_sim_run(world_runtime(), skua_sim_now(world_runtime()) + SKUA_SECOND);
        assert_int_equal(world_terminate(ends.busy), 0);
        assert_int_equal(skua_process_submit(world_runtime(), &rival_type, skua_nothing(), NULL),
                         0);
        world_settle();
        assert_int_equal(ward_of('a')->lives, 0);
        late += ends.late;
    }
    assert_true(late > 0);
}

TEST(a_supervisor_that_stops_takes_no_more_children)
{
    const skua_pid team_pid = open_team(team());
    ward_of('a')->habits.stops_after_ns = SKUA_SECOND;
    submit(team_pid, 'a');
    world_settle();
    assert_int_equal(world_cancel(team_pid, 0), 0);
    world_settle();
    assert_int_equal(submit_named(team_pid, 'b', NULL, NULL), SKUA_E_LATE);
    assert_diary("+a");
    world_advance(2 * SKUA_SECOND);
    world_await_live(0);
}

TEST(input_of_what_is_started_again_can_be_repeated)
{
    const skua_pid team_pid = open_team(team());
    struct tracked item = {0};
    skua_payload input[] = {ward_input('a'), tracked_payload(0, &item)};
    const skua_spawn_options options = {
        .type = &ward_type, .input = input, .input_count = 2, .supervisor = team_pid};
    assert_int_equal(skua_process_submit_with(world_runtime(), &options, NULL), SKUA_E_NOT_SHARED);
    assert_drops(&item, 1, 1);
    assert_diary("");
}

TEST(input_of_what_is_never_started_again_may_have_one_owner)
{
    static const skua_child template = {
        .name = "wards", .type = &ward_type, .restart = SKUA_RESTART_NEVER};
    const skua_pid team_pid = open_team(team_with(&template));
    struct tracked item = {0};
    skua_payload input[] = {ward_input('a'), tracked_payload(0, &item)};
    const skua_spawn_options options = {
        .type = &ward_type, .input = input, .input_count = 2, .supervisor = team_pid};
    assert_int_equal(skua_process_submit_with(world_runtime(), &options, NULL), 0);
    world_settle();
    assert_drops(&item, 1, 1);
    ward_fail('a', SKUA_E_USER);
    assert_diary("+a-a");
    assert_int_equal(report_size(team_pid), 0);
}

TEST(a_child_whose_init_fails_is_none)
{
    const skua_pid team_pid = open_team(team());
    ward_of('a')->habits = (struct ward_habits){.init_error = SKUA_E_USER, .init_failures = 1};
    assert_int_equal(submit_named(team_pid, 'a', "anna", NULL), SKUA_E_USER);
    world_settle();
    assert_diary("!a");
    assert_int_equal(report_size(team_pid), 0);
    submit(team_pid, 'a');
    world_settle();
    assert_diary("+a");
}

/* ---- from inside ---- */

static skua_pid inside_team;

static int spawn_ward(skua_context *ctx, char letter)
{
    skua_payload input = ward_input(letter);
    return skua_spawn_with(
        ctx,
        &(skua_spawn_options){
            .type = &ward_type, .input = &input, .input_count = 1, .supervisor = inside_team},
        NULL);
}

static int spawn_in_init(void *self, skua_context *ctx, skua_payload *input, size_t count)
{
    (void)self;
    (void)input;
    (void)count;
    return spawn_ward(ctx, 'a');
}

static int spawn_in_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    (void)events;
    (void)count;
    const int error = spawn_ward(ctx, 'b');
    return error != 0 ? error : skua_done(ctx, skua_nothing());
}

TEST(children_can_be_started_by_init_and_step_of_others)
{
    static const skua_process_type type = {
        .name = "starter", .init = spawn_in_init, .step = spawn_in_step};
    inside_team = open_team(team());
    skua_exit exit;
    assert_int_equal(skua_process_run(world_runtime(), &type, skua_nothing(), &exit), 0);
    assert_int_equal(exit.error, 0);
    world_settle();
    assert_diary_in_any_order("+a+b");
    assert_int_equal(report_size(inside_team), 2);
}

/* In init nobody can reach the process yet, so it cannot have children. */
static int spawn_own_in_init(void *self, skua_context *ctx, skua_payload *input, size_t count)
{
    (void)self;
    (void)input;
    (void)count;
    inside_team = skua_self(ctx);
    return spawn_ward(ctx, 'a');
}

TEST(a_process_has_no_children_in_its_init)
{
    static const skua_process_type type = {
        .name = "eager", .init = spawn_own_in_init, .step = spawn_in_step};
    world_open_virtual();
    wards_open();
    assert_int_equal(skua_process_submit(world_runtime(), &type, skua_nothing(), NULL),
                     SKUA_E_CONTEXT);
    assert_diary("");
}

/* ---- a supervisor of one's own ---- */

static const skua_supervisor own_offer = {
    .name = "own", .templates = &ward_template, .template_count = 1};

static int supervise_by_hand(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    for (size_t i = 0; i < count; i++) {
        const skua_event *event = &events[i];
        if (event->type == SKUA_EVENT_START) {
            assert_int_equal(skua_supervise(ctx, &own_offer), 0);
        } else if (event->type == SKUA_EVENT_CHILD && event->tag == SKUA_CHILD_STARTED) {
            const skua_child_start *start = skua_payload_data(&event->payload);
            assert_ptr_equal(start->type, &ward_type);
            assert_string_equal(start->method, "main");
            assert_string_equal(start->name, "anna");
            assert_null(start->label);
            assert_int_equal(start->input_count, 1);
            assert_int_equal(skua_payload_to_u64(start->input), 'a');
            diary_write('c', 'a');
        } else if (event->type == SKUA_EVENT_CHILD) {
            diary_write('r', 'a');
        } else if (event->type == SKUA_EVENT_EXIT) {
            diary_write('e', event->error == SKUA_E_USER ? 'u' : '?');
        }
    }
    return 0;
}

TEST(a_supervisor_of_ones_own_is_told_what_its_children_are)
{
    static const skua_process_type type = {.name = "own", .step = supervise_by_hand};
    skua_pid own;
    world_open_virtual();
    wards_open();
    assert_int_equal(skua_process_submit(world_runtime(), &type, skua_nothing(), &own), 0);
    world_settle();
    assert_int_equal(submit_named(own, 'a', "anna", NULL), 0);
    world_settle();
    assert_diary("+acara");
    ward_fail('a', SKUA_E_USER);
    assert_diary("-aeu");
}

/* ---- simulated ---- */

static int ask_for_report(struct turn *turn, const struct act *act)
{
    const skua_pid *supervisor = act->arg;
    assert_int_equal(skua_yield_supervisor_report(turn->ctx, 1, *supervisor, SKUA_FOREVER), 0);
    return 0;
}

/* What a supervisor hears of a child is made of addresses, and a report has some. */
TEST(hash_of_a_simulation_does_not_depend_on_where_things_lie)
{
    uint64_t hashes[3];
    FOR_ROUNDS (round, 2) {
        for (size_t i = 0; i < 100 * round; i++) {
            (void)test_alloc(16 * (1 + i % 20)); /* takes places away from what follows */
        }
        world_open_sim(1, SIM_NO_FAULTS);
        wards_open();
        skua_pid team_pid = supervise(team());
        assert_int_equal(submit_named(team_pid, 'a', "anna", NULL), 0);
        struct actor *asker = actor_start(ACTS(does(ask_for_report, &team_pid), awaits(1)));
        world_settle();
        assert_int_equal(asker->seen_count, 1);
        hashes[round] = skua_sim_hash(world_runtime());
    }
    assert_int_equal(hashes[1], hashes[2]);
}
