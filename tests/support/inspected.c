/* SPDX-License-Identifier: MIT */
#include "inspected.h"

#include <inttypes.h>
#include <stdio.h>

#include "runtime/runtime.h"

#define REQUEST_SIZE 1250

static void clear_environment(void)
{
    assert_int_equal(unsetenv("SKUA_INSPECT"), 0);
    assert_int_equal(unsetenv("SKUA_DEBUG"), 0);
}

void inspected_prepare(void)
{
    scratch_open();
    clear_environment();
    test_at_end(clear_environment);
}

void inspected_open(skua_runtime_config config)
{
    inspected_prepare();
    config.inspect = true;
    world_open_with(config);
}

bool inspected_is_traced(void)
{
    return load_acquire(&world_runtime()->sched.tracer.active) != NULL;
}

/* ---- clients ---- */

struct listed {
    struct inspect_client client; /* first, so that one leads to the other */
    struct listed *next;
    bool is_open;
};

static struct listed *clients; /* of the test with this number */
static uint64_t clients_number;

static void close_clients(void)
{
    for (struct listed *listed = clients; listed != NULL; listed = listed->next) {
        client_close(&listed->client);
    }
    clients = NULL;
}

struct inspect_client *client_open(void)
{
    if (clients_number != test_number) {
        clients_number = test_number;
        clients = NULL;
        test_at_end(close_clients);
    }
    struct listed *listed = test_alloc(sizeof *listed);
    *listed = (struct listed){.next = clients, .is_open = true};
    clients = listed;
    inspect_open(&listed->client, world_runtime());
    return &listed->client;
}

void client_close(struct inspect_client *client)
{
    struct listed *listed = (struct listed *)client;
    if (listed->is_open) {
        listed->is_open = false;
        inspect_close(client);
    }
}

static void write_request(char *request, const char *format, va_list arguments)
{
    const int length = vsnprintf(request, REQUEST_SIZE, format, arguments);
    assert_in_range(length, 0, REQUEST_SIZE - 1);
}

void client_ask(struct inspect_client *client, const char *format, ...)
{
    char request[REQUEST_SIZE];
    va_list arguments;
    va_start(arguments, format);
    write_request(request, format, arguments);
    va_end(arguments);
    inspect_ask(client, request);
}

void client_ask_wrong(struct inspect_client *client, int error, const char *format, ...)
{
    char request[REQUEST_SIZE];
    va_list arguments;
    va_start(arguments, format);
    write_request(request, format, arguments);
    va_end(arguments);
    inspect_ask_wrong(client, request, error);
}

const struct inspect_line *client_describe(struct inspect_client *client, const char *request,
                                           skua_pid pid)
{
    const struct inspect_line *line;
    do {
        client_ask(client, "%s %" PRIx64, request, pid.bits);
        assert_int_equal(inspect_count(client, "described"), 1);
        line = inspect_find(client, "described", 0);
        assert_true(skua_pid_equal(inspect_pid(line, 1), pid));
    } while (strcmp(line->fields[DESCRIBED_ANSWER], "silent") == 0 ||
             (line->count == DESCRIBED_TAG && inspect_number(line, DESCRIBED_YIELDS) > 0));
    return line;
}

size_t client_walk(struct inspect_client *client, const char *rest,
                   void (*look)(void *arg, const struct inspect_client *page), void *arg)
{
    uint64_t after = 0;
    size_t total = 0;
    const struct inspect_line *more;
    do {
        client_ask(client, "processes pid %016" PRIx64 " %s", after, rest);
        total += inspect_count(client, "process");
        assert_int_equal(inspect_count(client, "seen"), 1);
        if (look != NULL) {
            look(arg, client);
        }
        more = inspect_find(client, "more", 0);
        after = more != NULL ? inspect_pid(more, 1).bits : after;
    } while (more != NULL);
    return total;
}
