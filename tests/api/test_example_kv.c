/* SPDX-License-Identifier: MIT */
/* The server of examples/12_kv in the simulator: two clients on other hosts send what a seed makes
 * up, several commands at once, and know what each has to be answered. */
#include "example_kv.h"

#include <inttypes.h>
#include <stdarg.h>

#define KEYS        8
#define ROUNDS      40
#define REQUEST_MAX 4096

/* A client has its own keys, which nobody else changes. */
struct model {
    char name; /* its keys begin with this */
    int64_t values[KEYS];
    bool exists[KEYS];
    char request[REQUEST_MAX], reply[REQUEST_MAX];
};

static struct model models[2];

__attribute__((format(printf, 2, 3))) static void say(char *text, const char *format, ...)
{
    va_list values;
    const size_t length = strlen(text);
    va_start(values, format);
    (void)vsnprintf(text + length, REQUEST_MAX - length, format, values);
    va_end(values);
}

static void say_value(const struct model *model, char *text, size_t key)
{
    char digits[24];
    const int length = snprintf(digits, sizeof digits, "%" PRId64, model->values[key]);
    if (model->exists[key]) {
        say(text, "$%d\r\n%s\r\n", length, digits);
    } else {
        say(text, "$-1\r\n");
    }
}

static void set_key(struct model *model, size_t key, int64_t value)
{
    model->values[key] = value;
    model->exists[key] = true;
    say(model->request, "*3\r\n$3\r\nSET\r\n$2\r\n%c%zu\r\n", model->name, key);
    say_value(model, model->request, key);
    say(model->reply, "+OK\r\n");
}

static void increment_key(struct model *model, size_t key)
{
    model->values[key] = model->exists[key] ? model->values[key] + 1 : 1;
    model->exists[key] = true;
    say(model->request, "*2\r\n$4\r\nINCR\r\n$2\r\n%c%zu\r\n", model->name, key);
    say(model->reply, ":%" PRId64 "\r\n", model->values[key]);
}

static void delete_keys(struct model *model, size_t first, size_t second)
{
    const int deleted = model->exists[first] + (second != first && model->exists[second]);
    model->exists[first] = model->exists[second] = false;
    say(model->request, "*3\r\n$3\r\nDEL\r\n$2\r\n%c%zu\r\n$2\r\n%c%zu\r\n", model->name, first,
        model->name, second);
    say(model->reply, ":%d\r\n", deleted);
}

static void get_keys(struct model *model)
{
    say(model->request, "*%d\r\n$4\r\nMGET\r\n", KEYS + 1);
    say(model->reply, "*%d\r\n", KEYS);
    for (size_t key = 0; key < KEYS; key++) {
        say(model->request, "$2\r\n%c%zu\r\n", model->name, key);
        say_value(model, model->reply, key);
    }
}

static void make_up_command(struct model *model, skua_context *ctx)
{
    const size_t key = skua_random(ctx) % KEYS, other = skua_random(ctx) % KEYS;
    const uint64_t choice = skua_random(ctx) % 8;
    if (choice < 3) {
        set_key(model, key, (int64_t)(skua_random(ctx) % 1000));
    } else if (choice < 5) {
        increment_key(model, key);
    } else if (choice < 6) {
        delete_keys(model, key, other);
    } else {
        get_keys(model);
    }
}

/* Sends a few commands in two pieces, and compares what comes back. */
static int talk(struct errand *errand, skua_context *ctx, skua_socket socket)
{
    struct model *model = errand->arg;
    skua_payload data, pieces[2];
    model->request[0] = model->reply[0] = '\0';
    for (uint64_t i = 1 + skua_random(ctx) % 6; i > 0; i--) {
        make_up_command(model, ctx);
    }
    const size_t size = strlen(model->request), cut = skua_random(ctx) % (size + 1);
    int error = 0;
    for (int i = 0; i < 2 && error == 0; i++) {
        error = skua_payload_copy(world_runtime(), 0, model->request + (i == 0 ? 0 : cut),
                                  i == 0 ? cut : size - cut, &pieces[i]);
        error = error != 0 ? error : skua_task_write(ctx, socket, pieces[i], SKUA_FOREVER);
    }
    error = error != 0 ? error
                       : skua_task_read_exactly(ctx, socket, strlen(model->reply),
                                                100 * SKUA_SECOND, &data);
    if (error == 0) {
        const skua_bytes got = {skua_payload_data(&data), skua_payload_size(&data)};
        CHECK(errand, skua_bytes_equal(got, (skua_bytes){model->reply, got.size}));
        error = got.size == strlen(model->reply) ? 0 : SKUA_E_RESET;
        skua_payload_drop(&data);
    }
    return error;
}

static int talks_for_a_while(struct errand *errand, skua_context *ctx)
{
    skua_socket socket;
    int error = connect_anyhow(ctx, EXAMPLE_KV_ADDRESS, &socket);
    for (int i = 0; i < ROUNDS && error == 0; i++) {
        error = talk(errand, ctx, socket);
        errand->number++;
    }
    return error;
}

static void start_all(struct errand *clients[2])
{
    example_kv_start(3);
    for (uint32_t i = 0; i < 2; i++) {
        models[i] = (struct model){.name = (char)('a' + i)};
        clients[i] = host_start_with(2 + i, talks_for_a_while, &models[i]);
    }
}

static skua_sim_faults delays(void)
{
    return (skua_sim_faults){
        .message_delay = SIM_SOMETIMES,
        .spurious_wake = SIM_SOMETIMES,
        .network = {.window = 200, .short_read = SIM_SOMETIMES, .short_write = SIM_SOMETIMES},
    };
}

TEST(every_answer_is_right_however_late_and_split_it_is)
{
    FOR_ROUNDS (seed, 30) {
        struct errand *clients[2];
        world_open_sim(seed, delays());
        start_all(clients);
        assert_ends(clients[0], 0);
        assert_ends(clients[1], 0);
    }
}

/* Then connections break and processes are killed: whatever is answered is right, and nothing is
 * left behind, which the end of the world checks. */
TEST(what_is_answered_is_right_whatever_breaks)
{
    uint64_t rounds = 0;
    FOR_ROUNDS (seed, 100) {
        struct errand *clients[2];
        skua_sim_faults faults = delays();
        faults.network.reset = SIM_ALWAYS / 500;
        faults.process_kill = seed % 2 == 0 ? SIM_ALWAYS / 2000 : 0;
        faults.no_memory = seed % 3 == 0 ? SIM_ALWAYS / 300 : 0;
        world_open_sim(seed, SIM_NO_FAULTS);
        start_all(clients);
        assert_int_equal(skua_sim_faults_set(world_runtime(), &faults), 0);
        errands_go_on(200 * SKUA_SECOND);
        rounds += clients[0]->number + clients[1]->number;
    }
    assert_in_range(rounds, 100, 100 * 2 * ROUNDS);
}
