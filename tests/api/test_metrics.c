/* SPDX-License-Identifier: MIT */
/* The statistics as Prometheus text: read by a strict little reader, compared with the numbers of
 * skua_stats_read, and cut where the buffer ends. */
#include <ctype.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>

#include "runtime/runtime.h"
#include "sim_support.h"

#define TEXT_MAX    ((size_t)1 << 17)
#define NAME_SIZE   80
#define SAMPLES_MAX 2000
#define WORKERS_MAX 4

/* ---- the reader ---- */

struct sample {
    char name[NAME_SIZE];
    char label[NAME_SIZE]; /* its name; empty: there is none */
    char value[NAME_SIZE]; /* of the label */
    uint64_t number;       /* of seconds: nanoseconds */
    bool is_counter;
};

struct page {
    struct sample samples[SAMPLES_MAX];
    size_t count;
    size_t families;
};

/* Takes a name off the text: letters, digits and _ , no digit at first. */
static const char *read_name(const char *at, char *name)
{
    size_t length = 0;
    assert_true(isalpha((unsigned char)*at) || *at == '_');
    while (isalnum((unsigned char)*at) || *at == '_') {
        assert_true(length + 1 < NAME_SIZE);
        name[length++] = *at++;
    }
    name[length] = '\0';
    return at;
}

static const char *read_fixed(const char *at, const char *expected)
{
    const size_t length = strlen(expected);
    assert_memory_equal(at, expected, length);
    return at + length;
}

/* The value of a label up to its closing quote, without its escapes. */
static const char *read_quoted(const char *at, char *value)
{
    size_t length = 0;
    at = read_fixed(at, "\"");
    while (*at != '"') {
        assert_true(*at != '\n' && *at != '\0' && length + 1 < NAME_SIZE);
        if (*at == '\\') {
            at++;
            assert_true(*at == '\\' || *at == '"' || *at == 'n');
            value[length++] = *at == 'n' ? '\n' : *at;
            at++;
        } else {
            value[length++] = *at++;
        }
    }
    value[length] = '\0';
    return at + 1;
}

static bool ends_with(const char *name, const char *end)
{
    const size_t length = strlen(name);
    return length > strlen(end) && strcmp(name + length - strlen(end), end) == 0;
}

/* A number without a sign or an exponent, to the end of its line; one of seconds has nine digits
 * behind the point. */
static const char *read_number(const char *at, bool seconds, uint64_t *number)
{
    char *end;
    assert_true(isdigit((unsigned char)*at));
    *number = strtoull(at, &end, 10);
    if (seconds) {
        at = read_fixed(end, ".");
        assert_int_equal(strspn(at, "0123456789"), 9);
        *number = *number * 1000000000 + strtoull(at, &end, 10);
    }
    return read_fixed(end, "\n");
}

static const char *read_sample(const char *at, const char *family, bool is_counter,
                               struct sample *sample)
{
    *sample = (struct sample){.is_counter = is_counter};
    at = read_name(at, sample->name);
    assert_string_equal(sample->name, family);
    if (*at == '{') {
        at = read_name(at + 1, sample->label);
        at = read_fixed(at, "=");
        at = read_quoted(at, sample->value);
        at = read_fixed(at, "}");
    }
    const bool seconds = strstr(family, "_seconds") != NULL;
    return read_number(read_fixed(at, " "), seconds, &sample->number);
}

/* # HELP name text, # TYPE name type. */
static const char *read_head(const char *at, char *family, bool *is_counter)
{
    char again[NAME_SIZE];
    char type[NAME_SIZE];
    at = read_name(read_fixed(at, "# HELP "), family);
    at = read_fixed(at, " ");
    assert_true(strcspn(at, "\n") > 0);
    at = read_fixed(at + strcspn(at, "\n"), "\n");
    at = read_name(read_fixed(at, "# TYPE "), again);
    assert_string_equal(again, family);
    at = read_name(read_fixed(at, " "), type);
    *is_counter = strcmp(type, "counter") == 0;
    assert_true(*is_counter || strcmp(type, "gauge") == 0);
    return read_fixed(at, "\n");
}

static void assert_new_family(const struct page *page, const char *family, bool is_counter)
{
    assert_memory_equal(family, "skua_", strlen("skua_"));
    assert_int_equal(ends_with(family, "_total"), is_counter);
    assert_false(ends_with(family, "_ns") || ends_with(family, "_ns_total"));
    for (size_t i = 0; i < page->count; i++) {
        assert_string_not_equal(page->samples[i].name, family);
    }
}

static void assert_new_sample(const struct page *page, const struct sample *sample)
{
    for (size_t i = 0; i < page->count; i++) {
        assert_false(strcmp(page->samples[i].name, sample->name) == 0 &&
                     strcmp(page->samples[i].value, sample->value) == 0);
    }
}

/* Every family has its help, its type and at least one sample; names and samples are unique. */
static void read_page(struct page *page, const char *text)
{
    page->count = 0;
    page->families = 0;
    while (*text != '\0') {
        char family[NAME_SIZE];
        bool is_counter;
        text = read_head(text, family, &is_counter);
        assert_new_family(page, family, is_counter);
        page->families++;
        do {
            struct sample sample;
            assert_true(page->count < SAMPLES_MAX);
            text = read_sample(text, family, is_counter, &sample);
            assert_new_sample(page, &sample);
            page->samples[page->count++] = sample;
        } while (*text != '#' && *text != '\0');
    }
}

static void read_metrics(struct page *page, skua_runtime *runtime)
{
    static char text[TEXT_MAX];
    const int length = skua_metrics_format(runtime, text, sizeof text);
    assert_in_range(length, 1, sizeof text - 1);
    assert_int_equal(strlen(text), length);
    read_page(page, text);
}

/* The one sample of this name whose label has this value (empty: without a label). */
static uint64_t number_of(const struct page *page, const char *name, const char *value)
{
    for (size_t i = 0; i < page->count; i++) {
        const struct sample *sample = &page->samples[i];
        if (strcmp(sample->name, name) == 0 && strcmp(sample->value, value) == 0) {
            return sample->number;
        }
    }
    fail_msg("no %s of %s", name, value);
    return 0;
}

/* ---- the same numbers as skua_stats_read ---- */

/* skua_<counter>_total; of nanoseconds, skua_<..>_seconds_total. */
static void name_of_counter(const char *counter, char *name)
{
    if (ends_with(counter, "_ns")) {
        const int stem = (int)(strlen(counter) - strlen("_ns"));
        (void)snprintf(name, NAME_SIZE, "skua_%.*s_seconds_total", stem, counter);
    } else {
        (void)snprintf(name, NAME_SIZE, "skua_%s_total", counter);
    }
}

/* A counter, and where it is in skua_stats. */
struct counter {
    const char *name;
    size_t offset;
};

static uint64_t read_counter(const skua_stats *stats, const struct counter *counter)
{
    uint64_t value;
    memcpy(&value, (const char *)stats + counter->offset, sizeof value);
    return value;
}

static void assert_counter(const struct page *page, const struct counter *counter,
                           const skua_stats *total, const skua_stats *workers, size_t count)
{
    char name[NAME_SIZE];
    name_of_counter(counter->name, name);
    uint64_t sum = number_of(page, name, "outside");
    for (size_t i = 0; i < count; i++) {
        char worker[NAME_SIZE];
        (void)snprintf(worker, sizeof worker, "%zu", i);
        assert_int_equal(number_of(page, name, worker), read_counter(&workers[i], counter));
        sum += read_counter(&workers[i], counter);
    }
    assert_int_equal(sum, read_counter(total, counter));
    size_t samples = 0;
    for (size_t i = 0; i < page->count; i++) {
        if (strcmp(page->samples[i].name, name) == 0) {
            assert_true(page->samples[i].is_counter);
            assert_string_equal(page->samples[i].label, "worker");
            samples++;
        }
    }
    assert_int_equal(samples, count + 1);
}

/* Nothing must change meanwhile. */
static void assert_equal_to_stats(const struct page *page, skua_runtime *runtime, int expected)
{
#define COUNTER(name) {#name, offsetof(skua_stats, name)},
    static const struct counter counters[] = {SKUA_STATS_MAP(COUNTER)};
#undef COUNTER
    skua_stats total;
    skua_stats workers[WORKERS_MAX];
    assert_int_equal(skua_stats_read(runtime, &total, workers, COUNT_OF(workers)), expected);
    for (size_t i = 0; i < COUNT_OF(counters); i++) {
        assert_counter(page, &counters[i], &total, workers, (size_t)expected);
    }
    assert_int_equal(number_of(page, "skua_processes", ""), total.live);
    assert_int_equal(page->families, COUNT_OF(counters) + 7); /* the gauges */
}

/* Gauges of a runtime in which nothing is queued. */
static void assert_gauges(const struct page *page, skua_runtime *runtime, uint64_t spares)
{
    skua_runtime_config config;
    assert_int_equal(skua_runtime_config_read(runtime, &config), 0);
    assert_int_equal(number_of(page, "skua_process_limit", ""), config.process_limit);
    assert_int_equal(number_of(page, "skua_workers", "worker"), config.worker_count);
    assert_int_equal(number_of(page, "skua_workers", "spare"), spares);
    assert_int_equal(number_of(page, "skua_descriptors_waiting", ""), 0);
    assert_int_equal(number_of(page, "skua_build_info", skua_version()), 1);
    for (uint64_t i = 0; i < config.worker_count + spares; i++) {
        char worker[NAME_SIZE];
        (void)snprintf(worker, sizeof worker, "%" PRIu64, i);
        assert_int_equal(number_of(page, "skua_worker_queue_length", worker), 0);
    }
}

/* ---- a program that leaves its traces ---- */

#define CHILDREN 500

static int child_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                      skua_step *out)
{
    (void)self;
    (void)ctx;
    (void)events;
    if (count > 0) {
        skua_step_done(out, skua_payload_empty(0));
    }
    return 0;
}

static const skua_process_type child_type = {.name = "child", .step = child_step};

static void start_children(void *arg, skua_context *ctx, skua_step *out)
{
    (void)arg;
    (void)out;
    for (int i = 0; i < CHILDREN; i++) {
        skua_pid pid = {0};
        (void)skua_context_spawn(ctx, &child_type, NULL, NULL, 0, &pid);
        (void)skua_context_send(ctx, pid, skua_payload_empty(0));
    }
}

static struct page page;

TEST(metrics_of_a_stopped_runtime_are_its_statistics)
{
    const uint32_t workers = test_workers();
    struct api api;
    api_run(&api, workers);
    api_in_step(&api, start_children, NULL);
    api_wait_live(&api, 0);
    assert_int_equal(skua_runtime_stop(api.runtime, SKUA_FOREVER), 0);

    read_metrics(&page, api.runtime);

    assert_equal_to_stats(&page, api.runtime, (int)workers);
    assert_gauges(&page, api.runtime, 0);
    assert_int_equal(number_of(&page, "skua_spawned_total", "outside"), 1);
    assert_true(number_of(&page, "skua_runtime_age_seconds", "") > 0);
    api_stop(&api);
}

TEST(metrics_of_a_runtime_that_was_not_started_are_zero)
{
    struct api api;
    api_create(&api, (skua_runtime_config){.worker_count = 3, .process_limit = 1234});

    read_metrics(&page, api.runtime);

    assert_equal_to_stats(&page, api.runtime, 3);
    assert_gauges(&page, api.runtime, 0);
    assert_int_equal(number_of(&page, "skua_process_limit", ""), 1234);
    for (size_t i = 0; i < page.count; i++) {
        assert_false(page.samples[i].is_counter && page.samples[i].number != 0);
    }
    assert_int_equal(skua_runtime_destroy(api.runtime), 0);
}

TEST(metrics_of_a_simulation_are_its_statistics)
{
    struct sim_scene scene;
    sim_begin(&scene, 1, (skua_sim_faults){0});
    const skua_pid pid = api_submit(&scene.api, &child_type, NULL);
    sim_run_to_rest(&scene);

    read_metrics(&page, scene.runtime);

    assert_equal_to_stats(&page, scene.runtime, 1);
    assert_gauges(&page, scene.runtime, 0);
    assert_int_equal(number_of(&page, "skua_processes", ""), 1);
    assert_int_equal(skua_message_send(scene.runtime, pid, skua_payload_empty(0)), 0);
    sim_run_to_rest(&scene);
    sim_end(&scene);
}

/* More than any test could wait for, so it is put there. */
TEST(metrics_have_times_in_seconds)
{
    static char text[TEXT_MAX];
    struct api api;
    api_create(&api, (skua_runtime_config){.worker_count = 2});
    struct scheduler *sched = &api.runtime->sched;
    store_relaxed(&sched->workers[1].stats.searching_ns, UINT64_C(12345678901));
    store_relaxed(&sched->workers[1].stats.busy_ns, UINT64_C(1000000007));
    assert_in_range(skua_metrics_format(api.runtime, text, sizeof text), 1, sizeof text - 1);
    assert_non_null(strstr(text, "\nskua_searching_seconds_total{worker=\"1\"} 12.345678901\n"));
    assert_non_null(strstr(text, "\nskua_busy_seconds_total{worker=\"1\"} 1.000000007\n"));
    assert_int_equal(skua_runtime_destroy(api.runtime), 0);
}

/* ---- while it runs ---- */

/* Keeps the only worker while three processes wait in its queue. */
struct crowd {
    struct tally queued;
    struct tally released;
};

static int crowd_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                      skua_step *out)
{
    struct crowd *crowd = api_world(self);
    (void)events;
    (void)count;
    for (int i = 0; i < 3; i++) {
        skua_pid pid = {0};
        (void)skua_context_spawn(ctx, &child_type, NULL, NULL, 0, &pid);
        (void)skua_context_send(ctx, pid, skua_payload_empty(0));
    }
    tally_add(&crowd->queued, 1);
    tally_wait(&crowd->released, 1);
    skua_step_done(out, skua_payload_empty(0));
    return 0;
}

static const skua_process_type crowd_type = {
    .name = "crowd", .state_size = sizeof(void *), .init = api_init_world, .step = crowd_step};

TEST(metrics_show_what_waits_for_a_worker)
{
    struct api api;
    struct crowd crowd;
    tally_init(&crowd.queued);
    tally_init(&crowd.released);
    api_run(&api, 1);
    (void)api_submit(&api, &crowd_type, &crowd);
    tally_wait(&crowd.queued, 1);

    read_metrics(&page, api.runtime);

    assert_int_equal(number_of(&page, "skua_worker_queue_length", "0"), 3);
    assert_int_equal(number_of(&page, "skua_processes", ""), 4);
    tally_add(&crowd.released, 1);
    api_wait_live(&api, 0);
    api_stop(&api);
}

/* Blocks in its step, and says so, until it is released. */
static void block(void *arg, skua_context *ctx, skua_step *out)
{
    struct api *api = arg;
    struct probe probe = {.habit = PROBE_ENDS};
    (void)out;
    (void)skua_blocking_begin(ctx);
    (void)probe_submit(api->runtime, &probe, NULL); /* only a spare worker can run it */
    while (atomic_load(&probe.closes) == 0) {
        (void)sched_yield();
    }
    (void)skua_blocking_end(ctx);
}

TEST(metrics_tell_spare_workers_from_others)
{
    struct api api;
    api_run(&api, 1);
    api_in_step(&api, block, &api);
    api_wait_live(&api, 0);
    assert_int_equal(skua_runtime_stop(api.runtime, SKUA_FOREVER), 0);

    read_metrics(&page, api.runtime);

    /* The step and the monitor may both have called one. */
    const int count = skua_stats_read(api.runtime, NULL, NULL, 0);
    assert_in_range(count, 2, 3);
    assert_equal_to_stats(&page, api.runtime, count);
    assert_gauges(&page, api.runtime, (uint64_t)count - 1);
    api_stop(&api);
}

/* Starts others in each of its steps, until it is told to finish. */
static int busy_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                     skua_step *out)
{
    (void)self;
    if (!api_finish_if_cancelled(events, count, out)) {
        skua_pid pid = {0};
        (void)skua_context_spawn(ctx, &child_type, NULL, NULL, 0, &pid);
        (void)skua_context_send(ctx, pid, skua_payload_empty(0));
        skua_step_continue(out);
    }
    return 0;
}

static const skua_process_type busy_type = {.name = "busy", .step = busy_step};

TEST(metrics_can_be_read_while_everything_runs)
{
    uint64_t steps = 0;
    struct api api;
    api_run(&api, 2);
    const skua_pid busy = api_submit(&api, &busy_type, NULL);
    for (int i = 0; i < 100; i++) {
        api_wait_steps(&api, busy, (uint64_t)i);
        read_metrics(&page, api.runtime);
        const uint64_t now =
            number_of(&page, "skua_steps_total", "0") + number_of(&page, "skua_steps_total", "1");
        assert_true(now >= steps && now >= (uint64_t)i);
        steps = now;
    }
    assert_int_equal(skua_process_cancel(api.runtime, busy, SKUA_E_CANCELLED), 0);
    api_wait_live(&api, 0);
    api_stop(&api);
}

/* ---- the arguments ---- */

TEST(metrics_are_cut_as_snprintf_cuts)
{
    static char whole[TEXT_MAX];
    static char part[TEXT_MAX];
    struct api api;
    api_create(&api, (skua_runtime_config){.worker_count = 2});
    const int length = skua_metrics_format(api.runtime, whole, sizeof whole);
    assert_in_range(length, 1, sizeof whole - 1);
    assert_int_equal(skua_metrics_format(api.runtime, NULL, 0), length);
    const size_t age = (size_t)(strstr(whole, "\nskua_runtime_age_seconds ") - whole);
    const size_t sizes[] = {1, 2, age, (size_t)length - 1, (size_t)length, (size_t)length + 1};
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        memset(part, '#', sizeof part);
        assert_int_equal(skua_metrics_format(api.runtime, part, sizes[i]), length);
        const size_t kept = sizes[i] - 1 < (size_t)length ? sizes[i] - 1 : (size_t)length;
        assert_int_equal(strlen(part), kept);
        assert_memory_equal(part, whole, kept < age ? kept : age); /* the age has changed */
        assert_int_equal(part[kept + 1], '#');
    }
    assert_int_equal(skua_runtime_destroy(api.runtime), 0);
}

TEST(metrics_without_a_runtime_or_a_buffer_are_refused)
{
    char text[8] = "before";
    struct api api;
    api_create(&api, (skua_runtime_config){.worker_count = 1});
    assert_int_equal(skua_metrics_format(NULL, text, sizeof text), SKUA_E_INVALID);
    assert_int_equal(skua_metrics_format(NULL, NULL, 0), SKUA_E_INVALID);
    assert_int_equal(skua_metrics_format(api.runtime, NULL, 1), SKUA_E_INVALID);
    assert_string_equal(text, "before");
    assert_true(skua_metrics_format(api.runtime, text, 0) > 0);
    assert_string_equal(text, "before");
    assert_int_equal(skua_runtime_destroy(api.runtime), 0);
}
