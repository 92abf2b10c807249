/* SPDX-License-Identifier: MIT */
/* A server that redis-cli can talk to. The keys are spread over shards, one for each worker; a task
 * for each client reads, and writes the answers.
 *
 *   12_kv [PORT]      on the loopback address; default: 6379, 0 picks one
 *
 * What a client has sent at once is a batch: the bytes, how far they have been carried out, and the
 * answers so far. The batch travels: whoever has it carries out one command after the other, and
 * passes it on when it comes to a key of another shard; in the end it is back at its connection,
 * which writes all answers at once. So nothing is shared and nothing locked, many commands for one
 * shard cost one call, and the commands of a client happen in their order. (One with several keys
 * visits shard after shard: MSET is not atomic, as it is in Redis.)
 *
 * Takes time and chance from its context only, so it also runs in the simulator: define KV_NO_MAIN
 * and include this file. */
#include <inttypes.h>
#include <skua/skua.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS_MAX  1024                 /* of a command */
#define BYTES_MAX  ((int64_t)512 << 20) /* of a word */
#define BUCKETS    ((size_t)1 << 18)    /* of a shard */
#define SHARDS_MAX 16
#define HOPS_MAX   14                  /* how often a call can be forwarded */
#define BEHIND_MAX 10000               /* messages that may wait for a subscriber */
#define UNREAD_MAX ((size_t)128 << 10) /* bytes of answers before more is read */

static const skua_bytes nil = {"$-1\r\n", 5}, nothing = {"", 0};

/* ---- what is kept ---- */

enum kind { STRING, LIST, HASH, ANY, CHANNEL, NONE }; /* the last two are not among the keys */

/* A key and its value. Both are kept as they come and are answered, as bulk strings, that is
 * "$3\r\nabc\r\n", one after the other. That is short, and quick for lists of thousands and hashes
 * of dozens. A channel has PIDs instead. */
struct item {
    struct item *next;      /* in its bucket */
    uint64_t hash, expires; /* 0: never */
    enum kind kind;
    char *memory; /* of the text */
    size_t room, count;
    skua_bytes text, key; /* the key lies behind this */
};

static void *need(void *memory)
{
    if (memory == NULL) {
        abort(); /* as Redis does */
    }
    return memory;
}

static void drop(struct item **link)
{
    struct item *item = *link;
    *link = item->next;
    free(item->memory);
    free(item);
}

/* The pointer to an item, or to null. Throws out what is over in the same bucket. */
static struct item **find(struct item **buckets, uint64_t hash, skua_bytes key, uint64_t now)
{
    struct item **link = &buckets[hash % BUCKETS];
    while (*link != NULL && ((*link)->hash != hash || !skua_bytes_equal((*link)->key, key) ||
                             (*link)->expires - 1 < now)) { /* never: the largest number */
        if ((*link)->expires - 1 < now) {
            drop(link);
        } else {
            link = &(*link)->next;
        }
    }
    return link;
}

/* Replaces bytes of the text. What has none left is dropped after the command. */
static void edit(struct item *item, size_t at, size_t removed, skua_bytes added)
{
    const size_t size = item->text.size + added.size - removed, behind = at + removed;
    if (size > item->room) {
        item->room = item->text.size > 0 ? 2 * size : size;
        item->memory = need(realloc(item->memory, item->room));
    }
    memmove(item->memory + at + added.size, item->memory + behind, item->text.size - behind);
    memcpy(item->memory + at, added.data, added.size);
    item->text = (skua_bytes){item->memory, size};
}

/* ---- batches ---- */

/* What the server and its connections are started with. */
SKUA_MESSAGE(start, 0, char address[64]; uint64_t seed; size_t count; skua_pid shards[SHARDS_MAX];
             skua_socket socket;);

struct batch {
    struct start start;
    skua_pid home; /* the connection */
    skua_input input;
    skua_output reply;
    skua_bytes rest, words[WORDS_MAX]; /* of the input; of the command */
    const struct command *command;     /* that is carried out, or null */
    size_t count, key;                 /* of words; which one is next */
    skua_context *ctx;                 /* of the process where it is */
    struct item *item;                 /* that the key names, or null */
    int sum, hops, subscriptions;
    bool is_broken; /* the protocol is */
};

static void drop_batch(void *data, size_t size)
{
    struct batch *b = data;
    (void)size;
    skua_input_clear(&b->input);
    skua_output_clear(&b->reply);
    free(b);
}

/* Cuts off a line with a number. Returns 1; 0 if it has not all come; or an error. */
static int cut_number(skua_bytes *bytes, char kind, int64_t most, int64_t *number)
{
    skua_bytes line;
    if (!skua_bytes_cut_line(bytes, &line)) {
        return bytes->size < 32 ? 0 : SKUA_E_INVALID;
    }
    const skua_bytes digits = {line.data + 1, line.size > 0 ? line.size - 1 : 0};
    const bool is_one = skua_bytes_to_number(digits, number) == 0 && line.data[0] == kind;
    return is_one && *number >= 0 && *number <= most ? 1 : SKUA_E_INVALID;
}

/* Cuts off a bulk string, all of it. Returns the same. */
static int cut_bulk(skua_bytes *bytes, skua_bytes *bulk)
{
    skua_bytes rest = *bytes;
    int64_t size;
    const int more = cut_number(&rest, '$', BYTES_MAX, &size);
    if (more <= 0 || rest.size < (size_t)size + 2) {
        return more < 0 ? more : 0;
    }
    *bulk = (skua_bytes){bytes->data, (size_t)(rest.data + size + 2 - bytes->data)};
    *bytes = (skua_bytes){bytes->data + bulk->size, bytes->size - bulk->size};
    return 1;
}

/* What is in a bulk string. */
static skua_bytes content(skua_bytes bulk)
{
    skua_bytes line;
    skua_bytes_cut_line(&bulk, &line);
    return (skua_bytes){bulk.data, bulk.size - 2};
}

/* ---- commands: each is called for one key after the other ---- */

struct command {
    const char *name;
    void (*run)(struct batch *b);
    enum kind kind;             /* of what the key names */
    size_t least, most, stride; /* words; from one key to the next, 0: there is only one */
    const char *none;           /* the answer if there is no such item; null: make one */
};

/* Reads a number from a bulk string; if it is none, says so. */
static bool get_number(struct batch *b, skua_bytes bulk, int64_t *number)
{
    const bool is_one = skua_bytes_to_number(content(bulk), number) == 0;
    skua_output_text(&b->reply, is_one ? "" : "-ERR value is not an integer or out of range\r\n");
    return is_one;
}

/* GET, each key of MGET, HGETALL, and ECHO. */
static void answer(struct batch *b)
{
    const enum kind kind = b->command->kind;
    if (kind == HASH || (kind == ANY && b->key == 1)) {
        skua_output_format(&b->reply, "*%zu\r\n", kind == HASH ? 2 * b->item->count : b->count - 1);
    }
    const bool is_there = b->item != NULL && (kind != ANY || b->item->kind == STRING);
    skua_output_bytes(&b->reply, kind == NONE ? b->words[1] : is_there ? b->item->text : nil);
}

/* A timer throws an item out. Whoever looks for it between its end and that does so, too. */
static void set_end(struct batch *b, int64_t seconds)
{
    const uint64_t duration = (uint64_t)seconds % (SKUA_DURATION_MAX / SKUA_SECOND) * SKUA_SECOND;
    b->item->expires = seconds > 0 ? skua_now(b->ctx) + duration : 0;
    if (seconds > 0 && skua_yield_cancel(b->ctx, b->item->hash) == 0) {
        (void)!skua_yield_sleep(b->ctx, b->item->hash, duration);
    }
}

static void set(struct batch *b)
{
    const bool has_end = b->command->stride == 0 && b->count > 3;
    int64_t seconds = 0;
    if (has_end && (b->count != 5 || !skua_bytes_is(content(b->words[3]), "ex") ||
                    skua_bytes_to_number(content(b->words[4]), &seconds) != 0 || seconds <= 0)) {
        skua_output_text(&b->reply, "-ERR syntax error\r\n");
        return;
    }
    b->item->kind = STRING;
    edit(b->item, 0, b->item->text.size, b->words[b->key + 1]);
    set_end(b, seconds);
    skua_output_text(&b->reply, has_end || b->key + 2 == b->count ? "+OK\r\n" : "");
}

static void increment(struct batch *b)
{
    int64_t number = 0;
    char digits[24], value[48];
    if (b->item->text.size == 0 || get_number(b, b->item->text, &number)) {
        const int length = snprintf(digits, sizeof digits, "%" PRId64, number + 1);
        const int size = snprintf(value, sizeof value, "$%d\r\n%s\r\n", length, digits);
        edit(b->item, 0, b->item->text.size, (skua_bytes){value, (size_t)size});
        skua_output_format(&b->reply, ":%s\r\n", digits);
    }
}

static void delete (struct batch *b)
{
    if (b->item != NULL) {
        edit(b->item, 0, b->item->text.size, nothing);
        b->sum++;
    }
    if (b->key + 1 == b->count) {
        skua_output_format(&b->reply, ":%d\r\n", b->sum);
    }
}

static void expire(struct batch *b)
{
    int64_t seconds;
    if (get_number(b, b->words[2], &seconds)) {
        set_end(b, seconds);
        edit(b->item, 0, seconds > 0 ? 0 : b->item->text.size, nothing);
        skua_output_text(&b->reply, ":1\r\n");
    }
}

static void tell_end(struct batch *b)
{
    const uint64_t left = b->item->expires - skua_now(b->ctx) + SKUA_SECOND / 2;
    const int64_t seconds = b->item->expires == 0 ? -1 : (int64_t)(left / SKUA_SECOND);
    skua_output_format(&b->reply, ":%" PRId64 "\r\n", seconds);
}

static void push(struct batch *b)
{
    const bool at_front = skua_bytes_is(content(b->words[0]), "lpush");
    for (size_t i = 2; i < b->count; i++, b->item->count++) {
        edit(b->item, at_front ? 0 : b->item->text.size, 0, b->words[i]);
    }
    skua_output_format(&b->reply, ":%zu\r\n", b->item->count);
}

static void pop(struct batch *b)
{
    skua_bytes rest = b->item->text, element = nothing;
    b->item->count -= (size_t)cut_bulk(&rest, &element);
    skua_output_bytes(&b->reply, element);
    edit(b->item, 0, element.size, nothing);
}

static void range(struct batch *b)
{
    int64_t first, last, count = (int64_t)b->item->count;
    skua_bytes rest = b->item->text, element;
    if (get_number(b, b->words[2], &first) && get_number(b, b->words[3], &last)) {
        first = first >= 0 ? first : first + count > 0 ? first + count : 0;
        last = last < 0 ? last + count : last < count ? last : count - 1;
        skua_output_format(&b->reply, "*%" PRId64 "\r\n", first <= last ? last - first + 1 : 0);
        for (int64_t i = 0; i <= last && cut_bulk(&rest, &element) > 0; i++) {
            skua_output_bytes(&b->reply, i >= first ? element : nothing);
        }
    }
}

/* The value of a field of a hash, within its text; no bytes at the end of that if there is none. */
static skua_bytes field(const struct item *item, skua_bytes name)
{
    skua_bytes rest = item->text, key = nothing, value = nothing;
    while (!skua_bytes_equal(key, name) && cut_bulk(&rest, &key) > 0) {
        (void)cut_bulk(&rest, &value);
    }
    return skua_bytes_equal(key, name) ? value : rest;
}

static void hash_set(struct batch *b)
{
    for (size_t i = 2; i + 1 < b->count; i += 2) {
        const skua_bytes old = field(b->item, b->words[i]), new = b->words[i + 1];
        const skua_bytes both = {b->words[i].data, b->words[i].size + new.size};
        edit(b->item, (size_t)(old.data - b->item->text.data), old.size, old.size > 0 ? new : both);
        b->sum += old.size == 0;
    }
    b->item->count += (size_t)b->sum;
    skua_output_format(&b->reply, ":%d\r\n", b->sum);
}

static void hash_get(struct batch *b)
{
    const skua_bytes value = field(b->item, b->words[2]);
    skua_output_bytes(&b->reply, value.size > 0 ? value : nil);
}

static void subscribe(struct batch *b)
{
    edit(b->item, b->item->text.size, 0, (skua_bytes){(const char *)&b->home, sizeof b->home});
    skua_output_text(&b->reply, "*3\r\n$9\r\nsubscribe\r\n");
    skua_output_bytes(&b->reply, b->words[b->key]);
    skua_output_format(&b->reply, ":%d\r\n", ++b->subscriptions);
}

/* Subscribers that have ended are forgotten, and those that are too slow are ended. */
static void publish(struct batch *b)
{
    const size_t size = b->words[1].size + b->words[2].size;
    for (size_t at = 0; at < b->item->text.size;) {
        skua_pid pid;
        memcpy(&pid, b->item->text.data + at, sizeof pid);
        const bool sent = skua_send_bytes(b->ctx, pid, 0, b->words[1].data, size) == 0;
        if (!sent) {
            skua_cancel(b->ctx, pid, 0);
        }
        edit(b->item, at, sent ? 0 : sizeof pid, nothing);
        at += sent ? sizeof pid : 0;
        b->sum += sent;
    }
    skua_output_format(&b->reply, ":%d\r\n", b->sum);
}

static const struct command commands[] = {
    {"get", answer, STRING, 2, 2, 0, "$-1\r\n"},
    {"set", set, STRING, 3, 5, 0, NULL},
    {"mget", answer, ANY, 2, WORDS_MAX, 1, NULL},
    {"mset", set, STRING, 3, WORDS_MAX, 2, NULL},
    {"del", delete, ANY, 2, WORDS_MAX, 1, NULL},
    {"incr", increment, STRING, 2, 2, 0, NULL},
    {"expire", expire, ANY, 3, 3, 0, ":0\r\n"},
    {"ttl", tell_end, ANY, 2, 2, 0, ":-2\r\n"},
    {"lpush", push, LIST, 3, WORDS_MAX, 0, NULL},
    {"rpush", push, LIST, 3, WORDS_MAX, 0, NULL},
    {"lpop", pop, LIST, 2, 2, 0, "$-1\r\n"},
    {"lrange", range, LIST, 4, 4, 0, "*0\r\n"},
    {"hset", hash_set, HASH, 4, WORDS_MAX, 0, NULL},
    {"hget", hash_get, HASH, 3, 3, 0, "$-1\r\n"},
    {"hgetall", answer, HASH, 2, 2, 0, "*0\r\n"},
    {"subscribe", subscribe, CHANNEL, 2, WORDS_MAX, 1, NULL},
    {"publish", publish, CHANNEL, 3, 3, 0, ":0\r\n"},
    {"echo", answer, NONE, 2, 2, 0, NULL},
    {"ping", NULL, NONE, 1, 1, 0, "+PONG\r\n"},
    {"info", NULL, NONE, 1, 2, 0, "$44\r\n# Server\r\nredis_version:7.0.0\r\nserver:skua\r\n\r\n"},
    {"config", NULL, NONE, 2, WORDS_MAX, 0, "*2\r\n$0\r\n\r\n$0\r\n\r\n"},
    {"command", NULL, NONE, 1, WORDS_MAX, 0, "*0\r\n"},
    {NULL, NULL, NONE, 0, SIZE_MAX, 0, "-ERR unknown command or wrong number of arguments\r\n"},
};

/* ---- where they are carried out ---- */

/* Reads the next command. Returns 1; 0 if it has not all come; or an error. */
static int next_command(struct batch *b)
{
    const struct command *command = commands;
    skua_bytes rest = b->rest;
    int64_t count = 0;
    int more = cut_number(&rest, '*', WORDS_MAX, &count);
    for (b->count = 0; more > 0 && b->count < (size_t)count; b->count++) {
        more = cut_bulk(&rest, &b->words[b->count]);
    }
    if (more <= 0 || count == 0) {
        return more <= 0 ? more : SKUA_E_INVALID;
    }
    while (command->name != NULL &&
           (!skua_bytes_is(content(b->words[0]), command->name) || b->count < command->least ||
            b->count > command->most || (command->stride == 2 && b->count % 2 == 0))) {
        command++;
    }
    b->command = command;
    b->rest = rest;
    b->key = command->kind != NONE;
    b->sum = 0;
    return 1;
}

/* Carries out a command for its key. */
static void carry_out(struct batch *b, struct item **buckets, uint64_t hash)
{
    const struct command *command = b->command;
    const skua_bytes key = b->words[b->key];
    struct item **link = find(buckets, hash, key, skua_now(b->ctx));
    if (*link == NULL && command->none == NULL && command->kind != ANY) {
        *link = need(malloc(sizeof **link + key.size));
        char *copy = memcpy(*link + 1, key.data, key.size);
        **link = (struct item){NULL, hash, 0, command->kind, .key = {copy, key.size}};
    }
    b->item = *link;
    if (b->item == NULL && command->none != NULL) {
        skua_output_text(&b->reply, command->none);
    } else if (command->kind == ANY || b->item->kind == command->kind || command->run == set) {
        command->run(b);
    } else {
        skua_output_text(&b->reply, "-WRONGTYPE the key holds another kind of value\r\n");
    }
    if (*link != NULL && (*link)->text.size == 0) {
        drop(link);
    }
}

/* Goes on until a command belongs elsewhere. Returns the number of that shard; -1 if all is done
 * that has come; or an error. */
static int go_on(struct batch *b, struct item **buckets, skua_context *ctx)
{
    int more = 1;
    b->ctx = ctx;
    while (b->command != NULL || (more = next_command(b)) > 0) {
        const uint64_t space = b->command->kind > ANY ? b->command->kind : 0;
        const uint64_t hash = skua_bytes_hash(b->words[b->key], b->start.seed + space);
        const size_t home = (hash >> 48) % b->start.count;
        if (buckets == NULL || !skua_pid_equal(skua_self(ctx), b->start.shards[home])) {
            return (int)home;
        }
        carry_out(b, buckets, hash);
        b->key += b->command->stride;
        b->command = b->command->stride > 0 && b->key < b->count ? b->command : NULL;
    }
    return more < 0 ? more : -1;
}

static int shard_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    for (skua_event *event = events; event < events + count; event++) {
        if (event->type == SKUA_EVENT_COMPLETION) { /* the timer of an item */
            (void)find(self, event->tag, nothing, skua_now(ctx));
        } else if (event->type == SKUA_EVENT_CALL) {
            struct batch *b = event->payload.as.owned.data;
            const int next = go_on(b, self, ctx);
            int error = 0;
            if (next >= 0 && b->hops++ < HOPS_MAX) {
                error =
                    skua_forward_from(ctx, event->request, b->start.shards[next], &event->payload);
                event->payload = skua_nothing();
            }
            skua_reply_from(ctx, event->request, error, &event->payload); /* unless forwarded */
        }
    }
    return 0;
}

static void shard_close(void *self, skua_context *ctx, const skua_exit *exit)
{
    struct item **buckets = self;
    (void)ctx, (void)exit;
    for (size_t i = 0; i < BUCKETS; i++) {
        while (buckets[i] != NULL) {
            drop(&buckets[i]);
        }
    }
}

static const skua_process_type shard_type = {"shard", BUCKETS * sizeof(struct item *),
                                             .step = shard_step, .close = shard_close,
                                             .calls = true};

/* ---- connections ---- */

static int start_init(void *self, skua_context *ctx, skua_payload *input, size_t count)
{
    struct start *start = self;
    const int error = start_get(&input[0], start);
    (void)ctx;
    start->socket = skua_payload_to_socket(&input[count - 1]); /* of a connection */
    return error;
}

/* What a read has brought is part of the input; what was published is an answer. */
static int take_in(struct batch *b, skua_event *event)
{
    const size_t size = skua_payload_size(&event->payload);
    if (event->type == SKUA_EVENT_COMPLETION) {
        const bool is_over = event->error != 0 || size == 0; /* the client has gone */
        return is_over ? SKUA_E_CANCELLED
                       : skua_input_append(&b->input, skua_payload_take(&event->payload));
    }
    skua_output_text(&b->reply, "*3\r\n$7\r\nmessage\r\n");
    skua_output_put(&b->reply, skua_payload_data(&event->payload), size);
    return 0;
}

/* Has all commands carried out that have come. On an error the batch has got lost on its way. */
static int send_round(struct batch *b, skua_payload *batch, skua_context *ctx)
{
    int next = -1, error = skua_input_peek(&b->input, &b->rest);
    while (error == 0 && (next = go_on(b, NULL, ctx)) >= 0) {
        skua_payload back;
        b->hops = 0;
        error = skua_task_call_from(ctx, b->start.shards[next], batch, SKUA_FOREVER, &back);
        *batch = back;
    }
    if (error == 0 && next != -1) {
        skua_output_text(&b->reply, "-ERR Protocol error\r\n");
        b->is_broken = true;
    }
    return error != 0 ? error
                      : skua_input_skip(&b->input, skua_input_size(&b->input) - b->rest.size);
}

static int connection_main(void *self, skua_context *ctx)
{
    struct batch *b = need(calloc(1, sizeof *b));
    skua_payload batch = skua_payload_pointer(0, b, drop_batch), answers = skua_nothing();
    bool reads = true;
    size_t unread = 0;
    int error = 0;
    b->start = *(struct start *)self;
    b->home = skua_self(ctx);
    b->input.limit = (size_t)BYTES_MAX;
    while (error == 0 && !b->is_broken) {
        skua_event *event;
        error = reads ? skua_yield_read(ctx, 0, b->start.socket, SKUA_READ_MAX, SKUA_FOREVER) : 0;
        error = error != 0 ? error : skua_task_receive(ctx, &event, SKUA_FOREVER);
        reads = error == 0 && event->type == SKUA_EVENT_COMPLETION;
        error = error != 0 ? error : take_in(b, event);
        error = error != 0 ? error : send_round(b, &batch, ctx);
        error = error != 0 ? error : skua_output_take(&b->reply, &answers);
        unread += error == 0 ? skua_payload_size(&answers) : 0;
        if (error == 0 && unread > UNREAD_MAX) { /* waits for all answers before it, too */
            error = skua_task_write(ctx, b->start.socket, answers, SKUA_FOREVER);
            unread = 0;
        } else if (error == 0 && skua_payload_size(&answers) > 0) {
            error = skua_socket_write(ctx, b->start.socket, answers);
        }
    }
    skua_payload_drop(&batch);
    return error;
}

static const skua_process_type connection_type = {
    "connection",           sizeof(struct start),       start_init, .main = connection_main,
    .stack_size = 16 << 10, .mailbox_limit = BEHIND_MAX};

/* ---- the server ---- */

static int server_main(void *self, skua_context *ctx)
{
    const skua_spawn_options shard = {.type = &shard_type, .link = true};
    struct start *start = self;
    skua_socket_snapshot snapshot;
    skua_socket listener;
    skua_payload input;
    skua_pid pid;
    int error = skua_listen(ctx, start->address, NULL, &listener);
    error = error != 0 ? error : skua_socket_info(ctx, listener, &snapshot);
    for (size_t i = 0; error == 0 && i < start->count; i++) {
        error = skua_spawn_with(ctx, &shard, &pid);
        start->shards[i] = pid;
    }
    start->seed = skua_random(ctx);
    error = error != 0 ? error
                       : skua_payload_shared(skua_runtime_of(ctx), 0, start, sizeof *start, &input);
    if (error == 0) {
        printf("listening at %s\n", snapshot.local);
        (void)fflush(stdout);
        error = skua_task_serve(ctx, listener, &connection_type, &input);
        skua_payload_drop(&input);
    }
    return error;
}

static const skua_process_type server_type = {"server", sizeof(struct start), start_init,
                                              .main = server_main};

#ifndef KV_NO_MAIN
int main(int argc, char **argv)
{
    struct start start = {.count = 2};
    skua_runtime *runtime = NULL;
    skua_payload input;
    skua_exit exit = {0};
    (void)snprintf(start.address, sizeof start.address, "127.0.0.1:%s",
                   argc > 1 ? argv[1] : "6379");
    int error = skua_runtime_create(&runtime, NULL);
    error = error != 0 ? error : skua_runtime_start(runtime);
    error = error != 0 ? error : start_payload(runtime, start, &input);
    error = error != 0 ? error : skua_process_run(runtime, &server_type, input, &exit);
    fprintf(stderr, "12_kv: %s\n", skua_error_text(error != 0 ? error : exit.error));
    (void)skua_runtime_stop(runtime, SKUA_SECOND);
    (void)skua_runtime_destroy(runtime);
    return 1;
}
#endif
