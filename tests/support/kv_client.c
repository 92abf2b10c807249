/* SPDX-License-Identifier: MIT */
#include "kv_client.h"

#include <skua/task.h>

#define BATCH_MAX   5  /* commands sent at once */
#define OWED_MAX    10 /* answers that it waits for */
#define ANSWERS_MAX 4096
#define KEYS_MAX    2  /* of one command */
#define FAILURES    40 /* then it gives up */
#define LIFE_MAX    3  /* seconds until a key expires */

struct kv_client {
    const char *address;
    struct kv_history *history;
    uint32_t number;
    uint32_t commands; /* how many it still sends */
};

/* A command that has not been answered: some operations with the same verb. */
struct command {
    struct kv_operation *operations[KEYS_MAX];
    size_t count;
};

/* A connection of a client. */
struct talk {
    struct kv_client *client;
    skua_context *ctx;
    skua_socket socket;
    uint64_t number;
    struct command owed[OWED_MAX];
    size_t owed_count;
    char answers[ANSWERS_MAX]; /* that have not all come */
    size_t answers_size;
};

static uint32_t choose(skua_context *ctx, uint32_t bound)
{
    return (uint32_t)(skua_random(ctx) % bound);
}

/* ---- asking ---- */

/* Most of what is asked of a key is for the same kind of value, or little would be answered but
 * that it is of another kind. */
static uint32_t choose_key(skua_context *ctx, enum kv_verb verb)
{
    static const uint32_t favourites[KV_VERBS] = {
        [KV_LPUSH] = 1, [KV_RPUSH] = 1, [KV_LPOP] = 1,   [KV_LRANGE] = 1,
        [KV_HSET] = 2,  [KV_HGET] = 2,  [KV_HGETALL] = 2};
    const bool is_for_all = verb == KV_DEL || verb == KV_EXPIRE || verb == KV_TTL;
    return is_for_all || choose(ctx, 8) == 0 ? choose(ctx, KV_KEYS) : favourites[verb];
}

static struct kv_operation make_up(struct talk *talk, enum kv_verb verb)
{
    skua_context *ctx = talk->ctx;
    return (struct kv_operation){
        .verb = verb,
        .key = choose_key(ctx, verb),
        .field = choose(ctx, KV_FIELDS),
        .number = verb == KV_LRANGE ? choose(ctx, 10) : 100 + choose(ctx, 900),
        .seconds = choose(ctx, LIFE_MAX + 1),
        .client = talk->client->number,
        .connection = talk->number,
    };
}

static void ask(struct talk *talk, struct kv_text *text)
{
    talk->client->history->time_ns = skua_now(talk->ctx);
    const enum kv_verb verb = (enum kv_verb)choose(talk->ctx, KV_VERBS);
    const bool has_many = verb == KV_MGET || (verb == KV_SET && choose(talk->ctx, 3) == 0);
    struct command *command = &talk->owed[talk->owed_count];
    struct kv_operation operations[KEYS_MAX];
    *command = (struct command){.count = has_many ? KEYS_MAX : 1};
    for (size_t i = 0; i < command->count; i++) {
        operations[i] = make_up(talk, verb);
        command->operations[i] = kv_invoke(talk->client->history, operations[i]);
        if (command->operations[i] == NULL) {
            talk->client->commands = 0; /* there is no more room */
            return;
        }
    }
    kv_request(text, operations, command->count);
    talk->owed_count++;
    talk->client->commands--;
}

/* Some commands in one payload, or in two. */
static int ask_some(struct talk *talk)
{
    struct kv_text text;
    text.length = 0;
    for (uint32_t i = choose(talk->ctx, BATCH_MAX) + 1;
         i > 0 && talk->owed_count < OWED_MAX && talk->client->commands > 0; i--) {
        ask(talk, &text);
    }
    const size_t cut = choose(talk->ctx, 2) == 0 ? 0 : choose(talk->ctx, (uint32_t)text.length + 1);
    const size_t ends[] = {cut, text.length};
    size_t begin = 0;
    int error = 0;
    for (size_t i = 0; i < COUNT_OF(ends) && error == 0; i++) {
        skua_payload piece;
        error = skua_payload_copy(world_runtime(), 0, text.bytes + begin, ends[i] - begin, &piece);
        error = error != 0 ? error : skua_socket_write(talk->ctx, talk->socket, piece);
        begin = ends[i];
    }
    return error;
}

/* ---- being answered ---- */

/* The size of the answer at the beginning of some bytes; 0 if it has not all come. */
static size_t measure(skua_bytes bytes)
{
    const skua_bytes all = bytes;
    skua_bytes line;
    int64_t number = 0;
    if (!skua_bytes_cut_line(&bytes, &line) || line.size == 0) {
        return 0;
    }
    const bool has_number =
        skua_bytes_to_number((skua_bytes){line.data + 1, line.size - 1}, &number) == 0;
    if (line.data[0] == '$' && has_number && number >= 0) {
        const size_t size = (size_t)(bytes.data - all.data) + (size_t)number + 2;
        return size <= all.size ? size : 0;
    }
    for (int64_t i = 0; i < number && line.data[0] == '*'; i++) {
        const size_t size = measure(bytes);
        if (size == 0) {
            return 0;
        }
        bytes = (skua_bytes){bytes.data + size, bytes.size - size};
    }
    return (size_t)(bytes.data - all.data);
}

/* The answer to several is one for all, or a list. */
static void answer(struct talk *talk, const struct command *command, skua_bytes answer)
{
    skua_bytes head;
    const bool is_list = command->operations[0]->verb == KV_MGET;
    if (is_list) {
        (void)skua_bytes_cut_line(&answer, &head);
    }
    for (size_t i = 0; i < command->count; i++) {
        const size_t size = is_list ? measure(answer) : answer.size;
        kv_answer(talk->client->history, command->operations[i], (skua_bytes){answer.data, size});
        answer = is_list ? (skua_bytes){answer.data + size, answer.size - size} : answer;
    }
}

static int take_answers(struct talk *talk)
{
    size_t done = 0;
    size_t size;
    while ((size = measure((skua_bytes){talk->answers + done, talk->answers_size - done})) > 0) {
        if (talk->owed_count == 0) {
            talk->client->history->has_surplus = true;
            return SKUA_E_INVALID;
        }
        answer(talk, &talk->owed[0], (skua_bytes){talk->answers + done, size});
        memmove(&talk->owed[0], &talk->owed[1], --talk->owed_count * sizeof talk->owed[0]);
        done += size;
    }
    talk->answers_size -= done;
    memmove(talk->answers, talk->answers + done, talk->answers_size);
    return 0;
}

static int read_some(struct talk *talk)
{
    static const uint64_t patience[] = {10 * SKUA_MILLISECOND, SKUA_SECOND, 10 * SKUA_SECOND};
    skua_payload data;
    int error = skua_task_read(talk->ctx, talk->socket, ANSWERS_MAX - talk->answers_size,
                               patience[choose(talk->ctx, COUNT_OF(patience))], &data);
    if (error != 0) {
        return error;
    }
    const size_t size = skua_payload_size(&data);
    if (size > 0) {
        memcpy(talk->answers + talk->answers_size, skua_payload_data(&data), size);
    }
    talk->answers_size += size;
    talk->client->history->time_ns = skua_now(talk->ctx);
    skua_payload_drop(&data);
    return size == 0 ? SKUA_E_RESET : take_answers(talk);
}

/* ---- clients ---- */

static int go_on_talking(struct talk *talk)
{
    int error = 0;
    while (error == 0 && (talk->client->commands > 0 || talk->owed_count > 0)) {
        if (choose(talk->ctx, 12) == 0) { /* meanwhile keys expire */
            error =
                skua_task_sleep(talk->ctx, choose(talk->ctx, LIFE_MAX * 1000) * SKUA_MILLISECOND);
        }
        const bool asks = talk->client->commands > 0 && talk->owed_count < OWED_MAX &&
                          (talk->owed_count == 0 || choose(talk->ctx, 3) == 0);
        error = error != 0 ? error : asks ? ask_some(talk) : read_some(talk);
    }
    return error;
}

static int asks_for_a_while(struct errand *errand, skua_context *ctx)
{
    struct kv_client *client = errand->arg;
    int error = SKUA_E_REFUSED;
    for (int i = 0; i < FAILURES && error != 0 && error != SKUA_E_CANCELLED; i++) {
        struct talk talk = {.client = client, .ctx = ctx};
        error = skua_task_connect(ctx, client->address, NULL, SKUA_SECOND, &talk.socket);
        if (error != 0) {
            (void)skua_task_sleep(ctx, SKUA_MILLISECOND);
            continue;
        }
        talk.number = ++client->history->connections;
        error = go_on_talking(&talk);
        (void)skua_socket_close(ctx, talk.socket);
    }
    return 0;
}

static bool is_victim(void *type_name, const skua_process_snapshot *process)
{
    return strcmp(process->type_name, type_name) == 0;
}

/* A server without command handlers and blocking pools has no occasion for handler_error and
 * slow_completion. */
static skua_sim_faults faults_of(uint64_t seed, const char *victims)
{
    const uint32_t rates[] = {0, SIM_ALWAYS / 40, SIM_ALWAYS / 150, SIM_ALWAYS / 150};
    const uint32_t rate = rates[seed % COUNT_OF(rates)];
    return (skua_sim_faults){
        .message_delay = SIM_SOMETIMES / 2,
        .spurious_wake = SIM_SOMETIMES / 2,
        .no_memory = seed % 2 == 1 ? 4 * rate : 0,
        .process_kill = seed % 3 == 0 ? 0 : rate,
        .may_kill = is_victim,
        .may_kill_arg = (void *)(uintptr_t)victims,
        .network = {.window = 50 + (uint32_t)(seed * 7919 % 500),
                    .connect_refused = 10 * rate,
                    .connect_delay = SIM_SOMETIMES,
                    .accept_delay = SIM_SOMETIMES,
                    .no_descriptors = 5 * rate,
                    .short_read = SIM_SOMETIMES,
                    .short_write = SIM_SOMETIMES,
                    .reset = rate,
                    .silent_drop = rate / 2,
                    .eof_late = SIM_SOMETIMES,
                    .clog = 2 * rate,
                    .partition = rate},
    };
}

void kv_play(struct kv_history *history, const char *address, const char *victims, uint64_t seed)
{
    struct kv_client clients[KV_CLIENTS];
    struct errand *errands[KV_CLIENTS];
    const skua_sim_faults faults = faults_of(seed, victims);
    memset(history, 0, sizeof *history);
    errands_go_on(SKUA_MILLISECOND); /* the server listens */
    for (uint32_t i = 0; i < KV_CLIENTS; i++) {
        clients[i] = (struct kv_client){
            .address = address, .history = history, .number = i + 1, .commands = KV_COMMANDS};
        errands[i] = host_start_with(2 + i, asks_for_a_while, &clients[i]);
    }
    assert_int_equal(skua_sim_faults_set(world_runtime(), &faults), 0);
    for (uint32_t i = 0; i < KV_CLIENTS; i++) {
        assert_ends(errands[i], 0);
    }
}
