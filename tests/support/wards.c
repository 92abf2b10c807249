/* SPDX-License-Identifier: MIT */
#include "wards.h"

#include <pthread.h>
#include <skua/clock.h>
#include <stdio.h>

#define DIARY_MAX 4096

enum { WARD_FAIL = 1, WARD_FINISH };
enum { TAG_READY = 1, TAG_STOP };

/* Of the test; wards write from several workers. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct ward wards[WARDS_MAX];
static char diary[DIARY_MAX];
static size_t diary_length;
static void (*watcher)(char sign, char letter);

void wards_open(void)
{
    memset(wards, 0, sizeof wards);
    memset(diary, 0, sizeof diary);
    diary_length = 0;
    watcher = NULL;
}

void wards_watch(void (*watch)(char sign, char letter))
{
    watcher = watch;
}

struct ward *ward_of(char letter)
{
    return &wards[letter - 'a'];
}

static void watch_locked(char sign, char letter)
{
    if (watcher != NULL) {
        watcher(sign, letter);
    }
}

static void write_locked(char sign, char letter)
{
    watch_locked(sign, letter);
    if (diary_length + 3 < DIARY_MAX) {
        diary[diary_length++] = sign;
        diary[diary_length++] = letter;
    }
}

void diary_write(char sign, char letter)
{
    (void)pthread_mutex_lock(&lock);
    write_locked(sign, letter);
    (void)pthread_mutex_unlock(&lock);
}

/* ---- the process ---- */

struct ward_state {
    char letter;
    bool is_known; /* its start is in the diary */
    int reason;    /* of the cancel that it obeys later */
};

static int init_ward(void *self, skua_context *ctx, skua_payload *input, size_t count)
{
    struct ward_state *state = self;
    state->letter = (char)skua_payload_to_u64(&input[0]);
    (void)count;
    (void)pthread_mutex_lock(&lock);
    struct ward *own = ward_of(state->letter);
    int error = 0;
    if (own->habits.init_failures > 0) {
        own->habits.init_failures--;
        error = own->habits.init_error;
    } else {
        own->starts++;
        own->lives++;
        own->pid = skua_self(ctx);
        own->started_at = skua_now(ctx);
        state->is_known = true;
    }
    write_locked(error == 0 ? '+' : '!', state->letter);
    (void)pthread_mutex_unlock(&lock);
    return error;
}

static void watch(char sign, char letter)
{
    (void)pthread_mutex_lock(&lock);
    watch_locked(sign, letter);
    (void)pthread_mutex_unlock(&lock);
}

static int get_ready(const struct ward_state *state, skua_context *ctx)
{
    const int error = skua_ready(ctx);
    if (error == 0) {
        watch('r', state->letter);
    }
    return error;
}

static int begin_ward(const struct ward_state *state, const struct ward_habits *habits,
                      skua_context *ctx)
{
    if (habits->is_never_ready) {
        return 0;
    }
    return habits->ready_after_ns == 0 ? get_ready(state, ctx)
                                       : skua_yield_sleep(ctx, TAG_READY, habits->ready_after_ns);
}

static int obey(struct ward_state *state, const struct ward_habits *habits, skua_context *ctx,
                int reason)
{
    watch('c', state->letter);
    if (habits->ignores_cancel) {
        return 0;
    }
    state->reason = reason;
    return habits->stops_after_ns == 0 ? reason
                                       : skua_yield_sleep(ctx, TAG_STOP, habits->stops_after_ns);
}

static int take_ward_event(struct ward_state *state, skua_context *ctx, const skua_event *event)
{
    const struct ward_habits *habits = &ward_of(state->letter)->habits;
    switch (event->type) {
    case SKUA_EVENT_START:
        return begin_ward(state, habits, ctx);
    case SKUA_EVENT_COMPLETION:
        return event->tag == TAG_READY ? get_ready(state, ctx) : state->reason;
    case SKUA_EVENT_CANCEL:
        return obey(state, habits, ctx, event->error);
    case SKUA_EVENT_MESSAGE:
        return event->payload.type == WARD_FAIL ? (int)(int64_t)skua_payload_to_u64(&event->payload)
                                                : skua_done(ctx, skua_nothing());
    default:
        return 0;
    }
}

static int step_ward(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    int error = 0;
    for (size_t i = 0; i < count && error == 0; i++) {
        error = take_ward_event(self, ctx, &events[i]);
    }
    return error;
}

static void close_ward(void *self, skua_context *ctx, const skua_exit *exit)
{
    const struct ward_state *state = self;
    (void)ctx;
    if (state->is_known) {
        (void)pthread_mutex_lock(&lock);
        ward_of(state->letter)->lives--;
        ward_of(state->letter)->exit_error = exit->error;
        write_locked('-', state->letter);
        (void)pthread_mutex_unlock(&lock);
    }
}

#define WARD_TYPE(text)                                                                            \
    {                                                                                              \
        .name = (text), .state_size = sizeof(struct ward_state), .init = init_ward,                \
        .step = step_ward, .close = close_ward, .cancel = SKUA_CANCEL_EVENT,                       \
    }

const skua_process_type ward_type = WARD_TYPE("ward");
const skua_process_type other_ward_type = WARD_TYPE("other ward");

/* ---- specifications ---- */

skua_payload ward_input(char letter)
{
    return skua_payload_u64(0, (uint64_t)letter);
}

skua_child ward(char letter)
{
    static skua_payload inputs[WARDS_MAX];
    static char names[WARDS_MAX][2];
    const size_t number = (size_t)(letter - 'a');
    inputs[number] = ward_input(letter);
    names[number][0] = letter;
    return (skua_child){
        .name = names[number], .type = &ward_type, .input = &inputs[number], .input_count = 1};
}

static const skua_child *children_copy(const skua_child *children, size_t count)
{
    skua_child *copy = count > 0 ? test_alloc(count * sizeof *copy) : NULL;
    if (count > 0) {
        memcpy(copy, children, count * sizeof *copy);
    }
    return copy;
}

const skua_supervisor *specification_copy(skua_supervisor specification)
{
    skua_supervisor *copy = test_alloc(sizeof *copy);
    *copy = specification;
    copy->children = children_copy(specification.children, specification.child_count);
    copy->templates = children_copy(specification.templates, specification.template_count);
    return copy;
}

skua_pid supervise(skua_supervisor specification)
{
    skua_pid pid;
    assert_int_equal(
        skua_process_start_supervisor(world_runtime(), specification_copy(specification), &pid), 0);
    world_settle();
    return pid;
}

/* ---- what is done to them ---- */

int ward_tell(char letter, int error)
{
    return world_send(ward_of(letter)->pid,
                      error == 0 ? skua_payload_empty(WARD_FINISH)
                                 : skua_payload_u64(WARD_FAIL, (uint64_t)(int64_t)error));
}

void ward_fail(char letter, int error)
{
    assert_int_equal(ward_tell(letter, error), 0);
    world_settle();
}

void ward_finish(char letter)
{
    ward_fail(letter, 0);
}

void ward_kill(char letter)
{
    assert_int_equal(world_terminate(ward_of(letter)->pid), 0);
    world_settle();
}

/* ---- the diary ---- */

static void take_diary(char text[DIARY_MAX])
{
    (void)pthread_mutex_lock(&lock);
    memcpy(text, diary, DIARY_MAX);
    memset(diary, 0, sizeof diary);
    diary_length = 0;
    (void)pthread_mutex_unlock(&lock);
}

void assert_diary(const char *expected)
{
    char text[DIARY_MAX];
    take_diary(text);
    assert_string_equal(text, expected);
}

static int compare_entries(const void *one, const void *other)
{
    return memcmp(one, other, 2);
}

void assert_diary_in_any_order(const char *expected)
{
    char text[DIARY_MAX];
    char sorted[DIARY_MAX];
    take_diary(text);
    (void)snprintf(sorted, sizeof sorted, "%s", expected);
    qsort(text, strlen(text) / 2, 2, compare_entries);
    qsort(sorted, strlen(sorted) / 2, 2, compare_entries);
    assert_string_equal(text, sorted);
}

/* ---- reports ---- */

skua_child_report report_on(skua_pid supervisor, const char *name)
{
    skua_payload report;
    skua_child_report child = {.state = 0};
    assert_int_equal(skua_supervisor_report(world_runtime(), supervisor, SKUA_FOREVER, &report), 0);
    size_t i = 0;
    while (skua_report_child(&report, i, &child) == 0 && strcmp(child.name, name) != 0) {
        i++;
    }
    assert_true(i < skua_report_count(&report)); /* there is one of this name */
    skua_payload_drop(&report);
    return child;
}

size_t report_size(skua_pid supervisor)
{
    skua_payload report;
    assert_int_equal(skua_supervisor_report(world_runtime(), supervisor, SKUA_FOREVER, &report), 0);
    const size_t count = skua_report_count(&report);
    skua_payload_drop(&report);
    return count;
}
