/* SPDX-License-Identifier: MIT */
/* Quotas with whatever goes on under them: processes that start others, send in all ways, defer,
 * call, own memory, set quotas within the quota, change their types, and end. At every moment no
 * more is in use than the limits say; in the end, nothing. In many small simulations with kills,
 * delays and without memory, and on threads. */
#include <pthread.h>
#include <skua/clock.h>
#include <skua/sim.h>
#include <skua/task.h>
#include <skua/upgrade.h>

#include "effort.h"
#include "quotas.h"

#define SEEDS         EFFORT(3000)
#define THREAD_ROUNDS EFFORT(60)
#define BIRTHS        12 /* of roamers that the top starts by itself */
#define KNOWN         16
#define MOMENT        SKUA_MICROSECOND

static const skua_quota top_quota = {.processes = 6, .messages = 7, .bytes = 600};

/* Processes that others know; some have ended. */
static struct {
    pthread_mutex_t lock;
    skua_pid pids[KNOWN];
    skua_pid top;
} known = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* What the tests have seen at all. */
static struct {
    atomic_uint processes;
    atomic_uint messages;
    atomic_uint bytes;
    atomic_uint deferred;
    atomic_uint nested;
    atomic_uint changed;
} seen;

static void get_known(skua_pid pid, uint64_t place)
{
    (void)pthread_mutex_lock(&known.lock);
    known.pids[place % KNOWN] = pid;
    (void)pthread_mutex_unlock(&known.lock);
}

static skua_pid somebody(uint64_t place)
{
    (void)pthread_mutex_lock(&known.lock);
    const skua_pid pid = known.pids[place % KNOWN];
    (void)pthread_mutex_unlock(&known.lock);
    return pid;
}

static void check_limits(skua_runtime *runtime, skua_pid pid)
{
    skua_quota_use use;
    if (skua_process_quota(runtime, pid, &use) == 0) {
        assert_true(use.limit.processes == 0 || use.used.processes <= use.limit.processes);
        assert_true(use.limit.messages == 0 || use.used.messages <= use.limit.messages);
        assert_true(use.limit.bytes == 0 || use.used.bytes <= use.limit.bytes);
    }
}

static void note_error(int error)
{
    seen.processes += error == SKUA_E_PROCESS_QUOTA;
    seen.messages += error == SKUA_E_MESSAGE_QUOTA;
    seen.bytes += error == SKUA_E_MEMORY_QUOTA;
}

/* ---- roamers ---- */

struct roamer {
    uint32_t steps_left;
    bool has_changed;
    void *memory;
    uint64_t tag;
};

static const skua_process_type roamer_types[4];
static const skua_process_type roamer_next;
static const skua_process_type roaming_task;

static int roamer_init(void *self, skua_context *ctx, skua_payload *input, size_t count)
{
    struct roamer *roamer = self;
    (void)input;
    (void)count;
    const uint64_t random = skua_random(ctx);
    roamer->steps_left = (uint32_t)(1 + random % 12);
    get_known(skua_self(ctx), random >> 32);
    if (random / 16 % 4 == 0) {
        note_error(skua_own_alloc(ctx, 1 + random / 64 % 100, &roamer->memory));
    }
    return random / 1024 % 16 == 0 ? SKUA_E_USER : 0;
}

static void use_memory(struct roamer *roamer, skua_context *ctx, uint64_t random)
{
    if (roamer->memory != NULL && random % 2 == 0) {
        assert_int_equal(skua_own_free(ctx, roamer->memory), 0);
        roamer->memory = NULL;
    } else {
        note_error(skua_own_alloc(ctx, 1 + random / 2 % 200, &roamer->memory));
    }
}

static void grant(skua_context *ctx, uint64_t random)
{
    const skua_quota quota = {.processes = (uint32_t)(random % 3),
                              .messages = (uint32_t)(random / 4 % 3),
                              .bytes = random / 16 % 3 * 100};
    seen.nested += skua_limit(ctx, quota) == 0;
}

static void start_one(skua_context *ctx, uint64_t random)
{
    const skua_process_type *types[] = {&roamer_types[0], &roamer_types[1], &roamer_types[2],
                                        &roamer_types[3], &roaming_task};
    note_error(skua_spawn(ctx, types[random % 5], skua_nothing(), NULL));
}

static void act(struct roamer *roamer, skua_context *ctx)
{
    const uint64_t random = skua_random(ctx);
    const skua_pid to = somebody(random >> 40);
    const skua_payload payload = skua_payload_u64((uint32_t)(random / 16 % 2), random);
    const uint64_t tag = ++roamer->tag;
    switch (random % 12) {
    case 0:
    case 1:
        start_one(ctx, random / 16);
        break;
    case 2:
        note_error(skua_send_urgent(ctx, to, payload));
        break;
    case 3:
        (void)!skua_yield_call(ctx, tag, to, payload, random / 16 % 4 * MOMENT);
        break;
    case 4:
        (void)!skua_yield_send(ctx, tag, to, payload, random / 16 % 4 * MOMENT);
        break;
    case 5:
        use_memory(roamer, ctx, random / 16);
        break;
    case 6:
        grant(ctx, random / 16);
        break;
    case 7:
        if (!roamer->has_changed) {
            (void)!skua_become(ctx, &roamer_next);
        }
        break;
    case 8:
        (void)skua_resume(ctx);
        break;
    default:
        note_error(skua_send(ctx, to, payload));
        break;
    }
}

static void take(struct roamer *roamer, skua_context *ctx, skua_event *event)
{
    const uint64_t random = skua_random(ctx);
    const bool defers = random % 3 == 0;
    (void)roamer;
    note_error(event->type == SKUA_EVENT_COMPLETION ? event->error : 0);
    if (event->type == SKUA_EVENT_MESSAGE || event->type == SKUA_EVENT_CALL) {
        const int error = defers ? skua_defer(ctx, event) : SKUA_E_USER;
        note_error(error);
        seen.deferred += error == 0;
        if (error != 0 && event->type == SKUA_EVENT_CALL && random / 4 % 3 != 0) {
            (void)skua_reply(ctx, event->request, 0, skua_nothing());
        }
    }
}

static int roamer_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    struct roamer *roamer = self;
    for (size_t i = 0; i < count; i++) {
        take(roamer, ctx, &events[i]);
    }
    for (uint64_t i = skua_random(ctx) % 5; i > 0; i--) {
        act(roamer, ctx);
        check_limits(skua_runtime_of(ctx), known.top);
        check_limits(skua_runtime_of(ctx), somebody(skua_random(ctx)));
    }
    if (roamer->steps_left-- <= 1) {
        return skua_random(ctx) % 2 == 0 ? SKUA_E_USER : skua_done(ctx, skua_nothing());
    }
    const int error = skua_yield_sleep(ctx, 0, skua_random(ctx) % 4 * MOMENT);
    return error == SKUA_E_NO_MEMORY ? skua_continue(ctx) : 0;
}

static int roamer_migrate(uint32_t old_version, const void *old_state, void *new_state,
                          skua_context *ctx)
{
    (void)old_version;
    (void)ctx;
    *(struct roamer *)new_state = *(const struct roamer *)old_state;
    ((struct roamer *)new_state)->has_changed = true;
    seen.changed++;
    return 0;
}

#define ROAMER(overflow_)                                                                          \
    .state_size = sizeof(struct roamer), .init = roamer_init, .step = roamer_step, .calls = true,  \
    .urgent = true, .mailbox_limit = 3, .overflow = (overflow_)

static const skua_process_type roamer_types[4] = {
    {.name = "refusing", ROAMER(SKUA_OVERFLOW_REFUSE)},
    {.name = "dropping new", ROAMER(SKUA_OVERFLOW_DROP_NEW)},
    {.name = "dropping old", ROAMER(SKUA_OVERFLOW_DROP_OLD)},
    {.name = "ending", ROAMER(SKUA_OVERFLOW_END)},
};

static const skua_process_type roamer_next = {
    .name = "next", ROAMER(SKUA_OVERFLOW_DROP_OLD), .migrate = roamer_migrate, .version = 2};

/* ---- the same as a task, which puts messages aside ---- */

static int roam(void *self, skua_context *ctx)
{
    struct roamer *roamer = self;
    int error = 0;
    while ((error == 0 || error == SKUA_E_TIMEOUT) && roamer->steps_left-- > 1) {
        skua_event *event;
        error = skua_random(ctx) % 2 == 0 ? skua_task_receive(ctx, &event, 3 * MOMENT)
                                          : skua_task_receive_type(ctx, 1, &event, 3 * MOMENT);
        if (error == 0) {
            take(roamer, ctx, event);
        }
        note_error(skua_send(ctx, somebody(skua_random(ctx)), skua_payload_u64(1, 1)));
        start_one(ctx, skua_random(ctx));
        check_limits(skua_runtime_of(ctx), known.top);
    }
    return 0;
}

static const skua_process_type roaming_task = {.name = "task",
                                               .state_size = sizeof(struct roamer),
                                               .init = roamer_init,
                                               .main = roam,
                                               .calls = true,
                                               .urgent = true,
                                               .mailbox_limit = 3,
                                               .stack_size = (size_t)256 << 10};

/* ---- the top ---- */

static struct tally top_rests; /* how often it has started its last ones */

static int top_init(void *self, skua_context *ctx, skua_payload *input, size_t count)
{
    (void)self;
    (void)input;
    (void)count;
    known.top = skua_self(ctx);
    return skua_limit(ctx, top_quota);
}

static int top_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    unsigned *born = self;
    (void)events;
    (void)count;
    start_one(ctx, skua_random(ctx));
    start_one(ctx, skua_random(ctx));
    if (*born >= BIRTHS) {
        tally_add(&top_rests, 1);
        return 0;
    }
    ++*born;
    const int error = skua_yield_sleep(ctx, 0, skua_random(ctx) % 8 * MOMENT);
    return error == SKUA_E_NO_MEMORY ? skua_continue(ctx) : 0;
}

static const skua_process_type top_type = {
    .name = "top", .state_size = sizeof(unsigned), .init = top_init, .step = top_step};

static void start_top(void)
{
    memset(known.pids, 0, sizeof known.pids);
    tally_init(&top_rests);
    assert_int_equal(skua_process_submit(world_runtime(), &top_type, skua_nothing(), NULL), 0);
}

/* ---- in the simulator ---- */

static bool may_kill(void *arg, const skua_process_snapshot *process)
{
    (void)arg;
    return !skua_pid_equal(process->pid, known.top);
}

static void ignore_record(void *arg, const skua_sim_record *record)
{
    (void)arg;
    (void)record;
}

static void ignore_log(void *arg, const skua_log *log)
{
    (void)arg;
    (void)log;
}

static void run_seed(uint64_t seed)
{
    const skua_sim_config sim = {
        .faults = {.message_delay = (uint32_t)(seed % 3) * 100000,
                   .no_memory = (uint32_t)(seed % 5) * 10000,
                   .process_kill = (uint32_t)(seed % 4) * 10000,
                   .spurious_wake = (uint32_t)(seed % 2) * 20000,
                   .delay_max_ns = 10 * MOMENT,
                   .may_kill = may_kill},
        .step_ns = 100,
        .on_record = ignore_record,
    };
    world_open_with((skua_runtime_config){.seed = seed, .on_log = ignore_log, .sim = &sim});
    start_top();
    world_settle();
    assert_int_equal(world_stats().live, 1);
    assert_used(known.top, 0, 0, 0);
}

TEST(no_quota_is_exceeded_and_all_is_given_back)
{
    memset(&seen, 0, sizeof seen);
    FOR_ROUNDS (seed, SEEDS) {
        run_seed(seed);
    }
    assert_true(seen.processes > SEEDS && seen.messages > SEEDS / 4 && seen.bytes > SEEDS / 10);
    assert_true(seen.deferred > SEEDS && seen.nested > SEEDS / 4 && seen.changed > SEEDS / 10);
}

/* ---- on threads ---- */

TEST(no_quota_is_exceeded_on_threads)
{
    FOR_ROUNDS (round, THREAD_ROUNDS) {
        world_open_with((skua_runtime_config){.seed = round, .on_log = ignore_log});
        start_top();
        for (unsigned i = 0; i < 2000; i++) {
            note_error(world_send(somebody(i), skua_payload_u64(0, i)));
            check_limits(world_runtime(), known.top);
            if (i % 64 == 0) {
                (void)skua_process_terminate(world_runtime(), somebody(i / 64));
            }
        }
        for (size_t i = 0; i < KNOWN; i++) {
            (void)skua_process_cancel(world_runtime(), somebody(i), 0);
        }
        tally_wait(&top_rests, 1);
        world_await_live(1);
        assert_used(known.top, 0, 0, 0);
    }
}
