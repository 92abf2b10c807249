/* SPDX-License-Identifier: MIT */
/* Counts the words of files in parallel. Reading a file sleeps in the kernel, so a blocking pool
 * does it: its threads are there to sleep. One process per file waits for its words and sends them
 * to the collector, which adds them up and shows the most frequent ones.
 *
 *   skua run 03_word_count.so -- FILE... */
#include "words.h"

#include <skua/skua.h>

enum { WORDS, FAILED }; /* messages to the collector */

/* Runs on a thread of the pool. The input is the name of a file, the result its words. */
static int read_file(skua_payload *input, skua_payload *result)
{
    struct words words = {0};
    const bool good = words_read(&words, skua_payload_data(input));
    const size_t size = words.length * sizeof words.list[0];
    *result = skua_payload_owned(WORDS, words.list, size, skua_drop_free);
    return good ? 0 : SKUA_E_USER;
}

/* Gets the name of a file as a message, hands it to the pool, and passes on the words. Its state is
 * the PID of the collector. */
static int reader_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    skua_pid *collector = self;
    int error = 0;
    for (size_t i = 0; i < count && error == 0; i++) {
        skua_payload *payload = &events[i].payload;
        if (events[i].type == SKUA_EVENT_MESSAGE) {
            skua_pool files;
            *collector = events[i].from;
            error = skua_blocking_find(skua_runtime_of(ctx), "files", &files);
            error = error != 0 ? error
                               : skua_yield_blocking(ctx, 0, files, read_file,
                                                     skua_payload_take(payload), SKUA_FOREVER);
        } else if (events[i].type == SKUA_EVENT_COMPLETION) {
            const bool good = events[i].error == 0;
            skua_send(ctx, *collector,
                      good ? skua_payload_take(payload) : skua_payload_empty(FAILED));
            skua_done(ctx, skua_nothing());
        }
    }
    return error;
}

static const skua_process_type reader_type = {
    .name = "reader", .state_size = sizeof(skua_pid), .step = reader_step};

struct collector {
    skua_payload *names;
    size_t files, asked, answered, failed;
    struct words words;
};

/* Keeps the names for the first step: a reader could not answer before init has returned. */
static int collector_init(void *self, skua_context *ctx, skua_payload *input, size_t count)
{
    struct collector *collector = self;
    void *names;
    if (count == 0) {
        fprintf(stderr, "usage: skua run 03_word_count.so -- FILE...\n");
        return SKUA_E_INVALID;
    }
    const int error = skua_own_alloc(ctx, count * sizeof input[0], &names);
    collector->names = names; /* memory that is freed after close */
    while (error == 0 && collector->files < count) {
        collector->names[collector->files] = skua_payload_take(&input[collector->files]);
        collector->files++;
    }
    return error;
}

static void collector_close(void *self, skua_context *ctx, const skua_exit *exit)
{
    struct collector *collector = self;
    (void)ctx, (void)exit;
    for (size_t i = 0; i < collector->files; i++) {
        skua_payload_drop(&collector->names[i]);
    }
    free(collector->words.list);
}

/* Fan-out: a reader for each file. */
static int ask(struct collector *collector, skua_context *ctx)
{
    int error = 0;
    while (collector->asked < collector->files && error == 0) {
        skua_pid reader;
        error = skua_spawn(ctx, &reader_type, skua_nothing(), &reader);
        if (error == 0) {
            skua_payload *name = &collector->names[collector->asked++];
            error = skua_send(ctx, reader, skua_payload_take(name));
        }
    }
    return error;
}

/* Fan-in: one of their answers. */
static int add(struct collector *collector, const skua_payload *answer)
{
    const struct word *list = skua_payload_data(answer);
    collector->answered++;
    collector->failed += answer->type == FAILED;
    for (size_t i = 0; i < skua_payload_size(answer) / sizeof list[0]; i++) {
        if (!words_add(&collector->words, &list[i])) {
            return SKUA_E_NO_MEMORY;
        }
    }
    return 0;
}

static int finish(struct collector *collector, skua_context *ctx)
{
    const uint64_t total = words_show(&collector->words, 3);
    printf("%8" PRIu64 "  words in %zu files, %zu different\n", total,
           collector->files - collector->failed, collector->words.length);
    return collector->failed == 0 ? skua_done(ctx, skua_nothing()) : SKUA_E_USER;
}

static int collector_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    struct collector *collector = self;
    int error = 0;
    for (size_t i = 0; i < count && error == 0; i++) {
        const bool start = events[i].type == SKUA_EVENT_START;
        error = start ? ask(collector, ctx) : add(collector, &events[i].payload);
    }
    if (error == 0 && collector->answered == collector->files) {
        error = finish(collector, ctx);
    }
    return error;
}

static const skua_process_type collector_type = {
    .name = "collector",
    .state_size = sizeof(struct collector),
    .init = collector_init,
    .step = collector_step,
    .close = collector_close,
};

static const skua_process_type *const types[] = {&reader_type, NULL};
static const skua_blocking_pool pools[] = {{.name = "files", .thread_limit = 4, .sim_safe = true},
                                           {0}};

SKUA_MODULE(.name = "word_count", .about = "counts the words of files", .root = &collector_type,
            .types = types, .pools = pools);
