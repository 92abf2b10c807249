/* SPDX-License-Identifier: MIT */
/* Commands: handlers that complete at once, later, or on another thread; completions that come
 * late, twice, or from nowhere; and processes that wait for one or many of them. */

#include "api_support.h"

#define ERROR_HANDLER (SKUA_E_USER - 1)
#define ERROR_STEP    (SKUA_E_USER - 2)
#define ANSWERS_MOST  1000

enum { QUESTION = 3, ANSWER = 4 };

/* The ids that most tests use. */
enum { DOUBLE_IT, FAIL_IT, KEEP_IT, RELEASE_ALL, COMPLETE_INSIDE, COMPLETE_TWICE, UNKNOWN };

/* ---- a process that asks ---- */

struct answer {
    uint64_t tag;
    int error;
    uint32_t type;
    uint64_t value;
};

/* What a client is to do, and what it has got. It finishes when it has `wanted` answers. */
struct client {
    int (*ask)(struct client *client, skua_step *out); /* in its first step */
    int (*on_message)(struct client *client, skua_step *out);
    uint64_t wanted;
    struct answer answers[ANSWERS_MOST];
    uint64_t count;
    uint64_t messages;
    unsigned strange_events;
    struct tracked items[2];
    struct tally asked;
    struct tally entered;
    struct tally released;
    struct tally answered;
};

static void client_init(struct client *client, int (*ask)(struct client *client, skua_step *out),
                        uint64_t wanted)
{
    *client = (struct client){.ask = ask, .wanted = wanted};
    tally_init(&client->asked);
    tally_init(&client->entered);
    tally_init(&client->released);
    tally_init(&client->answered);
}

static void note_answer(struct client *client, const skua_event *event)
{
    client->strange_events += !skua_pid_is_none(event->from) || client->count == ANSWERS_MOST;
    if (client->count < ANSWERS_MOST) {
        client->answers[client->count++] = (struct answer){
            .tag = event->tag,
            .error = event->error,
            .type = event->payload.type,
            .value = skua_payload_to_u64(&event->payload),
        };
    }
}

static int client_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                       skua_step *out)
{
    struct client *client = api_world(self);
    int error = 0;
    (void)ctx;
    if (api_finish_if_cancelled(events, count, out)) {
        return 0;
    }
    if (count == 0) {
        error = client->ask(client, out);
        tally_add(&client->asked, 1);
        return error;
    }
    uint64_t answers = 0;
    for (size_t i = 0; i < count; i++) {
        if (events[i].type == SKUA_EVENT_COMPLETION) {
            note_answer(client, &events[i]);
            answers++;
        } else {
            client->messages++;
            error = client->on_message != NULL ? client->on_message(client, out) : 0;
        }
    }
    if (client->count == client->wanted) {
        skua_step_done(out, skua_payload_empty(0));
    }
    tally_add(&client->answered, answers);
    return error;
}

static const skua_process_type client_type = {
    .name = "client", .state_size = sizeof(void *), .init = api_init_world, .step = client_step};

static void assert_answer(const struct answer *answer, uint64_t tag, int error, uint64_t value)
{
    assert_int_equal(answer->tag, tag);
    assert_int_equal(answer->error, error);
    assert_int_equal(answer->value, value);
    if (error == 0) {
        assert_int_equal(answer->type, ANSWER);
    }
}

static void assert_one_answer(const struct client *client, uint64_t tag, int error, uint64_t value)
{
    assert_int_equal(client->count, 1);
    assert_int_equal(client->strange_events, 0);
    assert_answer(&client->answers[0], tag, error, value);
}

/* Every tag below `total` has come exactly once. */
static void assert_all_answered(const struct client *client, uint64_t total)
{
    static unsigned seen[ANSWERS_MOST];
    memset(seen, 0, sizeof seen);
    assert_int_equal(client->count, total);
    assert_int_equal(client->strange_events, 0);
    for (uint64_t i = 0; i < total; i++) {
        assert_in_range(client->answers[i].tag, 0, total - 1);
        assert_int_equal(seen[client->answers[i].tag]++, 0);
    }
}

/* ---- handlers ---- */

/* Where handlers put what they leave for later. */
struct desk {
    pthread_mutex_t lock;
    skua_completion kept[ANSWERS_MOST];
    size_t count;
    struct tally kept_count;
    struct tally completed;
    atomic_uint calls;
    uint32_t last_id;
    skua_runtime *last_runtime;
    skua_payload taken;
    struct tracked item;
    int errors[4];
};

static void desk_init(struct desk *desk)
{
    *desk = (struct desk){.count = 0};
    (void)pthread_mutex_init(&desk->lock, NULL);
    tally_init(&desk->kept_count);
    tally_init(&desk->completed);
}

static void desk_keep(struct desk *desk, skua_completion completion)
{
    (void)pthread_mutex_lock(&desk->lock);
    desk->kept[desk->count++] = completion;
    (void)pthread_mutex_unlock(&desk->lock);
    tally_add(&desk->kept_count, 1);
}

static int complete(const struct api *api, skua_completion completion, uint64_t value)
{
    return skua_command_complete(api->runtime, completion, 0, skua_payload_u64(ANSWER, value));
}

static int double_it(void *arg, skua_command *command, skua_payload *result)
{
    struct desk *desk = arg;
    (void)atomic_fetch_add(&desk->calls, 1);
    desk->last_id = command->id;
    desk->last_runtime = command->runtime;
    *result = skua_payload_u64(ANSWER, 2 * skua_payload_to_u64(&command->input));
    return 0;
}

static int fail_it(void *arg, skua_command *command, skua_payload *result)
{
    (void)arg;
    (void)command;
    (void)result;
    return ERROR_HANDLER;
}

static int keep_it(void *arg, skua_command *command, skua_payload *result)
{
    struct desk *desk = arg;
    (void)result;
    (void)atomic_fetch_add(&desk->calls, 1);
    desk_keep(desk, command->completion);
    return SKUA_PENDING;
}

/* Completes all that keep_it has kept, on the worker it runs on. */
static int release_all(void *arg, skua_command *command, skua_payload *result)
{
    struct desk *desk = arg;
    *result = skua_payload_u64(ANSWER, 0);
    int error = 0;
    for (size_t i = 0; i < desk->count; i++) {
        error |= skua_command_complete(command->runtime, desk->kept[i], 0,
                                       skua_payload_u64(ANSWER, 100 + i));
    }
    return error;
}

static int complete_inside(void *arg, skua_command *command, skua_payload *result)
{
    (void)arg;
    (void)result;
    const uint64_t number = skua_payload_to_u64(&command->input);
    const int error = skua_command_complete(command->runtime, command->completion, 0,
                                            skua_payload_u64(ANSWER, number + 1));
    return error != 0 ? error : SKUA_PENDING;
}

/* By a call, and then by what it returns. */
static int complete_twice(void *arg, skua_command *command, skua_payload *result)
{
    struct desk *desk = arg;
    desk->errors[0] = skua_command_complete(command->runtime, command->completion, 0,
                                            skua_payload_u64(ANSWER, 1));
    *result = tracked_payload(ANSWER, &desk->item);
    return 0;
}

static void register_handler(const struct api *api, uint32_t id, skua_handler_fn *run, void *arg)
{
    const skua_handler handler = {.name = "handler", .run = run, .arg = arg};
    assert_int_equal(skua_command_register(api->runtime, id, &handler), 0);
}

static void start_with_desk(struct api *api, uint32_t workers, struct desk *desk)
{
    desk_init(desk);
    api_create(api, (skua_runtime_config){.worker_count = workers});
    register_handler(api, DOUBLE_IT, double_it, desk);
    register_handler(api, FAIL_IT, fail_it, desk);
    register_handler(api, KEEP_IT, keep_it, desk);
    register_handler(api, RELEASE_ALL, release_all, desk);
    register_handler(api, COMPLETE_INSIDE, complete_inside, desk);
    register_handler(api, COMPLETE_TWICE, complete_twice, desk);
    api_start(api);
}

/* ---- one yield ---- */

static int ask_double(struct client *client, skua_step *out)
{
    (void)client;
    return skua_step_yield(out, DOUBLE_IT, 77, skua_payload_u64(QUESTION, 21));
}

TEST(handler_that_completes_at_once_answers)
{
    const uint32_t workers = test_workers();
    struct api api;
    struct desk desk;
    static struct client client;
    start_with_desk(&api, workers, &desk);
    client_init(&client, ask_double, 1);
    assert_int_equal(api_run_process(&api, &client_type, &client).error, 0);
    assert_one_answer(&client, 77, 0, 42);
    assert_int_equal(desk.calls, 1);
    assert_int_equal(desk.last_id, DOUBLE_IT);
    assert_ptr_equal(desk.last_runtime, api.runtime);
    api_stop(&api);
}

static int ask_inside(struct client *client, skua_step *out)
{
    (void)client;
    return skua_step_yield(out, COMPLETE_INSIDE, 78, skua_payload_u64(QUESTION, 21));
}

static int ask_fail(struct client *client, skua_step *out)
{
    return skua_step_yield(out, FAIL_IT, 79, tracked_payload(QUESTION, &client->items[0]));
}

static int ask_unknown(struct client *client, skua_step *out)
{
    return skua_step_yield(out, UNKNOWN, 80, tracked_payload(QUESTION, &client->items[0]));
}

static int ask_unknown_large(struct client *client, skua_step *out)
{
    return skua_step_yield(out, 123456, 81, tracked_payload(QUESTION, &client->items[0]));
}

static int ask_twice(struct client *client, skua_step *out)
{
    (void)client;
    return skua_step_yield(out, COMPLETE_TWICE, 82, skua_payload_empty(QUESTION));
}

/* Runs a client that gets its only answer without any help, and checks that. */
static void check_answer(int (*ask)(struct client *client, skua_step *out), uint64_t tag, int error,
                         uint64_t value, unsigned input_drops)
{
    const uint32_t workers = test_workers();
    struct api api;
    struct desk desk;
    static struct client client;
    start_with_desk(&api, workers, &desk);
    client_init(&client, ask, 1);
    assert_int_equal(api_run_process(&api, &client_type, &client).error, 0);
    api_stop(&api);
    assert_one_answer(&client, tag, error, value);
    assert_drops(&client.items[0], 1, input_drops);
}

TEST(handler_that_completes_by_a_call_answers)
{
    check_answer(ask_inside, 78, 0, 22, 0);
}

TEST(handler_that_fails_answers_with_its_error)
{
    check_answer(ask_fail, 79, ERROR_HANDLER, 0, 1);
}

TEST(command_unknown_answers_with_that_error)
{
    check_answer(ask_unknown, 80, SKUA_E_UNKNOWN_COMMAND, 0, 1);
    check_answer(ask_unknown_large, 81, SKUA_E_UNKNOWN_COMMAND, 0, 1);
}

TEST(handler_that_completes_and_returns_a_result_answers_once)
{
    const uint32_t workers = test_workers();
    struct api api;
    struct desk desk;
    static struct client client;
    start_with_desk(&api, workers, &desk);
    client_init(&client, ask_twice, 2); /* would take a second one */
    const skua_pid pid = api_submit(&api, &client_type, &client);
    tally_wait(&client.answered, 1);
    api_wait_state(&api, pid, SKUA_PROCESS_IDLE);
    api_stop(&api);
    assert_one_answer(&client, 82, 0, 1);
    assert_int_equal(desk.errors[0], 0);
    assert_drops(&desk.item, 1, 1);
}

static int take_input(void *arg, skua_command *command, skua_payload *result)
{
    struct desk *desk = arg;
    (void)result;
    desk->taken = skua_payload_take(&command->input);
    return 0;
}

static int leave_input(void *arg, skua_command *command, skua_payload *result)
{
    (void)arg;
    (void)command;
    (void)result;
    return 0;
}

static int ask_with_inputs(struct client *client, skua_step *out)
{
    const int error = skua_step_yield(out, 0, 0, tracked_payload(QUESTION, &client->items[0]));
    return error != 0 ? error
                      : skua_step_yield(out, 1, 1, tracked_payload(QUESTION, &client->items[1]));
}

TEST(input_left_by_the_handler_is_dropped_and_input_taken_is_kept)
{
    struct api api;
    struct desk desk;
    static struct client client;
    desk_init(&desk);
    api_create(&api, (skua_runtime_config){.worker_count = 1});
    register_handler(&api, 0, take_input, &desk);
    register_handler(&api, 1, leave_input, &desk);
    api_start(&api);
    client_init(&client, ask_with_inputs, 2);
    assert_int_equal(api_run_process(&api, &client_type, &client).error, 0);
    api_stop(&api);
    assert_all_answered(&client, 2);
    assert_drops(&client.items[0], 1, 0);
    assert_ptr_equal(skua_payload_data(&desk.taken), &client.items[0]);
    assert_int_equal(desk.taken.type, QUESTION);
    assert_drops(&client.items[1], 1, 1);
}

/* ---- completing later ---- */

static int ask_keep(struct client *client, skua_step *out)
{
    return skua_step_yield(out, KEEP_IT, 90, tracked_payload(QUESTION, &client->items[0]));
}

static int ask_keep_then_release(struct client *client, skua_step *out)
{
    (void)client;
    const int error = skua_step_yield(out, KEEP_IT, 0, skua_payload_empty(QUESTION));
    return error != 0 ? error : skua_step_yield(out, RELEASE_ALL, 1, skua_payload_empty(QUESTION));
}

TEST(completion_later_from_the_same_worker_arrives)
{
    struct api api;
    struct desk desk;
    static struct client client;
    start_with_desk(&api, 1, &desk);
    client_init(&client, ask_keep_then_release, 2);
    assert_int_equal(api_run_process(&api, &client_type, &client).error, 0);
    api_stop(&api);
    assert_all_answered(&client, 2);
    for (size_t i = 0; i < 2; i++) {
        const struct answer *answer = &client.answers[i];
        assert_answer(answer, answer->tag, 0, answer->tag == 0 ? 100 : 0);
    }
}

/* A client with one yield whose completion is on the desk. */
static skua_pid start_asking(const struct api *api, struct desk *desk, struct client *client,
                             int (*ask)(struct client *client, skua_step *out), uint64_t wanted)
{
    const uint64_t kept = tally_count(&desk->kept_count);
    client_init(client, ask, wanted);
    const skua_pid pid = api_submit(api, &client_type, client);
    tally_wait(&desk->kept_count, kept + 1);
    return pid;
}

TEST(completion_from_another_thread_arrives)
{
    const uint32_t workers = test_workers();
    struct api api;
    struct desk desk;
    static struct client client;
    start_with_desk(&api, workers, &desk);
    (void)start_asking(&api, &desk, &client, ask_keep, 1);
    assert_int_equal(complete(&api, desk.kept[0], 5), 0);
    tally_wait(&client.answered, 1);
    api_stop(&api);
    assert_one_answer(&client, 90, 0, 5);
    assert_drops(&client.items[0], 1, 1);
}

TEST(completion_with_an_error_arrives)
{
    struct api api;
    struct desk desk;
    static struct client client;
    start_with_desk(&api, 2, &desk);
    (void)start_asking(&api, &desk, &client, ask_keep, 1);
    assert_int_equal(
        skua_command_complete(api.runtime, desk.kept[0], ERROR_HANDLER, skua_payload_empty(0)), 0);
    tally_wait(&client.answered, 1);
    api_stop(&api);
    assert_one_answer(&client, 90, ERROR_HANDLER, 0);
}

/* The completion is on its way before the handler has said that it will come. */
static int wait_for_completer(void *arg, skua_command *command, skua_payload *result)
{
    struct desk *desk = arg;
    (void)result;
    desk_keep(desk, command->completion);
    tally_wait(&desk->completed, 1);
    return SKUA_PENDING;
}

TEST(completion_during_the_handler_arrives)
{
    const uint32_t workers = test_workers();
    struct api api;
    struct desk desk;
    static struct client client;
    desk_init(&desk);
    api_create(&api, (skua_runtime_config){.worker_count = workers});
    register_handler(&api, KEEP_IT, wait_for_completer, &desk);
    api_start(&api);
    (void)start_asking(&api, &desk, &client, ask_keep, 1);
    assert_int_equal(complete(&api, desk.kept[0], 6), 0);
    tally_add(&desk.completed, 1);
    tally_wait(&client.answered, 1);
    api_stop(&api);
    assert_one_answer(&client, 90, 0, 6);
}

static int pause_step(struct client *client, skua_step *out)
{
    (void)out;
    tally_add(&client->entered, 1);
    tally_wait(&client->released, 1);
    return 0;
}

TEST(completion_while_the_process_runs_is_seen)
{
    const uint32_t workers = test_workers();
    for (unsigned round = 0; round < 20; round++) {
        struct api api;
        struct desk desk;
        static struct client client;
        start_with_desk(&api, workers, &desk);
        const skua_pid pid = start_asking(&api, &desk, &client, ask_keep, 1);
        client.on_message = pause_step; /* the message hands it over */
        assert_int_equal(skua_message_send(api.runtime, pid, skua_payload_empty(0)), 0);
        tally_wait(&client.entered, 1);
        assert_int_equal(complete(&api, desk.kept[0], 7), 0);
        tally_add(&client.released, 1);
        tally_wait(&client.answered, 1);
        api_stop(&api);
        assert_one_answer(&client, 90, 0, 7);
    }
}

/* ---- many yields ---- */

static int ask_many(skua_step *out, uint32_t command)
{
    int error = 0;
    for (uint64_t tag = 0; tag < ANSWERS_MOST && error == 0; tag++) {
        error = skua_step_yield(out, command, tag, skua_payload_u64(QUESTION, tag));
    }
    return error;
}

static int ask_double_many(struct client *client, skua_step *out)
{
    (void)client;
    return ask_many(out, DOUBLE_IT);
}

static int ask_keep_many(struct client *client, skua_step *out)
{
    (void)client;
    return ask_many(out, KEEP_IT);
}

/* In turns: at once, by a call, later, unknown. */
static int ask_mixed_many(struct client *client, skua_step *out)
{
    static const uint32_t commands[] = {DOUBLE_IT, COMPLETE_INSIDE, KEEP_IT, UNKNOWN};
    int error = 0;
    (void)client;
    for (uint64_t tag = 0; tag < ANSWERS_MOST && error == 0; tag++) {
        error = skua_step_yield(out, commands[tag % 4], tag, skua_payload_u64(QUESTION, tag));
    }
    return error;
}

TEST(many_yields_completed_at_once_come_in_their_order)
{
    const uint32_t workers = test_workers();
    struct api api;
    struct desk desk;
    static struct client client;
    start_with_desk(&api, workers, &desk);
    client_init(&client, ask_double_many, ANSWERS_MOST);
    assert_int_equal(api_run_process(&api, &client_type, &client).error, 0);
    api_stop(&api);
    assert_int_equal(client.count, ANSWERS_MOST);
    for (uint64_t i = 0; i < ANSWERS_MOST; i++) {
        assert_answer(&client.answers[i], i, 0, 2 * i);
    }
}

struct completer {
    const struct api *api;
    struct desk *desk;
    size_t first;
    size_t stride;
    unsigned refused;
};

static void complete_every_nth(void *arg)
{
    struct completer *completer = arg;
    for (size_t i = completer->first; i < completer->desk->count; i += completer->stride) {
        completer->refused += complete(completer->api, completer->desk->kept[i], 500 + i) != 0;
    }
}

TEST(many_yields_completed_from_threads_come_once_each)
{
    const uint32_t workers = test_workers();
    struct api api;
    static struct desk desk;
    static struct client client;
    struct completer completers[3];
    start_with_desk(&api, workers, &desk);
    client_init(&client, ask_keep_many, ANSWERS_MOST);
    (void)api_submit(&api, &client_type, &client);
    tally_wait(&desk.kept_count, ANSWERS_MOST);
    for (size_t i = 0; i < COUNT_OF(completers); i++) {
        completers[i] = (struct completer){
            .api = &api, .desk = &desk, .first = i, .stride = COUNT_OF(completers)};
    }
    api_in_threads(COUNT_OF(completers), complete_every_nth, completers, sizeof completers[0]);
    tally_wait(&client.answered, ANSWERS_MOST);
    api_stop(&api);
    for (size_t i = 0; i < COUNT_OF(completers); i++) {
        assert_int_equal(completers[i].refused, 0);
    }
    assert_all_answered(&client, ANSWERS_MOST);
    for (size_t i = 0; i < ANSWERS_MOST; i++) {
        /* The handlers were called in the order of the yields. */
        assert_int_equal(client.answers[i].value, 500 + client.answers[i].tag);
    }
}

TEST(many_yields_of_all_kinds_come_once_each)
{
    const uint32_t workers = test_workers();
    struct api api;
    static struct desk desk;
    static struct client client;
    start_with_desk(&api, workers, &desk);
    client_init(&client, ask_mixed_many, ANSWERS_MOST);
    (void)api_submit(&api, &client_type, &client);
    tally_wait(&desk.kept_count, ANSWERS_MOST / 4);
    for (size_t i = desk.count; i-- > 0;) {
        assert_int_equal(complete(&api, desk.kept[i], 0), 0);
    }
    tally_wait(&client.answered, ANSWERS_MOST);
    api_stop(&api);
    assert_all_answered(&client, ANSWERS_MOST);
    for (uint64_t i = 0; i < ANSWERS_MOST; i++) {
        const struct answer *answer = &client.answers[i];
        const uint64_t values[] = {2 * answer->tag, answer->tag + 1, 0, 0};
        const int error = answer->tag % 4 == 3 ? SKUA_E_UNKNOWN_COMMAND : 0;
        assert_answer(answer, answer->tag, error, values[answer->tag % 4]);
    }
}

#define FEW 5

static int ask_few(struct client *client, skua_step *out)
{
    int error = 0;
    (void)client;
    for (uint64_t tag = 0; tag < FEW && error == 0; tag++) {
        error = skua_step_yield(out, KEEP_IT, tag, skua_payload_empty(QUESTION));
    }
    return error;
}

TEST(process_can_wait_for_all_of_several_yields)
{
    static const size_t orders[][FEW] = {
        {0, 1, 2, 3, 4}, {4, 3, 2, 1, 0}, {2, 0, 4, 1, 3}, {1, 3, 0, 2, 4}};
    for (size_t order = 0; order < COUNT_OF(orders); order++) {
        struct api api;
        struct desk desk;
        static struct client client;
        start_with_desk(&api, 2, &desk);
        client_init(&client, ask_few, FEW);
        const skua_pid pid = api_submit(&api, &client_type, &client);
        tally_wait(&desk.kept_count, FEW);
        for (size_t i = 0; i < FEW; i++) {
            assert_int_equal(complete(&api, desk.kept[orders[order][i]], i), 0);
            tally_wait(&client.answered, i + 1); /* one by one */
        }
        api_wait_end(&api, pid);
        api_stop(&api);
        assert_all_answered(&client, FEW);
        for (size_t i = 0; i < FEW; i++) {
            assert_answer(&client.answers[i], orders[order][i], 0, i);
        }
    }
}

TEST(process_can_wait_for_any_of_several_yields)
{
    for (size_t winner = 0; winner < FEW; winner++) {
        struct api api;
        struct desk desk;
        static struct client client;
        start_with_desk(&api, 2, &desk);
        client_init(&client, ask_few, 1);
        const skua_pid pid = api_submit(&api, &client_type, &client);
        tally_wait(&desk.kept_count, FEW);
        assert_int_equal(complete(&api, desk.kept[winner], 9), 0);
        api_wait_end(&api, pid);
        for (size_t i = 0; i < FEW; i++) {
            assert_int_equal(complete(&api, desk.kept[i], 10), SKUA_E_LATE);
        }
        assert_int_equal(api_stats(&api).late_completions, FEW);
        api_stop(&api);
        assert_one_answer(&client, winner, 0, 9);
    }
}

/* ---- what a process shows while it waits ---- */

static int ask_and_say_nothing(struct client *client, skua_step *out)
{
    return ask_keep(client, out);
}

static int ask_and_idle(struct client *client, skua_step *out)
{
    skua_step_idle(out);
    return ask_keep(client, out);
}

static int ask_and_wait(struct client *client, skua_step *out)
{
    const int error = ask_keep(client, out);
    skua_step_wait(out);
    return error;
}

static int say_wait(struct client *client, skua_step *out)
{
    (void)client;
    skua_step_wait(out);
    return 0;
}

static int say_idle(struct client *client, skua_step *out)
{
    (void)client;
    skua_step_idle(out);
    return 0;
}

/* First the state after a yield, then after a message during which nothing is asked for. */
static void check_shown_states(int (*ask)(struct client *client, skua_step *out),
                               enum skua_process_state after_yield,
                               int (*on_message)(struct client *client, skua_step *out),
                               enum skua_process_state after_message)
{
    struct api api;
    struct desk desk;
    static struct client client;
    skua_process_info info;
    start_with_desk(&api, 2, &desk);
    const skua_pid pid = start_asking(&api, &desk, &client, ask, 1);
    api_wait_state(&api, pid, after_yield);
    client.on_message = on_message;
    assert_int_equal(skua_message_send(api.runtime, pid, skua_payload_empty(0)), 0);
    api_wait_steps(&api, pid, 2);
    api_wait_state(&api, pid, after_message);
    assert_int_equal(skua_process_info_read(api.runtime, pid, &info), 0);
    assert_int_equal(info.steps, 2);
    assert_int_equal(info.state, after_message);
    /* A completion wakes it in any case. */
    assert_int_equal(complete(&api, desk.kept[0], 8), 0);
    tally_wait(&client.answered, 1);
    api_stop(&api);
    assert_one_answer(&client, 90, 0, 8);
    assert_int_equal(client.messages, 1);
}

TEST(process_with_yields_outstanding_shows_blocked_or_idle)
{
    check_shown_states(ask_and_say_nothing, SKUA_PROCESS_BLOCKED, NULL, SKUA_PROCESS_IDLE);
    check_shown_states(ask_and_idle, SKUA_PROCESS_IDLE, say_wait, SKUA_PROCESS_BLOCKED);
    check_shown_states(ask_and_wait, SKUA_PROCESS_BLOCKED, say_wait, SKUA_PROCESS_BLOCKED);
    check_shown_states(ask_and_wait, SKUA_PROCESS_BLOCKED, say_idle, SKUA_PROCESS_IDLE);
}

/* ---- completions at once and what else arrives ---- */

#define BUSY_PAUSE 50
#define BUSY_MOST  70

/* Yields a command that completes at once in every step. At one of them it stands still until
 * something else has been sent to it; that must come to it soon, although it is never without
 * events. */
struct busy_world {
    struct tally entered;
    struct tally released;
    uint64_t steps;
    uint64_t seen_at;
};

static int busy_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                     skua_step *out)
{
    struct busy_world *world = api_world(self);
    (void)ctx;
    world->steps++;
    for (size_t i = 0; i < count; i++) {
        if (events[i].type != SKUA_EVENT_COMPLETION) {
            world->seen_at = world->steps;
        }
    }
    if (world->seen_at != 0 || world->steps == BUSY_MOST) {
        skua_step_done(out, skua_payload_empty(0));
        return 0;
    }
    if (world->steps == BUSY_PAUSE) {
        tally_add(&world->entered, 1);
        tally_wait(&world->released, 1);
    }
    return skua_step_yield(out, DOUBLE_IT, 0, skua_payload_empty(0));
}

static const skua_process_type busy_type = {
    .name = "busy", .state_size = sizeof(void *), .init = api_init_world, .step = busy_step};

static void check_busy(int (*disturb)(skua_runtime *runtime, skua_pid pid))
{
    const uint32_t workers = test_workers();
    struct api api;
    struct desk desk;
    struct busy_world world = {.steps = 0};
    tally_init(&world.entered);
    tally_init(&world.released);
    start_with_desk(&api, workers, &desk);
    const skua_pid pid = api_submit(&api, &busy_type, &world);
    tally_wait(&world.entered, 1);
    assert_int_equal(disturb(api.runtime, pid), 0);
    tally_add(&world.released, 1);
    api_wait_live(&api, 0);
    api_stop(&api);
    assert_in_range(world.seen_at, BUSY_PAUSE + 1, BUSY_MOST);
}

static int disturb_by_message(skua_runtime *runtime, skua_pid pid)
{
    return skua_message_send(runtime, pid, skua_payload_empty(0));
}

static int disturb_by_cancel(skua_runtime *runtime, skua_pid pid)
{
    return skua_process_cancel(runtime, pid, ERROR_STEP);
}

TEST(completions_at_once_do_not_hold_up_messages)
{
    check_busy(disturb_by_message);
}

TEST(completions_at_once_do_not_hold_up_cancel_events)
{
    check_busy(disturb_by_cancel);
}

/* ---- steps that end the process ---- */

static int ask_and_fail(struct client *client, skua_step *out)
{
    int error = skua_step_yield(out, DOUBLE_IT, 0, tracked_payload(QUESTION, &client->items[0]));
    if (error == 0) {
        error = skua_step_yield(out, KEEP_IT, 1, tracked_payload(QUESTION, &client->items[1]));
    }
    return error != 0 ? error : ERROR_STEP;
}

static int ask_and_finish(struct client *client, skua_step *out)
{
    skua_step_done(out, skua_payload_empty(0));
    const int error = ask_and_fail(client, out);
    return error == ERROR_STEP ? 0 : error;
}

TEST(yields_of_a_failing_step_are_dropped)
{
    const uint32_t workers = test_workers();
    struct api api;
    struct desk desk;
    static struct client client;
    start_with_desk(&api, workers, &desk);
    client_init(&client, ask_and_fail, 1);
    assert_int_equal(api_run_process(&api, &client_type, &client).error, ERROR_STEP);
    api_stop(&api);
    assert_int_equal(desk.calls, 0);
    assert_drops(client.items, 2, 1);
}

TEST(yields_of_a_done_step_are_carried_out_unheard)
{
    const uint32_t workers = test_workers();
    struct api api;
    struct desk desk;
    static struct client client;
    start_with_desk(&api, workers, &desk);
    client_init(&client, ask_and_finish, 1);
    assert_int_equal(api_run_process(&api, &client_type, &client).error, 0);
    assert_int_equal(desk.calls, 2);
    assert_int_equal(complete(&api, desk.kept[0], 1), SKUA_E_LATE);
    assert_int_equal(api_stats(&api).late_completions, 1);
    api_stop(&api);
    assert_int_equal(client.count, 0);
    assert_drops(client.items, 2, 1);
}

/* ---- late, twice, forged ---- */

static int finish_now(struct client *client, skua_step *out)
{
    (void)client;
    skua_step_done(out, skua_payload_empty(0));
    return 0;
}

static void complete_late(const struct api *api, skua_completion completion)
{
    struct tracked item = {0};
    const uint64_t before = api_stats(api).late_completions;
    assert_int_equal(
        skua_command_complete(api->runtime, completion, 0, tracked_payload(ANSWER, &item)),
        SKUA_E_LATE);
    assert_drops(&item, 1, 1);
    assert_int_equal(api_stats(api).late_completions, before + 1);
}

TEST(completion_after_the_end_is_late)
{
    const uint32_t workers = test_workers();
    struct api api;
    struct desk desk;
    static struct client client;
    start_with_desk(&api, workers, &desk);
    skua_pid pid = start_asking(&api, &desk, &client, ask_keep, 1);
    client.on_message = finish_now;
    assert_int_equal(skua_message_send(api.runtime, pid, skua_payload_empty(0)), 0);
    api_wait_live(&api, 0);
    complete_late(&api, desk.kept[0]);
    pid = start_asking(&api, &desk, &client, ask_keep, 1);
    assert_int_equal(skua_process_terminate(api.runtime, pid), 0);
    api_wait_live(&api, 0);
    complete_late(&api, desk.kept[1]);
    api_stop(&api);
    assert_int_equal(client.count, 0);
}

/* Neither the place of the process nor that of the call may be mistaken for their next users. */
TEST(completion_after_the_end_does_not_reach_a_later_call)
{
    struct api api;
    struct desk desk;
    static struct client clients[2];
    desk_init(&desk);
    api_create(&api, (skua_runtime_config){.worker_count = 1, .process_limit = 1});
    register_handler(&api, KEEP_IT, keep_it, &desk);
    api_start(&api);
    const skua_pid first = start_asking(&api, &desk, &clients[0], ask_keep, 1);
    assert_int_equal(skua_process_terminate(api.runtime, first), 0);
    api_wait_live(&api, 0);
    const skua_pid second = start_asking(&api, &desk, &clients[1], ask_keep, 1);
    complete_late(&api, desk.kept[0]);
    /* The right of the first call with the name of the second process. */
    complete_late(&api, (skua_completion){.process = second, .call = desk.kept[0].call});
    assert_int_equal(complete(&api, desk.kept[1], 3), 0);
    tally_wait(&clients[1].answered, 1);
    api_stop(&api);
    assert_int_equal(clients[0].count, 0);
    assert_one_answer(&clients[1], 90, 0, 3);
}

/* What a process that ends takes back are the calls it still has, not the places of those it had.
 * */
TEST(end_of_a_process_leaves_the_calls_of_others_open)
{
    static const size_t orders[][FEW] = {
        {0, 1, 2, 3, 4}, {4, 3, 2, 1, 0}, {2, 0, 4, 1, 3}, {1, 3, 0, 2, 4}};
    for (size_t order = 0; order < COUNT_OF(orders); order++) {
        for (size_t completed = 0; completed <= FEW; completed++) {
            struct api api;
            struct desk desk;
            static struct client clients[2];
            start_with_desk(&api, 1, &desk);
            client_init(&clients[0], ask_few, FEW + 1); /* stays */
            const skua_pid first = api_submit(&api, &client_type, &clients[0]);
            tally_wait(&desk.kept_count, FEW);
            for (size_t i = 0; i < completed; i++) {
                assert_int_equal(complete(&api, desk.kept[orders[order][i]], 0), 0);
                tally_wait(&clients[0].answered, i + 1);
            }
            client_init(&clients[1], ask_few, FEW);
            (void)api_submit(&api, &client_type, &clients[1]);
            tally_wait(&desk.kept_count, 2 * FEW);
            assert_int_equal(skua_process_terminate(api.runtime, first), 0);
            api_wait_live(&api, 1);
            for (size_t i = 0; i < FEW; i++) {
                assert_int_equal(complete(&api, desk.kept[FEW + i], 0), 0);
            }
            tally_wait(&clients[1].answered, FEW);
            api_stop(&api);
            assert_all_answered(&clients[1], FEW);
        }
    }
}

static int leave_pending(void *arg, skua_command *command, skua_payload *result)
{
    (void)arg;
    (void)command;
    (void)result;
    return SKUA_PENDING;
}

static int ask_many_and_finish(struct client *client, skua_step *out)
{
    skua_step_done(out, skua_payload_empty(0));
    return ask_keep_many(client, out);
}

static int ask_many_and_fail(struct client *client, skua_step *out)
{
    const int error = ask_keep_many(client, out);
    return error != 0 ? error : ERROR_STEP;
}

TEST(yields_without_an_answer_give_their_memory_back)
{
    struct api api;
    static struct client client;
    uint64_t bytes = 0;
    api_create(&api, (skua_runtime_config){.worker_count = 1});
    register_handler(&api, KEEP_IT, leave_pending, NULL);
    api_start(&api);
    /* A tenth of what would be needed if nothing came back, then the rest. */
    for (unsigned round = 0; round < 100; round++) {
        client_init(&client, round % 2 == 0 ? ask_many_and_finish : ask_many_and_fail, 0);
        (void)api_run_process(&api, &client_type, &client);
        if (round == 10) {
            bytes = counting_allocator_live_bytes(&api.memory);
        }
    }
    assert_int_equal(counting_allocator_live_bytes(&api.memory), bytes);
    api_stop(&api);
}

TEST(completion_a_second_time_is_late)
{
    const uint32_t workers = test_workers();
    struct api api;
    struct desk desk;
    static struct client client;
    start_with_desk(&api, workers, &desk);
    const skua_pid pid = start_asking(&api, &desk, &client, ask_keep, 2);
    assert_int_equal(complete(&api, desk.kept[0], 1), 0);
    complete_late(&api, desk.kept[0]);
    tally_wait(&client.answered, 1);
    complete_late(&api, desk.kept[0]);
    api_wait_state(&api, pid, SKUA_PROCESS_IDLE);
    skua_process_info info;
    assert_int_equal(skua_process_info_read(api.runtime, pid, &info), 0);
    assert_int_equal(info.mailbox_length, 0); /* a completion is no message */
    api_stop(&api);
    assert_one_answer(&client, 90, 0, 1);
}

TEST(completion_forged_changes_nothing)
{
    struct api api;
    struct api other;
    struct desk desk;
    static struct client client;
    struct tracked items[2] = {0};
    start_with_desk(&api, 2, &desk);
    api_run(&other, 1);
    (void)start_asking(&api, &desk, &client, ask_keep, 2);
    const skua_completion real = desk.kept[0];
    complete_late(&api, (skua_completion){.call = 0});
    complete_late(&api, (skua_completion){.call = real.call});
    complete_late(&api, (skua_completion){.process = real.process});
    for (unsigned bit = 0; bit < 64; bit++) {
        complete_late(&api, (skua_completion){.process = real.process,
                                              .call = real.call ^ UINT64_C(1) << bit});
    }
    assert_int_equal(
        skua_command_complete(other.runtime, real, 0, tracked_payload(ANSWER, &items[0])),
        SKUA_E_FOREIGN_PID);
    assert_int_equal(
        skua_command_complete(api.runtime, real, 1, tracked_payload(ANSWER, &items[1])),
        SKUA_E_INVALID);
    assert_drops(items, COUNT_OF(items), 1);
    assert_int_equal(complete(&api, real, 4), 0);
    tally_wait(&client.answered, 1);
    api_stop(&api);
    api_stop(&other);
    assert_one_answer(&client, 90, 0, 4);
}

/* ---- races ---- */

#define RACE_ROUNDS  200
#define RACE_THREADS 3

struct completion_race {
    struct api api;
    struct desk desk;
    struct client client;
    pthread_barrier_t round;
    skua_pid pid;
    bool terminate; /* the first racer ends the process before it tries */
    atomic_uint won;
    atomic_uint late;
    atomic_uint odd_errors;
    struct tracked items[RACE_ROUNDS][RACE_THREADS];
};

struct completion_racer {
    struct completion_race *race;
    size_t number;
};

static void race_to_complete(struct completion_race *race, size_t round, size_t number)
{
    switch (skua_command_complete(race->api.runtime, race->desk.kept[round], 0,
                                  tracked_payload(ANSWER, &race->items[round][number]))) {
    case 0:
        (void)atomic_fetch_add(&race->won, 1);
        break;
    case SKUA_E_LATE:
        (void)atomic_fetch_add(&race->late, 1);
        break;
    default:
        (void)atomic_fetch_add(&race->odd_errors, 1);
        break;
    }
}

/* The first racer prepares each round. It does not assert, so it submits by hand. */
static void prepare_round(struct completion_race *race, size_t round)
{
    skua_payload input = api_world_payload(&race->client);
    client_init(&race->client, ask_keep, 1);
    if (skua_process_submit(race->api.runtime, &client_type, NULL, &input, 1, &race->pid) != 0) {
        (void)atomic_fetch_add(&race->odd_errors, 1);
        return;
    }
    tally_wait(&race->desk.kept_count, round + 1);
}

static void race_rounds(void *arg)
{
    const struct completion_racer *racer = arg;
    struct completion_race *race = racer->race;
    for (size_t round = 0; round < RACE_ROUNDS; round++) {
        if (racer->number == 0) {
            prepare_round(race, round);
        }
        (void)pthread_barrier_wait(&race->round);
        if (race->terminate && racer->number == 0) {
            (void)skua_process_terminate(race->api.runtime, race->pid); /* it may be done */
        }
        race_to_complete(race, round, racer->number);
        (void)pthread_barrier_wait(&race->round);
        if (racer->number == 0) {
            api_wait_live(&race->api, 0);
        }
    }
}

static void run_race(bool terminate, uint32_t workers)
{
    struct completion_race *race = calloc(1, sizeof *race);
    assert_non_null(race);
    struct completion_racer racers[RACE_THREADS];
    race->terminate = terminate;
    start_with_desk(&race->api, workers, &race->desk);
    assert_int_equal(pthread_barrier_init(&race->round, NULL, RACE_THREADS), 0);
    for (size_t i = 0; i < RACE_THREADS; i++) {
        racers[i] = (struct completion_racer){.race = race, .number = i};
    }
    api_in_threads(RACE_THREADS, race_rounds, racers, sizeof racers[0]);
    assert_int_equal(api_stats(&race->api).late_completions, race->late);
    api_stop(&race->api);
    assert_int_equal(race->odd_errors, 0);
    assert_drops(&race->items[0][0], (size_t)RACE_ROUNDS * RACE_THREADS, 1);
    assert_int_equal(race->won + race->late, RACE_ROUNDS * RACE_THREADS);
    assert_true(terminate ? race->won <= RACE_ROUNDS : race->won == RACE_ROUNDS);
    assert_int_equal(pthread_barrier_destroy(&race->round), 0);
    free(race);
}

TEST(completions_from_several_threads_are_accepted_once)
{
    const uint32_t workers = test_workers();
    run_race(false, workers);
}

TEST(completion_of_a_process_that_ends_drops_its_result_once)
{
    const uint32_t workers = test_workers();
    run_race(true, workers);
}

/* ---- what a handler may do ---- */

struct busy_handler {
    int errors[6];
    skua_pid spawned;
    struct tracked item;
    struct tally called;
};

static int use_everything(void *arg, skua_command *command, skua_payload *result)
{
    struct busy_handler *busy = arg;
    skua_runtime *runtime = command->runtime;
    const skua_pid asker = command->completion.process;
    skua_payload input = tracked_payload(0, &busy->item);
    (void)result;
    busy->errors[0] = skua_process_submit(runtime, &api_idler, NULL, NULL, 0, &busy->spawned);
    busy->errors[1] = skua_message_send(runtime, busy->spawned, skua_payload_empty(0));
    busy->errors[2] = skua_message_send(runtime, asker, skua_payload_empty(0));
    busy->errors[3] = skua_process_wait(runtime, asker, SKUA_FOREVER, NULL);
    busy->errors[4] = skua_process_run(runtime, &api_idler, NULL, &input, 1, NULL);
    busy->errors[5] = skua_runtime_stop(runtime, 0);
    tally_add(&busy->called, 1);
    return 0;
}

TEST(handler_may_call_what_does_not_wait)
{
    const uint32_t workers = test_workers();
    struct api api;
    struct busy_handler busy = {.spawned = {0}};
    static struct client client;
    tally_init(&busy.called);
    api_create(&api, (skua_runtime_config){.worker_count = workers});
    register_handler(&api, KEEP_IT, use_everything, &busy);
    api_start(&api);
    client_init(&client, ask_keep, 2);
    (void)api_submit(&api, &client_type, &client);
    tally_wait(&busy.called, 1);
    tally_wait(&client.answered, 1);
    assert_int_equal(skua_process_cancel(api.runtime, busy.spawned, 0), 0);
    api_wait_end(&api, busy.spawned);
    api_stop(&api);
    assert_int_equal(client.count, 1);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(busy.errors[i], 0);
        assert_int_equal(busy.errors[i + 3], SKUA_E_INSIDE_STEP);
    }
    assert_drops(&busy.item, 1, 1);
}

/* ---- the registry ---- */

/* Where the ids that have a place of their own end, and far beyond; in no order. */
static const uint32_t some_ids[] = {70000, 0,    256,  SKUA_COMMAND_RESERVED - 1, 255, 300, 257,
                                    128,   5000, 69999};
static const uint32_t no_ids[] = {
    1, 127, 254, 258, 299, 301, 4999, 70001, SKUA_COMMAND_RESERVED - 2};

static int answer_id(void *arg, skua_command *command, skua_payload *result)
{
    const uint32_t *id = arg;
    *result = skua_payload_u64(ANSWER, *id == command->id ? command->id : 1);
    return 0;
}

static int ask_ids(struct client *client, skua_step *out)
{
    int error = 0;
    (void)client;
    for (size_t i = 0; i < COUNT_OF(some_ids) && error == 0; i++) {
        error = skua_step_yield(out, some_ids[i], i, skua_payload_empty(0));
    }
    for (size_t i = 0; i < COUNT_OF(no_ids) && error == 0; i++) {
        error = skua_step_yield(out, no_ids[i], COUNT_OF(some_ids) + i, skua_payload_empty(0));
    }
    return error;
}

TEST(command_ids_of_all_sizes_find_their_handlers)
{
    struct api api;
    static struct client client;
    static uint32_t args[COUNT_OF(some_ids)];
    api_create(&api, (skua_runtime_config){.worker_count = 1});
    for (size_t i = 0; i < COUNT_OF(some_ids); i++) {
        args[i] = some_ids[i];
        register_handler(&api, some_ids[i], answer_id, &args[i]);
    }
    api_start(&api);
    client_init(&client, ask_ids, COUNT_OF(some_ids) + COUNT_OF(no_ids));
    assert_int_equal(api_run_process(&api, &client_type, &client).error, 0);
    api_stop(&api);
    for (size_t i = 0; i < COUNT_OF(some_ids); i++) {
        assert_answer(&client.answers[i], i, 0, some_ids[i]);
    }
    for (size_t i = COUNT_OF(some_ids); i < client.count; i++) {
        assert_answer(&client.answers[i], i, SKUA_E_UNKNOWN_COMMAND, 0);
    }
}

TEST(register_of_a_taken_id_is_refused)
{
    struct api api;
    struct desk desk;
    static struct client client;
    const skua_handler second = {.name = "second", .run = fail_it};
    desk_init(&desk);
    api_create(&api, (skua_runtime_config){.worker_count = 1});
    static const uint32_t ids[] = {DOUBLE_IT, 255, 256, 70000};
    for (size_t i = 0; i < COUNT_OF(ids); i++) {
        register_handler(&api, ids[i], double_it, &desk);
        assert_int_equal(skua_command_register(api.runtime, ids[i], &second),
                         SKUA_E_COMMAND_EXISTS);
    }
    api_start(&api);
    client_init(&client, ask_double, 1);
    assert_int_equal(api_run_process(&api, &client_type, &client).error, 0);
    api_stop(&api);
    assert_one_answer(&client, 77, 0, 42);
}

TEST(register_after_start_is_refused)
{
    struct api api;
    struct desk desk;
    static struct client client;
    const skua_handler late = {.name = "late", .run = fail_it};
    start_with_desk(&api, 1, &desk);
    assert_int_equal(skua_command_register(api.runtime, UNKNOWN, &late), SKUA_E_FROZEN);
    assert_int_equal(skua_command_register(api.runtime, 70000, &late), SKUA_E_FROZEN);
    assert_int_equal(skua_command_register(api.runtime, DOUBLE_IT, &late), SKUA_E_FROZEN);
    client_init(&client, ask_unknown, 1);
    assert_int_equal(api_run_process(&api, &client_type, &client).error, 0);
    api_stop(&api);
    assert_one_answer(&client, 80, SKUA_E_UNKNOWN_COMMAND, 0);
}
