/* SPDX-License-Identifier: MIT */
/* The statistics as Prometheus text: read by a strict little reader, compared with the numbers of
 * skua_stats_read, and cut where the buffer ends. */
#include <inttypes.h>
#include <regex.h>
#include <stdio.h>

#include "actor.h"
#include "echo.h"
#include "runtime/runtime.h"

#define TEXT_MAX    ((size_t)1 << 17)
#define METRIC_SIZE 80
#define SAMPLES_MAX 2000
#define WORKERS_MAX 4

/* ---- the reader ---- */

struct sample {
    char name[METRIC_SIZE];
    char label[METRIC_SIZE]; /* its name; empty: there is none */
    char value[METRIC_SIZE]; /* of the label */
    uint64_t number;         /* of seconds: nanoseconds */
    bool is_counter;
};

static struct {
    struct sample samples[SAMPLES_MAX];
    size_t count;
    size_t families;
} page;

enum { HELP, TYPE, SAMPLE };
enum { PART_NAME = 1, PART_TYPE, PART_LABEL = 3, PART_VALUE, PART_WHOLE = 6, PART_POINT, PARTS };

/* Whether a line is of this kind. The parts end where the next call begins. */
static bool is_line(const char *line, int kind, char (*parts)[METRIC_SIZE])
{
#define NAME "([A-Za-z_][A-Za-z0-9_]*)"
    static const char *const patterns[] = {
        [HELP] = "^# HELP " NAME " .+$",
        [TYPE] = "^# TYPE " NAME " (counter|gauge)$",
        [SAMPLE] = "^" NAME "(\\{" NAME "=\"(([^\"\\]|\\\\[\"\\n])*)\"\\})? "
                   "([0-9]+)(\\.[0-9]{9})?$",
    };
    static regex_t regexes[COUNT_OF(patterns)];
    static bool are_compiled;
    regmatch_t matches[PARTS];
    for (size_t i = 0; !are_compiled && i < COUNT_OF(patterns); i++) {
        assert_int_equal(regcomp(&regexes[i], patterns[i], REG_EXTENDED), 0);
    }
    are_compiled = true;
    if (regexec(&regexes[kind], line, PARTS, matches, 0) != 0) {
        return false;
    }
    for (size_t i = 0; i < PARTS; i++) {
        const int length = matches[i].rm_so < 0 ? 0 : (int)(matches[i].rm_eo - matches[i].rm_so);
        assert_true(i == 0 || length < METRIC_SIZE);
        (void)snprintf(parts[i], METRIC_SIZE, "%.*s", length,
                       line + (length > 0 ? matches[i].rm_so : 0));
    }
    return true;
}

static bool ends_with(const char *name, const char *end)
{
    const size_t length = strlen(name);
    return length > strlen(end) && strcmp(name + length - strlen(end), end) == 0;
}

static void assert_new_family(const char *family, bool is_counter)
{
    assert_memory_equal(family, "skua_", strlen("skua_"));
    assert_int_equal(ends_with(family, "_total"), is_counter);
    assert_false(ends_with(family, "_ns") || ends_with(family, "_ns_total"));
    for (size_t i = 0; i < page.count; i++) {
        assert_string_not_equal(page.samples[i].name, family);
    }
}

static void add_sample(char (*parts)[METRIC_SIZE], bool is_counter)
{
    const bool seconds = strstr(parts[PART_NAME], "_seconds") != NULL;
    assert_true(page.count < SAMPLES_MAX);
    struct sample *sample = &page.samples[page.count];
    *sample = (struct sample){.is_counter = is_counter};
    memcpy(sample->name, parts[PART_NAME], METRIC_SIZE);
    memcpy(sample->label, parts[PART_LABEL], METRIC_SIZE);
    memcpy(sample->value, parts[PART_VALUE], METRIC_SIZE);
    sample->number = strtoull(parts[PART_WHOLE], NULL, 10);
    assert_int_equal(parts[PART_POINT][0] != '\0', seconds);
    if (seconds) {
        sample->number = sample->number * SKUA_SECOND + strtoull(parts[PART_POINT] + 1, NULL, 10);
    }
    for (size_t i = 0; i < page.count; i++) {
        assert_false(strcmp(page.samples[i].name, sample->name) == 0 &&
                     strcmp(page.samples[i].value, sample->value) == 0);
    }
    page.count++;
}

/* Every family has its help, its type and at least one sample; names and samples are unique. */
static void read_page(char *text)
{
    char parts[PARTS][METRIC_SIZE];
    char family[METRIC_SIZE] = "";
    bool is_counter = false;
    size_t samples = 1; /* of the family */
    page.count = 0;
    page.families = 0;
    assert_int_equal(text[strlen(text) - 1], '\n');
    for (char *line = strsep(&text, "\n"); text != NULL; line = strsep(&text, "\n")) {
        if (is_line(line, HELP, parts)) {
            assert_true(samples > 0);
            memcpy(family, parts[PART_NAME], METRIC_SIZE);
            line = strsep(&text, "\n");
            assert_true(is_line(line, TYPE, parts));
            is_counter = strcmp(parts[PART_TYPE], "counter") == 0;
            assert_new_family(family, is_counter);
            page.families++;
            samples = 0;
        } else if (is_line(line, SAMPLE, parts)) {
            add_sample(parts, is_counter);
            samples++;
        } else {
            fail_msg("a line that is none: %s", line);
        }
        assert_string_equal(parts[PART_NAME], family);
    }
    assert_true(samples > 0);
}

static void read_metrics(void)
{
    static char text[TEXT_MAX];
    const int length = skua_metrics_format(world_runtime(), text, sizeof text);
    assert_in_range(length, 1, sizeof text - 1);
    assert_int_equal(strlen(text), length);
    read_page(text);
}

/* The one sample of this name whose label has this value (empty: without a label). */
static uint64_t number_of(const char *name, const char *value)
{
    for (size_t i = 0; i < page.count; i++) {
        const struct sample *sample = &page.samples[i];
        if (strcmp(sample->name, name) == 0 && strcmp(sample->value, value) == 0) {
            return sample->number;
        }
    }
    fail_msg("no %s of %s", name, value);
    return 0;
}

static uint64_t number_of_worker(const char *name, size_t worker)
{
    char value[METRIC_SIZE];
    (void)snprintf(value, sizeof value, "%zu", worker);
    return number_of(name, value);
}

/* ---- the same numbers as skua_stats_read ---- */

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

/* skua_<counter>_total; of nanoseconds, skua_<..>_seconds_total. */
static void assert_counter(const struct counter *counter, const skua_stats *total,
                           const skua_stats *workers, size_t count)
{
    char name[METRIC_SIZE];
    const bool seconds = ends_with(counter->name, "_ns");
    const size_t stem = strlen(counter->name) - (seconds ? strlen("_ns") : 0);
    (void)snprintf(name, sizeof name, "skua_%.*s%s_total", (int)stem, counter->name,
                   seconds ? "_seconds" : "");
    uint64_t sum = number_of(name, "outside");
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(number_of_worker(name, i), read_counter(&workers[i], counter));
        sum += read_counter(&workers[i], counter);
    }
    assert_int_equal(sum, read_counter(total, counter));
    size_t samples = 0;
    for (size_t i = 0; i < page.count; i++) {
        if (strcmp(page.samples[i].name, name) == 0) {
            assert_true(page.samples[i].is_counter);
            assert_string_equal(page.samples[i].label, "worker");
            samples++;
        }
    }
    assert_int_equal(samples, count + 1);
}

/* Nothing must change meanwhile, and nothing is queued. */
static void assert_page_is_right(uint32_t spares)
{
#define COUNTER(name) {#name, offsetof(skua_stats, name)},
    static const struct counter counters[] = {SKUA_STATS_MAP(COUNTER)};
#undef COUNTER
    skua_stats total;
    skua_stats workers[WORKERS_MAX];
    skua_runtime_config config;
    assert_int_equal(skua_runtime_config_read(world_runtime(), &config), 0);
    const size_t count = config.worker_count + spares;
    assert_int_equal(skua_stats_read(world_runtime(), &total, workers, WORKERS_MAX), count);
    for (size_t i = 0; i < COUNT_OF(counters); i++) {
        assert_counter(&counters[i], &total, workers, count);
    }
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(number_of_worker("skua_worker_queue_length", i), 0);
    }
    assert_int_equal(page.families, COUNT_OF(counters) + 10); /* the gauges */
    assert_int_equal(number_of("skua_processes", ""), total.live);
    assert_int_equal(number_of("skua_process_limit", ""), config.process_limit);
    assert_int_equal(number_of("skua_workers", "worker"), config.worker_count);
    assert_int_equal(number_of("skua_workers", "spare"), spares);
    assert_int_equal(number_of("skua_descriptors_waiting", ""), 0);
    assert_int_equal(number_of("skua_build_info", skua_version()), 1);
}

/* ---- programs that leave their traces ---- */

/* Ends at the first message. No actor: some tests start them without end. */
static int child_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    if (events[count - 1].type == SKUA_EVENT_MESSAGE) {
        skua_done(ctx, skua_payload_empty(0));
    }
    return 0;
}

static const skua_process_type child_type = {.name = "child", .step = child_step};

static int start_children(struct turn *turn, const struct act *act)
{
    int error = 0;
    for (uint64_t i = 0; i < act->number && error == 0; i++) {
        skua_pid pid = {0};
        error = skua_spawn(turn->ctx, &child_type, skua_nothing(), &pid);
        error = error != 0 ? error : skua_send(turn->ctx, pid, skua_payload_empty(0));
    }
    return error;
}

static struct act starts_children(uint64_t count)
{
    return (struct act){.perform = start_children, .number = count};
}

TEST(metrics_of_a_stopped_runtime_are_its_statistics)
{
    world_open();
    (void)actor_start(ACTS(starts_children(500), finishes(0)));
    world_await_live(0);
    world_stop();
    read_metrics();
    assert_page_is_right(0);
    assert_int_equal(number_of("skua_spawned_total", "outside"), 1);
    assert_true(number_of("skua_runtime_age_seconds", "") > 0);
}

TEST(metrics_of_a_runtime_that_was_not_started_are_zero)
{
    world_create((skua_runtime_config){.worker_count = 3, .process_limit = 1234});
    read_metrics();
    assert_page_is_right(0);
    assert_int_equal(number_of("skua_process_limit", ""), 1234);
    for (size_t i = 0; i < page.count; i++) {
        assert_false(page.samples[i].is_counter && page.samples[i].number != 0);
    }
}

TEST(metrics_of_a_simulation_are_its_statistics)
{
    world_open_sim(1, (skua_sim_faults){0});
    (void)actor_start(NO_ACTS);
    world_settle();
    read_metrics();
    assert_page_is_right(0);
    assert_int_equal(number_of("skua_processes", ""), 1);
}

/* More than any test could wait for, so it is put there. */
TEST(metrics_have_times_in_seconds)
{
    static char text[TEXT_MAX];
    world_create((skua_runtime_config){.worker_count = 2});
    struct scheduler *sched = &world_runtime()->sched;
    store_relaxed(&sched->workers[1].stats.searching_ns, UINT64_C(12345678901));
    store_relaxed(&sched->workers[1].stats.cpu_ns, UINT64_C(1000000007));
    assert_in_range(skua_metrics_format(world_runtime(), text, sizeof text), 1, sizeof text - 1);
    assert_non_null(strstr(text, "\nskua_searching_seconds_total{worker=\"1\"} 12.345678901\n"));
    assert_non_null(strstr(text, "\nskua_cpu_seconds_total{worker=\"1\"} 1.000000007\n"));
}

/* ---- while it runs ---- */

TEST(metrics_show_what_waits_for_a_worker)
{
    world_open_with((skua_runtime_config){.worker_count = 1});
    struct actor *actor = actor_start(ACTS(starts_children(3), holds(), finishes(0)));
    actor_await_held(actor, 1);
    read_metrics();
    assert_int_equal(number_of("skua_worker_queue_length", "0"), 3);
    assert_int_equal(number_of("skua_processes", ""), 4);
    actor_let_go(actor);
    world_await_live(0);
}

TEST(metrics_tell_spare_workers_from_others)
{
    world_open_with((skua_runtime_config){.worker_count = 1});
    struct actor *blocker = actor_start(ACTS(blocks(), finishes(0)));
    actor_await_held(blocker, 1);
    assert_result(actor_run(actor_new(ACTS(finishes(1)))), 1); /* only a spare worker can run it */
    actor_let_go(blocker);
    world_await_live(0);
    world_stop();
    read_metrics();
    /* The step and the monitor may both have called one. */
    const int count = skua_stats_read(world_runtime(), NULL, NULL, 0);
    assert_in_range(count, 2, 3);
    assert_page_is_right((uint32_t)count - 1);
}

TEST(metrics_can_be_read_while_everything_runs)
{
    uint64_t steps = 0;
    world_open_with((skua_runtime_config){.worker_count = 2});
    struct actor *busy = actor_start(ACTS(starts_children(1), continues(1), repeats(UINT64_MAX)));
    for (uint64_t i = 0; i < 100; i++) {
        api_wait_steps(world->api, busy->pid, i + 1); /* so many are over */
        read_metrics();
        const uint64_t now =
            number_of("skua_steps_total", "0") + number_of("skua_steps_total", "1");
        assert_true(now >= steps && now >= i);
        steps = now;
    }
    assert_int_equal(world_cancel(busy->pid, SKUA_E_CANCELLED), 0);
    world_await_live(0);
}

/* ---- the arguments ---- */

TEST(metrics_are_cut_as_snprintf_cuts)
{
    static char whole[TEXT_MAX];
    static char part[TEXT_MAX];
    world_create((skua_runtime_config){.worker_count = 2});
    const int written = skua_metrics_format(world_runtime(), whole, sizeof whole);
    assert_in_range(written, 1, sizeof whole - 1);
    assert_int_equal(skua_metrics_format(world_runtime(), NULL, 0), written);
    const size_t length = (size_t)written;
    const size_t age = (size_t)(strstr(whole, "\nskua_runtime_age_seconds ") - whole);
    const size_t sizes[] = {1, 2, age, length - 1, length, length + 1};
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        memset(part, '#', sizeof part);
        assert_int_equal(skua_metrics_format(world_runtime(), part, sizes[i]), written);
        const size_t kept = sizes[i] - 1 < length ? sizes[i] - 1 : length;
        assert_int_equal(strlen(part), kept);
        assert_memory_equal(part, whole, kept < age ? kept : age); /* the age has changed */
        assert_int_equal(part[kept + 1], '#');
    }
}

TEST(metrics_without_a_runtime_or_a_buffer_are_refused)
{
    char text[8] = "before";
    world_create((skua_runtime_config){.worker_count = 1});
    assert_int_equal(skua_metrics_format(NULL, text, sizeof text), SKUA_E_INVALID);
    assert_int_equal(skua_metrics_format(NULL, NULL, 0), SKUA_E_INVALID);
    assert_int_equal(skua_metrics_format(world_runtime(), NULL, 1), SKUA_E_INVALID);
    assert_string_equal(text, "before");
    assert_true(skua_metrics_format(world_runtime(), text, 0) > 0);
    assert_string_equal(text, "before");
}

/* The last write of an echoer is counted just after its peer has read. */
static bool has_counted(void *arg)
{
    const uint64_t *bytes = arg;
    return world_stats().sent_bytes == *bytes;
}

static uint64_t sum_of(const char *name)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < page.count; i++) {
        sum += strcmp(page.samples[i].name, name) == 0 ? page.samples[i].number : 0;
    }
    return sum;
}

TEST(metrics_count_sockets_and_what_goes_through_them)
{
    world_open();
    (void)echo_start();
    const int fd = echo_connect();
    (void)echo_connect();
    echo_exchange(fd, 1000);
    uint64_t bytes = 1000 + 2;
    wait_until(has_counted, &bytes, "the echo is counted");
    read_metrics();
    assert_int_equal(number_of("skua_sockets", ""), 3);
    assert_int_equal(number_of("skua_sockets_lingering", ""), 0);
    assert_int_equal(number_of("skua_turned_away_total", ""), 0);
    assert_int_equal(sum_of("skua_accepted_total"), 2);
    assert_int_equal(sum_of("skua_connected_total"), 0);
    assert_int_equal(sum_of("skua_received_bytes_total"), bytes);
    assert_int_equal(sum_of("skua_sent_bytes_total"), bytes);
}

TEST(metrics_count_both_ends_of_a_connection_within_the_program)
{
    world_open();
    (void)echo_start();
    (void)echo_dial();
    uint64_t bytes = 2 * sizeof(uint64_t);
    wait_until(has_counted, &bytes, "both writes are counted");
    read_metrics();
    assert_int_equal(number_of("skua_sockets", ""), 3);
    assert_int_equal(sum_of("skua_accepted_total"), 1);
    assert_int_equal(sum_of("skua_connected_total"), 1);
    assert_int_equal(sum_of("skua_received_bytes_total"), bytes);
}
