/* SPDX-License-Identifier: MIT */
/* What the inspector tells of calls that were forwarded, and of relations that begin at spawn. */
#include "inspected.h"
#include "relations.h"

static struct inspect_client *open_client(void)
{
    inspected_open((skua_runtime_config){.worker_count = 2});
    return client_open();
}

/* Who rests owes what it has got. */
static struct actor *start_caller(struct actor *server)
{
    struct actor *caller = actor_start(ACTS(asks(1, server, 5)));
    actor_await_state(caller, SKUA_PROCESS_BLOCKED);
    return caller;
}

static skua_pid debtor_in_yield(const struct inspect_client *client)
{
    const struct inspect_line *yield = inspect_find(client, "yield", 0);
    return inspect_pid(yield, yield->count - 2);
}

/* Asks again if the process that owes the answer took too long to say so. */
static const struct inspect_line *describe_call(struct inspect_client *client, const char *request,
                                                const struct actor *caller, bool is_known)
{
    const struct inspect_line *line;
    bool is_told;
    do {
        line = client_describe(client, request, caller->pid);
        assert_int_equal(line->count, DESCRIBED_FORWARDED_FIELDS);
        is_told =
            !skua_pid_is_none(inspect_pid(line, DESCRIBED_DEBTOR)) &&
            (inspect_count(client, "yield") == 0 || !skua_pid_is_none(debtor_in_yield(client)));
    } while (is_known && !is_told);
    return line;
}

/* What the caller is told to wait for: whom it has called, how often that was forwarded, and who
 * owes the answer; null: that is not known. Once by `describe`, and as one of its yields. */
static void assert_forwarded(struct inspect_client *client, const struct actor *caller,
                             const struct actor *called, uint64_t hops, const struct actor *debtor)
{
    static const char *const requests[] = {"describe", "process"};
    FOR_ROWS (request, requests) {
        const struct inspect_line *line = describe_call(client, *request, caller, debtor != NULL);
        assert_string_equal(line->fields[DESCRIBED_KIND], "call");
        assert_true(skua_pid_equal(inspect_pid(line, DESCRIBED_ABOUT), called->pid));
        assert_int_equal(inspect_number(line, DESCRIBED_HOPS), hops);
        assert_int_equal(inspect_pid(line, DESCRIBED_DEBTOR).bits,
                         debtor != NULL ? debtor->pid.bits : 0);
        assert_string_equal(line->fields[DESCRIBED_DEBTOR_TYPE], debtor != NULL ? "server" : "");
    }
    assert_int_equal(debtor_in_yield(client).bits, debtor != NULL ? debtor->pid.bits : 0);
}

TEST(call_that_was_forwarded_shows_who_owes_the_answer)
{
    struct inspect_client *client = open_client();
    struct actor *last = server_start(NO_ACTS);
    struct actor *second = server_start(ACTS(awaits(1)));
    struct actor *first = server_start(ACTS(awaits(1), forwards(0, second, 6)));
    struct actor *caller = start_caller(first);
    actor_await_seen(second, 1);
    actor_await_state(second, SKUA_PROCESS_IDLE);
    assert_forwarded(client, caller, first, 1, second);
    actor_perform(second, ACTS(forwards(0, last, 7)));
    actor_await_seen(last, 1);
    actor_await_state(last, SKUA_PROCESS_IDLE);
    assert_forwarded(client, caller, first, 2, last);
}

/* What it carries, in the place where the process would be that has it, is no process. */
TEST(call_that_is_on_its_way_shows_only_that_it_was_forwarded)
{
    struct inspect_client *client = open_client();
    struct actor *second = server_start(ACTS(holds()));
    actor_await_held(second, 1);
    struct actor *first = server_start(ACTS(awaits(1), forwards(0, second, 6)));
    struct actor *caller = start_caller(first);
    actor_await_seen(first, 1);
    actor_await_state(first, SKUA_PROCESS_IDLE);
    assert_forwarded(client, caller, first, 1, NULL);
    actor_release(second);
}

TEST(call_that_was_not_forwarded_shows_whom_it_was_made_to)
{
    struct inspect_client *client = open_client();
    struct actor *server = server_start(NO_ACTS);
    struct actor *caller = start_caller(server);
    const struct inspect_line *line = client_describe(client, "describe", caller->pid);
    assert_int_equal(line->count, DESCRIBED_FIELDS);
    assert_true(skua_pid_equal(inspect_pid(line, DESCRIBED_ABOUT), server->pid));
}

TEST(relations_at_spawn_show_as_what_they_are)
{
    const struct {
        skua_spawn_options options;
        const char *kind;
    } rows[] = {
        {{.monitor = true, .monitor_tag = 1}, "monitor"},
        {{.join = true, .join_tag = 1}, "join"},
    };
    FOR_ROWS (row, rows) {
        struct inspect_client *client = open_client();
        struct actor *child = actor_new(NO_ACTS);
        struct actor *parent = actor_start(ACTS(spawns_with(child, row->options)));
        actor_await_state(parent, SKUA_PROCESS_BLOCKED);
        const struct inspect_line *line = client_describe(client, "describe", parent->pid);
        assert_string_equal(line->fields[DESCRIBED_KIND], row->kind);
        assert_true(skua_pid_equal(inspect_pid(line, DESCRIBED_ABOUT), child->pid));
    }
}
