/* SPDX-License-Identifier: MIT */
/* A server that redis-cli can talk to. The keys are spread over shards; a task for each client
 * reads, and writes the answers.
 *
 *   12_kv [PORT]      on the loopback address; default: 6379, 0 picks one
 *
 * What a client has sent at once is a batch: the bytes, how far they have been carried out, and the
 * answers so far. The batch travels: whoever has it carries out one command after the other, and
 * passes it on when it comes to a key of another shard; in the end it is back at its client, which
 * writes all answers at once. So nothing is shared and nothing locked, many commands for one shard
 * cost one message, and the commands of a client happen in their order. (One with several keys
 * visits shard after shard: MSET is not atomic, as it is in Redis.)
 *
 * Takes time and chance from its context only, so it also runs in the simulator: define KV_NO_MAIN
 * and include this file. */
#include <skua/skua.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS_MAX 1024                /* of a command */
#define BYTES_MAX ((size_t)512 << 20) /* of a word */
#define BUCKETS   ((size_t)1 << 18)   /* of a shard */

static const skua_bytes nil = {"$-1\r\n", 5}, nothing = {"", 0};

/* ---- what is kept ---- */

enum kind { STRING, LIST, HASH, ANY, CHANNEL, NONE }; /* the last two are not among the keys */

/* A key and its value. Both are kept as they come and are answered, as bulk strings, that is
 * "$3\r\nabc\r\n", one after the other. That is short, and quick for lists of thousands and hashes
 * of dozens. A channel has PIDs instead. An item whose text is empty is removed. */
struct item {
    struct item *next; /* in its bucket */
    enum kind kind;
    uint64_t hash, expires, count; /* of bulk strings */
    skua_output text;
    skua_bytes key; /* lies behind this */
};

/* The pointer to an item, or to null. Throws out what is over in the same bucket. */
static struct item **find(struct item **buckets, uint64_t hash, skua_bytes key, uint64_t now)
{
    struct item **link = &buckets[hash % BUCKETS], *item;
    while ((item = *link) != NULL) {
        if (item->expires <= now || skua_output_peek(&item->text).size == 0) {
            *link = item->next;
            skua_output_clear(&item->text);
            free(item);
        } else if (item->hash == hash && skua_bytes_equal(item->key, key)) {
            break;
        } else {
            link = &item->next;
        }
    }
    return link;
}

/* ---- batches ---- */

/* What the server is started with; its clients get a socket besides. */
SKUA_MESSAGE(start, 0, char address[64]; size_t count; uint64_t seed; skua_pid shards[64];
             skua_socket socket;);

struct batch {
    skua_stream stream;
    struct start start;
    const struct command *command; /* that is carried out, or null */
    skua_bytes words[WORDS_MAX];   /* its name; bulk strings */
    size_t count, key;             /* of words; which one is next */
    skua_context *ctx;             /* of the process where it is */
    skua_output *reply;            /* of the stream */
    int64_t number, subscriptions; /* to be answered */
};

/* ---- commands: each is called for one key after the other ---- */

struct command {
    const char *name, *none; /* the answer if there is no such item; null: make one */
    void (*run)(struct batch *b, struct item *item);
    enum kind kind;             /* of what the key names */
    size_t least, most, stride; /* words; from one key to the next, 0: there is only one */
};

/* Reads a number, to which one can be added; if it is none, says so. */
static bool get_number(struct batch *b, skua_bytes bulk, int64_t *number)
{
    skua_bytes digits;
    const bool is_one = skua_bytes_cut_chunk(&bulk, '$', BYTES_MAX, &digits) > 0 &&
                        skua_bytes_to_number(digits, number) == 0 && *number < INT64_MAX;
    skua_output_text(b->reply, is_one ? "" : "-ERR value is not an integer or out of range\r\n");
    return is_one;
}

/* The value of a field of a hash, within its text; no bytes at the end of that if there is none. */
static skua_bytes field(const struct item *item, skua_bytes name)
{
    skua_bytes rest = skua_output_peek(&item->text), key = nothing, value = nothing;
    while (!skua_bytes_equal(key, name) &&
           skua_bytes_cut_chunks(&rest, '$', BYTES_MAX, 1, &key) > 0) {
        (void)!skua_bytes_cut_chunks(&rest, '$', BYTES_MAX, 1, &value);
    }
    return skua_bytes_equal(key, name) ? value : rest;
}

/* GET, each key of MGET, and HGET. */
static void get(struct batch *b, struct item *item)
{
    const bool is_hash = b->command->kind == HASH, is_text = item->kind == STRING;
    const skua_bytes text = is_hash ? field(item, b->words[2]) : skua_output_peek(&item->text);
    if (b->command->stride > 0 && b->key == 1) {
        skua_output_count(b->reply, '*', (int64_t)b->count - 1);
    }
    skua_output_bytes(b->reply, text.size > 0 && (is_hash || is_text) ? text : nil);
}

static void set(struct batch *b, struct item *item)
{
    item->kind = STRING;
    item->expires = SKUA_FOREVER;
    skua_output_replace(&item->text, 0, SIZE_MAX, b->words[b->key + 1]);
    skua_output_text(b->reply, b->key + 2 < b->count ? "" : "+OK\r\n");
}

/* EXPIRE, and SET with EX. A timer throws the item out, if nobody who looks for it is earlier. */
static void expire(struct batch *b, struct item *item)
{
    int64_t seconds, most = SKUA_DURATION_MAX / SKUA_SECOND;
    if (b->count == 5 && !skua_bytes_is(b->words[3], "$2\r\nex\r\n")) {
        skua_output_text(b->reply, "-ERR syntax error\r\n");
    } else if (get_number(b, b->words[b->count - 1], &seconds)) {
        if (b->count == 5) {
            set(b, item);
        }
        seconds = seconds < 0 ? 0 : seconds < most ? seconds : most;
        item->expires = skua_now(b->ctx) + (uint64_t)seconds * SKUA_SECOND;
        (void)!skua_yield_cancel(b->ctx, item->hash);
        (void)!skua_yield_timer(b->ctx, item->hash, item->expires);
        skua_output_text(b->reply, b->count == 5 ? "+OK\r\n" : ":1\r\n");
    }
}

static void tell_end(struct batch *b, struct item *item)
{
    const uint64_t end = item->expires, left = end - skua_now(b->ctx) + SKUA_SECOND / 2;
    skua_output_count(b->reply, ':', end == SKUA_FOREVER ? -1 : (int64_t)(left / SKUA_SECOND));
}

static void increment(struct batch *b, struct item *item)
{
    const skua_bytes old = skua_output_peek(&item->text);
    if (old.size == 0 || get_number(b, old, &b->number)) {
        const long long new = b->number + 1;
        skua_output_clear(&item->text);
        skua_output_format(&item->text, "$%d\r\n%lld\r\n", snprintf(NULL, 0, "%lld", new), new);
        skua_output_count(b->reply, ':', new);
    }
}

static void delete (struct batch *b, struct item *item)
{
    b->number += skua_output_peek(&item->text).size > 0;
    skua_output_clear(&item->text);
    if (b->key + 1 == b->count) {
        skua_output_count(b->reply, ':', b->number);
    }
}

static void push(struct batch *b, struct item *item)
{
    for (size_t i = 2; i < b->count; i++) {
        skua_output_replace(&item->text, b->command->name[0] == 'l' ? 0 : SIZE_MAX, 0, b->words[i]);
    }
    item->count += b->count - 2;
    skua_output_count(b->reply, ':', (int64_t)item->count);
}

static void pop(struct batch *b, struct item *item)
{
    skua_bytes rest = skua_output_peek(&item->text), first;
    item->count -= (uint64_t)skua_bytes_cut_chunks(&rest, '$', BYTES_MAX, 1, &first);
    skua_output_bytes(b->reply, first);
    skua_output_replace(&item->text, 0, first.size, nothing);
}

/* LRANGE; and HGETALL, which gets all. */
static void range(struct batch *b, struct item *item)
{
    int64_t from = 0, last = -1, count = (int64_t)item->count;
    skua_bytes rest = skua_output_peek(&item->text), part;
    if (b->count == 2 || (get_number(b, b->words[2], &from) && get_number(b, b->words[3], &last))) {
        from = from >= 0 ? from : from + count > 0 ? from + count : 0;
        last = last < 0 ? last + count : last < count ? last : count - 1;
        count = from <= last ? last - from + 1 : 0;
        (void)!skua_bytes_cut_chunks(&rest, '$', BYTES_MAX, (size_t)from, &part);
        (void)!skua_bytes_cut_chunks(&rest, '$', BYTES_MAX, (size_t)count, &part);
        skua_output_count(b->reply, '*', count);
        skua_output_bytes(b->reply, part);
    }
}

static void hash_set(struct batch *b, struct item *item)
{
    for (size_t i = 2; i + 1 < b->count; i += 2) {
        const skua_bytes old = field(item, b->words[i]), new = b->words[i + 1];
        const skua_bytes both = {b->words[i].data, b->words[i].size + new.size};
        const size_t at = (size_t)(old.data - skua_output_peek(&item->text).data);
        skua_output_replace(&item->text, at, old.size, old.size > 0 ? new : both);
        b->number += old.size == 0;
    }
    item->count += 2 * (size_t)b->number;
    skua_output_count(b->reply, ':', b->number);
}

/* Who has subscribed before is not there twice. */
static void subscribe(struct batch *b, struct item *item)
{
    const skua_pid *pids = (const void *)skua_output_peek(&item->text).data, pid = b->stream.owner;
    size_t i = skua_output_peek(&item->text).size / sizeof pid;
    for (; i > 0 && !skua_pid_equal(pids[i - 1], pid); i--) {
    }
    skua_output_put(&item->text, &pid, i == 0 ? sizeof pid : 0);
    skua_output_text(b->reply, "*3\r\n$9\r\nsubscribe\r\n");
    skua_output_bytes(b->reply, b->words[b->key]);
    skua_output_count(b->reply, ':', b->subscriptions += i == 0);
}

/* Subscribers that have ended are forgotten, and those that are too slow are ended. */
static void publish(struct batch *b, struct item *item)
{
    const skua_pid *pids = (const void *)skua_output_peek(&item->text).data;
    skua_output message = {.alloc = skua_must_alloc};
    skua_output_text(&message, "*3\r\n$7\r\nmessage\r\n");
    skua_output_put(&message, b->words[1].data, b->words[1].size + b->words[2].size);
    for (size_t i = skua_output_peek(&item->text).size / sizeof *pids; i-- > 0;) {
        if (skua_send_bytes(b->ctx, pids[i], 0, message.data, message.size) != 0) {
            skua_cancel(b->ctx, pids[i], 0);
            skua_output_replace(&item->text, i * sizeof *pids, sizeof *pids, nothing);
        }
    }
    skua_output_clear(&message);
    skua_output_count(b->reply, ':', (int64_t)(skua_output_peek(&item->text).size / sizeof *pids));
}

static const struct command commands[] = {
    {"get", "$-1\r\n", get, STRING, 2, 2, 0},
    {"set", NULL, set, ANY, 3, 3, 0},
    {"set", NULL, expire, ANY, 5, 5, 0},
    {"mget", NULL, get, ANY, 2, WORDS_MAX, 1},
    {"mset", NULL, set, ANY, 3, WORDS_MAX, 2},
    {"del", NULL, delete, ANY, 2, WORDS_MAX, 1},
    {"incr", NULL, increment, STRING, 2, 2, 0},
    {"expire", ":0\r\n", expire, ANY, 3, 3, 0},
    {"ttl", ":-2\r\n", tell_end, ANY, 2, 2, 0},
    {"lpush", NULL, push, LIST, 3, WORDS_MAX, 0},
    {"rpush", NULL, push, LIST, 3, WORDS_MAX, 0},
    {"lpop", "$-1\r\n", pop, LIST, 2, 2, 0},
    {"lrange", "*0\r\n", range, LIST, 4, 4, 0},
    {"hset", NULL, hash_set, HASH, 4, WORDS_MAX, 0},
    {"hget", "$-1\r\n", get, HASH, 3, 3, 0},
    {"hgetall", "*0\r\n", range, HASH, 2, 2, 0},
    {"subscribe", NULL, subscribe, CHANNEL, 2, WORDS_MAX, 1},
    {"publish", ":0\r\n", publish, CHANNEL, 3, 3, 0},
    {"echo", NULL, NULL, NONE, 2, 2, 0},
    {"ping", "+PONG\r\n", NULL, NONE, 1, 1, 0},
    {"info", "$30\r\nredis_version:7.0.0\r\nby:skua\r\n\r\n", NULL, NONE, 1, 2, 0},
    {"config", "*2\r\n$0\r\n\r\n$0\r\n\r\n", NULL, NONE, 2, WORDS_MAX, 0},
    {NULL, "-ERR unknown command or wrong number of arguments\r\n", NULL, NONE, 0, SIZE_MAX, 0},
};

/* ---- where they are carried out ---- */

/* Reads the next command. Returns whether it has all come. */
static bool next_command(struct batch *b)
{
    skua_bytes rest = skua_input_bytes(&b->stream.input);
    const bool is_line = rest.size > 0 && rest.data[0] != '*'; /* typed by hand: one word */
    int more = is_line ? skua_bytes_cut_line(&rest, &b->words[0])
                       : skua_bytes_cut_count(&rest, '*', WORDS_MAX, &b->count);
    b->count = is_line ? 1 : b->count;
    more = more <= 0 || is_line ? more : skua_bytes_cut_chunk(&rest, '$', BYTES_MAX, &b->words[0]);
    for (size_t i = 1; more > 0 && i < b->count; i++) {
        more = skua_bytes_cut_chunks(&rest, '$', BYTES_MAX, 1, &b->words[i]);
    }
    if (more < 0 || (is_line && more == 0 && rest.size > 65536)) {
        skua_output_text(b->reply, "-ERR Protocol error\r\n");
        skua_input_fail(&b->stream.input, SKUA_E_INVALID);
    } else if (more > 0) {
        const struct command *c = commands;
        while (c->name != NULL && (!skua_bytes_is(b->words[0], c->name) || b->count < c->least ||
                                   b->count > c->most || (c->stride == 2 && b->count % 2 == 0))) {
            c++;
        }
        b->command = c;
        skua_input_skip(&b->stream.input, skua_input_size(&b->stream.input) - rest.size);
        b->key = b->count > 1;
        b->number = 0;
    }
    return b->command != NULL;
}

/* Carries out a command for its key. Then nothing may be left of the item. */
static void carry_out(struct batch *b, struct item **buckets, skua_bytes key, uint64_t hash)
{
    const struct command *command = b->command;
    struct item **link = find(buckets, hash, key, skua_now(b->ctx));
    if (*link == NULL && command->none == NULL) {
        *link = skua_must_alloc(NULL, NULL, 0, sizeof **link + key.size, _Alignof(struct item));
        **link = (struct item){0, command->kind, hash, SKUA_FOREVER, .text.alloc = skua_must_alloc};
        (*link)->key = (skua_bytes){memcpy(*link + 1, key.data, key.size), key.size};
    }
    if (*link != NULL && (command->kind == ANY || (*link)->kind == command->kind)) {
        command->run(b, *link);
    } else {
        skua_output_text(b->reply, *link == NULL ? command->none
                                                 : "-WRONGTYPE the key is of another kind\r\n");
    }
    (void)find(buckets, hash, key, skua_now(b->ctx));
}

/* Carries out one command after the other. Returns who goes on: another shard, or the client if all
 * are done. */
static skua_pid carry_on(struct batch *b, struct item **buckets, skua_context *ctx)
{
    b->ctx = ctx;
    b->reply = &b->stream.output;
    while (b->command != NULL || next_command(b)) {
        const struct command *command = b->command;
        const skua_bytes key = b->words[b->key];
        const uint64_t hash = skua_bytes_hash(key, b->start.seed + (command->kind == CHANNEL));
        const skua_pid place = b->start.shards[(hash >> 48) % b->start.count];
        if (command->kind == NONE) {
            skua_output_bytes(b->reply, command->none != NULL ? skua_bytes_of(command->none) : key);
        } else if (buckets != NULL && skua_pid_equal(place, skua_self(ctx))) {
            carry_out(b, buckets, key, hash);
        } else {
            return place;
        }
        b->key += command->stride;
        b->command = command->stride > 0 && b->key < b->count ? command : NULL;
    }
    return b->stream.owner;
}

static int shard_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    for (skua_event *event = events; event < events + count; event++) {
        if (event->type == SKUA_EVENT_MESSAGE) {
            struct batch *b = event->payload.as.owned.data;
            const skua_pid owner = b->stream.owner;
            if (skua_send_from(ctx, carry_on(b, self, ctx), &event->payload) != 0) {
                skua_cancel(ctx, owner, 0); /* the batch is lost; mostly it is too slow */
            }
        } else { /* the timer of an item */
            (void)find(self, event->tag, nothing, skua_now(ctx));
        }
    }
    return 0;
}

static void shard_close(void *self, skua_context *ctx, const skua_exit *exit)
{
    (void)ctx, (void)exit;
    for (size_t i = 0; i < BUCKETS; i++) {
        (void)find(self, i, nothing, SKUA_FOREVER);
    }
}

static const skua_process_type shard_type = {"shard", BUCKETS * sizeof(struct item *),
                                             .step = shard_step, .close = shard_close};

/* ---- clients ---- */

static int client_main(void *self, skua_context *ctx)
{
    const struct start *start = self;
    skua_payload batch;
    skua_event *event;
    int error = skua_stream_payload(ctx, start->socket, BYTES_MAX, sizeof(struct batch), &batch);
    struct batch *b = batch.as.owned.data;
    while (error == 0 && skua_task_exchange(ctx, &b->stream, NULL) == 0) {
        b->start = *start;
        error = skua_send_from(ctx, carry_on(b, NULL, ctx), &batch);
        error = error != 0 ? error : skua_task_receive_type(ctx, SKUA_STREAM, &event, SKUA_FOREVER);
        batch = error == 0 ? skua_payload_take(&event->payload) : skua_nothing();
    }
    skua_payload_drop(&batch);
    return 0;
}

/* With so many messages that it has not taken, a subscriber is too slow. */
static const skua_process_type client_type = {"client", sizeof(struct start), skua_init_bytes,
                                              .main = client_main, .mailbox_limit = 10000};

/* ---- the server ---- */

static int server_main(void *self, skua_context *ctx)
{
    struct start *start = self;
    const skua_payload input = skua_payload_static(0, start, sizeof *start - sizeof start->socket);
    skua_socket_snapshot snapshot;
    skua_socket listener;
    skua_pid pid;
    int error = skua_listen(ctx, start->address, NULL, &listener);
    error = error != 0 ? error : skua_socket_info(ctx, listener, &snapshot);
    for (size_t i = 0; error == 0 && i < start->count; i++) {
        error = skua_spawn_with(ctx, &(skua_spawn_options){&shard_type, .link = true}, &pid);
        start->shards[i] = pid;
    }
    start->seed = skua_random(ctx);
    if (error == 0 && printf("listening at %s\n", snapshot.local) > 0 && fflush(stdout) == 0) {
        error = skua_task_serve(ctx, listener, &client_type, &input);
    }
    return error;
}

static const skua_process_type server_type = {"server", sizeof(struct start), skua_init_bytes,
                                              .main = server_main};

#ifndef KV_NO_MAIN
int main(int argc, char **argv)
{
    struct start start = {.count = 2};
    snprintf(start.address, sizeof start.address, "127.0.0.1:%s", argc > 1 ? argv[1] : "6379");
    return skua_run(NULL, &server_type, skua_payload_static(0, &start, sizeof start));
}
#endif
