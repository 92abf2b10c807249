/* SPDX-License-Identifier: MIT */
/* What the inspector tells of a process that only the process itself knows: its names and label,
 * what it waits for, and its relations to others. */
#include <inttypes.h>
#include <stdio.h>

#include "actor.h"
#include "base/monotonic.h"
#include "blocking_support.h"
#include "effort.h"
#include "gate.h"
#include "handlers.h"
#include "idlers.h"
#include "inspected.h"
#include "runtime/runtime.h"
#include "sched/describe.h"
#include "waits.h"

#define WORKERS  2
#define KEEPER   UINT32_C(77)
#define NAMELESS (SKUA_COMMAND_RESERVED - 1) /* and too large to be remembered */
#define HOUR     (UINT64_C(3600) * 1000000000)

static void open_world(void)
{
    inspected_prepare();
    world_create((skua_runtime_config){.worker_count = WORKERS, .inspect = true});
    world_register_handler(KEEPER, (skua_handler){.name = "kee\tper", .run = never_complete});
    world_register_handler(NAMELESS, (skua_handler){.run = never_complete});
    world_start();
}

static const struct inspect_line *ask_told(struct inspect_client *client, skua_pid pid)
{
    const struct inspect_line *line = client_describe(client, "describe", pid);
    assert_string_equal(line->fields[DESCRIBED_ANSWER], "told");
    assert_int_equal(line->count,
                     inspect_number(line, DESCRIBED_YIELDS) > 0 ? DESCRIBED_FIELDS : DESCRIBED_TAG);
    return line;
}

/* ---- processes ---- */

/* Answers nothing. */
static int server_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    (void)ctx;
    (void)events;
    (void)count;
    return 0;
}

static const skua_process_type server_type = {
    .name = "ser\tver", .step = server_step, .calls = true};

static skua_pid server_start(const char *name, const char *label)
{
    skua_pid pid;
    const skua_spawn_options options = {.type = &server_type, .name = name, .label = label};
    assert_int_equal(skua_process_submit_with(world_runtime(), &options, &pid), 0);
    api_wait_state(world->api, pid, SKUA_PROCESS_IDLE);
    return pid;
}

static skua_pid server; /* of the test */

static int call_server(struct turn *turn, const struct act *act)
{
    return skua_yield_call(turn->ctx, act->tag, server, skua_nothing(), act_timeout(turn, act));
}

static int monitor_server(struct turn *turn, const struct act *act)
{
    return skua_yield_monitor(turn->ctx, act->tag, server, act_timeout(turn, act));
}

static int join_server(struct turn *turn, const struct act *act)
{
    return skua_yield_join(turn->ctx, act->tag, server, act_timeout(turn, act));
}

static int await_name(struct turn *turn, const struct act *act)
{
    return skua_yield_await_name(turn->ctx, act->tag, "who knows", act_timeout(turn, act));
}

static int link_server(struct turn *turn, const struct act *act)
{
    (void)act;
    return skua_link(turn->ctx, server, SKUA_LINK_ONLY_ME, 0, NULL);
}

static int take_name(struct turn *turn, const struct act *act)
{
    return skua_name_register(turn->ctx, act->arg, NULL);
}

static int give_up_name(struct turn *turn, const struct act *act)
{
    return skua_name_unregister(turn->ctx, act->arg);
}

static int take_label(struct turn *turn, const struct act *act)
{
    return skua_label(turn->ctx, act->arg);
}

static struct act tagged(uint64_t tag, struct act act)
{
    act.tag = tag;
    return act;
}

static struct actor *start_waiting(struct script script)
{
    struct actor *actor = actor_start(script);
    actor_await_state(actor, SKUA_PROCESS_BLOCKED);
    return actor;
}

/* ---- what a process waits for ---- */

TEST(every_wait_says_what_it_is_about)
{
    char pid[17];
    char fd[2][16];
    open_world();
    struct inspect_client *client = client_open();
    const struct ends pipe = pipe_open();
    const struct ends full = full_pair_open();
    struct job *job = job_new((struct job){.waits = true});
    server = server_start(NULL, NULL);
    (void)snprintf(pid, sizeof pid, "%016" PRIx64, server.bits);
    (void)snprintf(fd[0], sizeof fd[0], "%d", pipe.near);
    (void)snprintf(fd[1], sizeof fd[1], "%d", full.near);
    const struct {
        struct act act;
        const char *kind;
        const char *about;
        const char *text;
        bool has_time;
    } rows[] = {
        {sleeps(7, HOUR), "sleep", "-", "", true},
        {timer(7, monotonic_ns() + HOUR), "timer", "-", "", true},
        {ticker(7, HOUR), "ticker", "-", "", true},
        {waits_readable(7, pipe.near), "readable", fd[0], "", false},
        {within(HOUR, waits_writable(7, full.near)), "writable", fd[1], "", true},
        {yields(7, KEEPER, 0, 0), "command", "77", "kee?per", false},
        {within(HOUR, yields(7, KEEPER, 0, 0)), "command", "77", "kee?per", true},
        {yields(7, NAMELESS, 0, 0), "command", "-", "", false},
        {runs_job(7, NULL, job), "blocking", "-", "", false},
        {tagged(7, does(call_server, NULL)), "call", pid, "ser?ver", false},
        {within(HOUR, tagged(7, does(call_server, NULL))), "call", pid, "ser?ver", true},
        {tagged(7, does(monitor_server, NULL)), "monitor", pid, "ser?ver", false},
        {within(HOUR, tagged(7, does(join_server, NULL))), "join", pid, "ser?ver", true},
        {tagged(7, does(await_name, NULL)), "name", "-", "who knows", false},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct actor *actor = start_waiting(ACTS(rows[i].act));
        const struct inspect_line *line = ask_told(client, actor->pid);
        assert_int_equal(inspect_number(line, DESCRIBED_YIELDS), 1);
        assert_int_equal(inspect_number(line, DESCRIBED_TAG), 7);
        assert_string_equal(line->fields[DESCRIBED_KIND], rows[i].kind);
        assert_string_equal(line->fields[DESCRIBED_ABOUT], rows[i].about);
        assert_string_equal(line->fields[DESCRIBED_TEXT], rows[i].text);
        if (rows[i].has_time) {
            assert_in_range(inspect_number(line, DESCRIBED_LEFT), HOUR / 2, HOUR + HOUR / 1000);
        } else {
            assert_string_equal(line->fields[DESCRIBED_LEFT], "-");
        }
        assert_int_equal(inspect_number(line, DESCRIBED_PERIOD),
                         strcmp(rows[i].kind, "ticker") == 0 ? HOUR : 0);
    }
    job_release(job);
}

/* Also after it has ticked, when its node has been an event. */
TEST(ticker_is_a_wait_after_each_tick)
{
    open_world();
    struct inspect_client *client = client_open();
    struct actor *actor = actor_start(ACTS(ticker(3, 1000000)));
    for (uint64_t i = 1; i < 20; i++) {
        actor_await_seen(actor, i);
        const struct inspect_line *line = ask_told(client, actor->pid);
        assert_int_equal(inspect_number(line, DESCRIBED_YIELDS), 1);
        assert_string_equal(line->fields[DESCRIBED_KIND], "ticker");
        assert_int_equal(inspect_number(line, DESCRIBED_PERIOD), 1000000);
    }
}

TEST(process_without_yields_waits_for_nothing)
{
    open_world();
    struct inspect_client *client = client_open();
    const skua_pid pid = idler_start();
    for (unsigned i = 0; i < 100; i++) {
        const struct inspect_line *line = ask_told(client, pid);
        assert_int_equal(inspect_number(line, DESCRIBED_NAMES), 0);
        assert_string_equal(line->fields[DESCRIBED_NAME], "");
        assert_string_equal(line->fields[DESCRIBED_LABEL], "");
        assert_int_equal(inspect_number(line, DESCRIBED_YIELDS), 0);
        /* Whoever has answered rests again. */
        assert_int_equal(world_info(pid).state, SKUA_PROCESS_IDLE);
    }
    assert_int_equal(world_info(pid).steps, 1);
}

TEST(newest_of_several_waits_is_told_and_all_in_the_details)
{
    open_world();
    struct inspect_client *client = client_open();
    struct actor *actor =
        start_waiting(ACTS(for_each_tag(30, yields(0, KEEPER, 0, 0)), sleeps(99, HOUR)));
    const struct inspect_line *line = ask_told(client, actor->pid);
    assert_int_equal(inspect_number(line, DESCRIBED_YIELDS), 31);
    assert_int_equal(inspect_number(line, DESCRIBED_TAG), 99);
    assert_string_equal(line->fields[DESCRIBED_KIND], "sleep");
    (void)client_describe(client, "process", actor->pid);
    assert_int_equal(inspect_count(client, "yield"), 20);
    line = inspect_find(client, "yield", 0);
    assert_int_equal(line->count, 7);
    assert_string_equal(line->fields[2], "sleep");
    line = inspect_find(client, "yield", 19);
    assert_int_equal(inspect_number(line, 1), 11);
    assert_string_equal(line->fields[2], "command");
    assert_string_equal(line->fields[4], "kee?per");
}

/* ---- names ---- */

static const char *detail(const struct inspect_client *client, const char *name)
{
    for (size_t i = 0; i < inspect_count(client, "detail"); i++) {
        const struct inspect_line *line = inspect_find(client, "detail", i);
        if (strcmp(line->fields[1], name) == 0) {
            return line->fields[2];
        }
    }
    return NULL;
}

TEST(names_and_label_are_told)
{
    static char text[20][8];
    open_world();
    struct inspect_client *client = client_open();
    const skua_pid pid = server_start("first name", "la bel");
    const struct inspect_line *line = ask_told(client, pid);
    assert_int_equal(inspect_number(line, DESCRIBED_NAMES), 1);
    assert_string_equal(line->fields[DESCRIBED_NAME], "first name");
    assert_string_equal(line->fields[DESCRIBED_LABEL], "la bel");

    struct actor *actor = actor_start(ACTS(does(take_label, (void *)"me")));
    for (size_t i = 0; i < COUNT_OF(text); i++) {
        (void)snprintf(text[i], sizeof text[i], "n%zu", i);
        actor_perform(actor, ACTS(does(take_name, text[i])));
        actor_await_state(actor, SKUA_PROCESS_IDLE);
        line = ask_told(client, actor->pid);
        assert_int_equal(inspect_number(line, DESCRIBED_NAMES), i + 1);
        assert_string_equal(line->fields[DESCRIBED_NAME], "n0");
        (void)client_describe(client, "process", actor->pid);
        const size_t shown = i < DESCRIBE_NAMES ? i + 1 : DESCRIBE_NAMES;
        assert_int_equal(inspect_count(client, "name"), shown);
        assert_int_equal(atoi(detail(client, "names")), (int)i + 1);
        assert_string_equal(detail(client, "label"), "me");
        assert_string_equal(inspect_find(client, "name", 0)->fields[1], "n0");
        assert_string_equal(inspect_find(client, "name", shown - 1)->fields[1], text[i]);
    }
}

static int take_many_names(struct turn *turn, const struct act *act)
{
    (void)act;
    for (uint32_t i = 0; i < 2 * DESCRIBE_COUNT_MAX; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "n%" PRIu32, i);
        assert_int_equal(skua_name_register(turn->ctx, name, NULL), 0);
    }
    return 0;
}

TEST(first_of_very_many_names_is_told)
{
    open_world();
    struct inspect_client *client = client_open();
    struct actor *actor = actor_start(ACTS(does(take_many_names, NULL)));
    actor_await_state(actor, SKUA_PROCESS_IDLE);
    const struct inspect_line *line = ask_told(client, actor->pid);
    assert_int_equal(inspect_number(line, DESCRIBED_NAMES), DESCRIBE_COUNT_MAX);
    assert_string_equal(line->fields[DESCRIBED_NAME], "n0");
    (void)client_describe(client, "process", actor->pid);
    assert_int_equal(inspect_count(client, "name"), DESCRIBE_NAMES);
    assert_string_equal(inspect_find(client, "name", 0)->fields[1], "n0");
}

/* However names come and go. */
TEST(oldest_name_that_is_left_is_told)
{
    static const char *const names[] = {"n0", "n1", "n2"};
    static const struct {
        const char *given_up[3];
        const char *first;
    } rows[] = {
        {{NULL}, "n0"},       {{"n0"}, "n1"},       {{"n1"}, "n0"},       {{"n2"}, "n0"},
        {{"n0", "n1"}, "n2"}, {{"n2", "n0"}, "n1"}, {{"n2", "n1"}, "n0"}, {{"n0", "n2", "n1"}, ""},
    };
    FOR_ROWS (row, rows) {
        open_world();
        struct inspect_client *client = client_open();
        struct actor *actor = actor_start(NO_ACTS);
        for (size_t i = 0; i < COUNT_OF(names); i++) {
            actor_perform(actor, ACTS(does(take_name, (void *)names[i])));
        }
        for (size_t i = 0; i < COUNT_OF(row->given_up) && row->given_up[i] != NULL; i++) {
            actor_perform(actor, ACTS(does(give_up_name, (void *)row->given_up[i])));
        }
        actor_await_state(actor, SKUA_PROCESS_IDLE);
        assert_string_equal(ask_told(client, actor->pid)->fields[DESCRIBED_NAME], row->first);
        actor_perform(actor, ACTS(does(take_name, (void *)"later")));
        actor_await_state(actor, SKUA_PROCESS_IDLE);
        assert_string_equal(ask_told(client, actor->pid)->fields[DESCRIBED_NAME],
                            row->first[0] != '\0' ? row->first : "later");
    }
}

/* ---- relations ---- */

TEST(deferred_events_are_counted)
{
    open_world();
    struct inspect_client *client = client_open();
    struct gate *gate = gate_start(GATE_STEP, true);
    gate_send(gate, 1);
    gate_send(gate, 2);
    gate_await_deferred(gate, 2);
    (void)client_describe(client, "process", gate->pid);
    assert_string_equal(detail(client, "deferred"), "2");
    gate_set(gate, GATE_OPEN);
    gate_await_passed(gate, 2);
    (void)client_describe(client, "process", gate->pid);
    assert_null(detail(client, "deferred"));
}

TEST(links_monitors_and_owed_calls_are_told)
{
    open_world();
    struct inspect_client *client = client_open();
    server = server_start(NULL, NULL);
    struct actor *linked = actor_start(ACTS(does(link_server, NULL)));
    struct actor *watching = start_waiting(
        ACTS(does(monitor_server, NULL), tagged(1, does(join_server, NULL)), cancels(1)));
    struct actor *caller = start_waiting(ACTS(within(HOUR, does(call_server, NULL))));
    struct actor *patient = start_waiting(ACTS(does(call_server, NULL)));
    actor_await_state(linked, SKUA_PROCESS_IDLE);
    api_wait_state(world->api, server, SKUA_PROCESS_IDLE);
    (void)client_describe(client, "process", server);
    assert_string_equal(detail(client, "links"), "1");
    assert_string_equal(detail(client, "monitors"), "1");
    assert_string_equal(detail(client, "owed"), "2");
    const struct inspect_line *line = inspect_find(client, "link", 0);
    assert_true(skua_pid_equal(inspect_pid(line, 1), linked->pid));
    assert_string_equal(line->fields[2], "actor");
    line = inspect_find(client, "monitor", 0);
    assert_true(skua_pid_equal(inspect_pid(line, 1), watching->pid));
    line = inspect_find(client, "owes", 0);
    assert_int_equal(line->count, 6);
    assert_string_equal(line->fields[5], "awaited");
    assert_true(skua_pid_equal(inspect_pid(line, 1), caller->pid));
    assert_string_equal(line->fields[2], "actor");
    assert_in_range(inspect_number(line, 3), 0, HOUR);
    assert_in_range(inspect_number(line, 4), HOUR / 2, HOUR);
    line = inspect_find(client, "owes", 1);
    assert_true(skua_pid_equal(inspect_pid(line, 1), patient->pid));
    assert_string_equal(line->fields[4], "-");
    actor_perform(patient, ACTS(cancels(0)));
    actor_await_seen(patient, 1); /* the call is given up after the step */
    (void)client_describe(client, "process", server);
    assert_string_equal(inspect_find(client, "owes", 0)->fields[5], "awaited");
    assert_string_equal(inspect_find(client, "owes", 1)->fields[5], "given-up");
    (void)client_describe(client, "process", linked->pid);
    assert_string_equal(detail(client, "links"), "1");
    assert_true(skua_pid_equal(inspect_pid(inspect_find(client, "link", 0), 1), server));
}

/* More than are shown; of the calls, the oldest. */
TEST(many_relations_are_counted)
{
    enum { MANY = 3 * DESCRIBE_PEERS };
    open_world();
    struct inspect_client *client = client_open();
    server = server_start(NULL, NULL);
    struct actor *actor = start_waiting(ACTS(for_each_tag(MANY, does(call_server, NULL)),
                                             for_each_tag(MANY, does(link_server, NULL)),
                                             for_each_tag(MANY, does(monitor_server, NULL))));
    struct actor *other = start_waiting(ACTS(does(call_server, NULL)));
    api_wait_state(world->api, server, SKUA_PROCESS_IDLE);
    (void)client_describe(client, "process", server);
    assert_int_equal(atoi(detail(client, "links")), MANY);
    assert_int_equal(atoi(detail(client, "monitors")), MANY);
    assert_int_equal(atoi(detail(client, "owed")), MANY + 1);
    assert_int_equal(inspect_count(client, "link"), DESCRIBE_PEERS);
    assert_int_equal(inspect_count(client, "monitor"), DESCRIBE_PEERS);
    assert_int_equal(inspect_count(client, "owes"), DESCRIBE_PEERS);
    for (size_t i = 0; i < DESCRIBE_PEERS; i++) {
        assert_true(skua_pid_equal(inspect_pid(inspect_find(client, "owes", i), 1), actor->pid));
    }
    assert_false(skua_pid_equal(actor->pid, other->pid));
}

/* ---- those who do not answer ---- */

/* The answer to the question that has come too late is nobody's. */
TEST(process_in_a_long_step_holds_nobody_up)
{
    open_world();
    struct inspect_client *client = client_open();
    struct actor *held = actor_start_held();
    const skua_pid idler = idler_start();
    for (unsigned i = 0; i < 3; i++) {
        client_ask(client, "describe %" PRIx64, held->pid.bits);
        assert_string_equal(client->lines[0].fields[DESCRIBED_ANSWER], "silent");
        client_ask(client, "process %" PRIx64, held->pid.bits);
        assert_string_equal(client->lines[0].fields[3], "running");
        assert_string_equal(inspect_find(client, "described", 0)->fields[DESCRIBED_ANSWER],
                            "silent");
    }
    assert_string_equal(client_describe(client, "describe", idler)->fields[DESCRIBED_ANSWER],
                        "told");
    actor_let_go(held);
    assert_string_equal(client_describe(client, "describe", held->pid)->fields[DESCRIBED_ANSWER],
                        "told");
}

static bool nothing_is_open(void)
{
    struct scheduler *sched = &world_runtime()->sched;
    (void)pthread_mutex_lock(&sched->descriptions.lock);
    const bool is_so = sched->descriptions.open == 0;
    (void)pthread_mutex_unlock(&sched->descriptions.lock);
    return is_so;
}

/* However often one asks, no more than so many questions wait. */
TEST(questions_that_nobody_answers_do_not_pile_up)
{
    open_world();
    struct inspect_client *client = client_open();
    struct actor *held = actor_start_held();
    char request[1200] = "describe";
    for (unsigned i = 0; i < DESCRIBE_MAX; i++) {
        (void)snprintf(request + strlen(request), sizeof request - strlen(request), " %016" PRIx64,
                       held->pid.bits);
    }
    for (unsigned i = 0; i < 6; i++) {
        client_ask(client, "%s", request);
        assert_int_equal(inspect_count(client, "described"), DESCRIBE_MAX);
    }
    struct scheduler *sched = &world_runtime()->sched;
    (void)pthread_mutex_lock(&sched->descriptions.lock);
    assert_int_equal(sched->descriptions.open, DESCRIBE_OPEN_MAX);
    (void)pthread_mutex_unlock(&sched->descriptions.lock);
    actor_let_go(held);
    while (!nothing_is_open()) {
        (void)sched_yield();
    }
    assert_string_equal(client_describe(client, "describe", held->pid)->fields[DESCRIBED_ANSWER],
                        "told");
}

/* What has not been answered when a process ends goes with it. */
TEST(process_that_ends_unasked_is_no_leak)
{
    open_world();
    struct inspect_client *client = client_open();
    struct actor *held = actor_new(ACTS(holds(), fails(SKUA_E_USER)));
    actor_submit(held);
    actor_await_held(held, 1);
    for (unsigned i = 0; i < 10; i++) {
        client_ask(client, "describe %" PRIx64, held->pid.bits);
        assert_string_equal(client->lines[0].fields[DESCRIBED_ANSWER], "silent");
    }
    actor_let_go(held);
    actor_await_end(held);
    while (!nothing_is_open()) {
        (void)sched_yield();
    }
    assert_string_equal(client_describe(client, "describe", held->pid)->fields[DESCRIBED_ANSWER],
                        "gone");
    client_ask_wrong(client, SKUA_E_NO_PROCESS, "process %" PRIx64, held->pid.bits);
}

/* Those that end, begin, tick and get messages meanwhile. */
TEST(processes_that_move_are_described_all_the_same)
{
    enum { CROWD = 40 };
    struct actor *busy[CROWD];
    open_world();
    struct inspect_client *client = client_open();
    server = server_start("server", NULL);
    for (size_t i = 0; i < CROWD; i++) {
        busy[i] = actor_start(i % 2 == 0 ? ACTS(ticker(1, 50000), awaits(UINT64_MAX))
                                         : ACTS(within(20000, tagged(1, does(call_server, NULL))),
                                                within(20000, tagged(2, yields(2, KEEPER, 0, 0))),
                                                awaits(2), repeats(UINT64_MAX)));
    }
    for (unsigned round = 0; round < EFFORT(200); round++) {
        char request[1200] = "describe";
        const skua_pid brief = idler_start();
        for (size_t i = 0; i < CROWD; i++) {
            (void)snprintf(request + strlen(request), sizeof request - strlen(request),
                           " %016" PRIx64, busy[i]->pid.bits);
        }
        (void)world_cancel(brief, 0);
        client_ask(client, "%s %016" PRIx64 " %016" PRIx64, request, brief.bits, server.bits);
        assert_int_equal(inspect_count(client, "described"), CROWD + 2);
        client_ask(client, "process %" PRIx64, busy[round % CROWD]->pid.bits);
    }
    for (size_t i = 0; i < CROWD; i++) {
        assert_int_equal(world_terminate(busy[i]->pid), 0);
    }
}

/* ---- requests ---- */

TEST(wrong_questions_are_errors)
{
    open_world();
    struct inspect_client *client = client_open();
    char request[1200] = "describe";
    client_ask(client, "describe");
    assert_int_equal(client->line_count, 0);
    client_ask_wrong(client, SKUA_E_INVALID, "describe x");
    client_ask_wrong(client, SKUA_E_INVALID, "describe 1 2 3 4 5 6 -7");
    client_ask_wrong(client, SKUA_E_INVALID, "describe ");
    client_ask(client, "describe 0 1 2 3 4 5 6 7 8 9 ffffffffffffffff");
    assert_int_equal(inspect_count(client, "described"), 11);
    for (size_t i = 0; i < 11; i++) {
        assert_string_equal(client->lines[i].fields[DESCRIBED_ANSWER], "gone");
    }
    for (unsigned i = 0; i <= DESCRIBE_MAX; i++) {
        (void)strcat(request, " 1");
    }
    client_ask_wrong(client, SKUA_E_INVALID, "%s", request);
}

/* A stop with questions on their way, and one that comes while the inspector waits. */
TEST(stop_does_not_wait_for_answers)
{
    open_world();
    struct inspect_client *client = client_open();
    struct actor *held = actor_start_held();
    client_ask(client, "describe %" PRIx64, held->pid.bits);
    (void)idlers_start(10);
    actor_let_go(held);
    world_stop();
    client_close(client);
}
