/* SPDX-License-Identifier: MIT */
/* Words of files, counted in parallel. Reading sleeps in the kernel, so it is done on a blocking
 * pool, whose threads are there to sleep. One process per file waits for its words and sends them
 * to the collector, which adds them up and shows the most frequent ones.
 *
 *   skua run 03_word_count.so -- FILE... */
#include "words.h"

#include <skua/skua.h>

enum { WORDS, FAILED }; /* messages to the collector */

static void drop_words(void *list, size_t size)
{
    (void)size;
    free(list);
}

/* Runs on a thread of the pool. The input is the name of a file, the result its words. */
static int read_file(skua_payload *input, skua_payload *result)
{
    struct words words = {0};
    const bool good = words_read(&words, skua_payload_data(input));
    const size_t size = words.length * sizeof words.list[0];
    *result = skua_payload_owned(WORDS, words.list, size, drop_words);
    return good ? 0 : SKUA_E_USER;
}

/* Gets the name of a file as a message, asks the pool, and passes on what that brings. Its state is
 * the PID of who wants to know. */
static int reader_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                       skua_step *out)
{
    skua_pid *collector = self;
    if (count == 0) {
        return 0; /* the first step, if it comes before the message */
    }
    if (events[0].type == SKUA_EVENT_MESSAGE) {
        *collector = events[0].from;
        return skua_step_blocking(out, 0, "files", read_file,
                                  skua_payload_take(&events[0].payload));
    }
    skua_step_done(out, skua_payload_empty(0));
    return skua_context_send(ctx, *collector,
                             events[0].error == 0 ? skua_payload_take(&events[0].payload)
                                                  : skua_payload_empty(FAILED));
}

static const skua_process_type reader_type = {
    .name = "reader", .state_size = sizeof(skua_pid), .step = reader_step};

struct collector {
    skua_payload *names;
    size_t files, asked, answered, failed;
    struct words words;
};

/* Keeps the names for the first step: no reader could answer before init has returned. */
static int collector_init(void *self, skua_context *ctx, const char *method, skua_payload *input,
                          size_t input_count)
{
    struct collector *collector = self;
    (void)ctx;
    (void)method;
    if (input_count == 0) {
        fprintf(stderr, "usage: skua run 03_word_count.so -- FILE...\n");
        return SKUA_E_INVALID;
    }
    collector->names = malloc(input_count * sizeof input[0]);
    while (collector->names != NULL && collector->files < input_count) {
        collector->names[collector->files] = skua_payload_take(&input[collector->files]);
        collector->files++;
    }
    return collector->names != NULL ? 0 : SKUA_E_NO_MEMORY;
}

static void collector_close(void *self)
{
    struct collector *collector = self;
    for (size_t i = 0; i < collector->files; i++) {
        skua_payload_drop(&collector->names[i]);
    }
    free(collector->names);
    free(collector->words.list);
}

/* Fan-out: a reader for each file. */
static int ask(struct collector *collector, skua_context *ctx)
{
    int error = 0;
    while (collector->asked < collector->files && error == 0) {
        skua_pid reader;
        error = skua_context_spawn(ctx, &reader_type, NULL, NULL, 0, &reader);
        if (error == 0) {
            skua_payload *name = &collector->names[collector->asked++];
            error = skua_context_send(ctx, reader, skua_payload_take(name));
        }
    }
    return error;
}

/* Fan-in: the answer of one of them. */
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

static int collector_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                          skua_step *out)
{
    struct collector *collector = self;
    int error = ask(collector, ctx);
    for (size_t i = 0; i < count && error == 0; i++) {
        const bool cancel = events[i].type == SKUA_EVENT_CANCEL;
        error = cancel ? events[i].error : add(collector, &events[i].payload);
    }
    if (error == 0 && collector->answered == collector->files) {
        const uint64_t total = words_show(&collector->words, 3);
        printf("%8" PRIu64 "  words in %zu files, %zu different\n", total,
               collector->files - collector->failed, collector->words.length);
        skua_step_done(out, skua_payload_empty(0));
        error = collector->failed == 0 ? 0 : SKUA_E_USER;
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
