/* SPDX-License-Identifier: MIT */
/* The handlers and blocking functions of the programs. What takes a while is completed by the
 * simulator's agenda or, on threads, by a thread of this file. */
#include <pthread.h>
#include <stdlib.h>

#include "property.h"

#define LATER_MOMENTS 4

skua_pool pool_narrow; /* the last that is registered */

/* ---- completing ---- */

/* A completion that is refused was late; `must_count`: nothing could have come before this one. */
static void note_completion(struct request *request, int error, bool must_count)
{
    if (error == 0) {
        (void)fetch_add_relaxed(&request->completed, 1); /* see property.h */
    }
    if (error != 0 && (error != SKUA_E_LATE || must_count)) {
        fault("request %u: completing it: %s", request->number, skua_error_name(error));
    }
}

static void complete(struct request *request, skua_completion completion, uint64_t *random,
                     bool must_count)
{
    skua_payload result = skua_payload_empty(0);
    if (request->expected == 0) {
        result = letter_wrap(LETTER_RESULT, request->number, random);
    }
    note_completion(request,
                    skua_command_complete(world.runtime, completion, request->expected, result),
                    must_count);
}

/* ---- the thread that completes later ---- */

struct later {
    struct request *request;
    skua_completion completion;
};

static struct {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct later items[REQUESTS_MAX]; /* under lock, like the next two */
    uint32_t count;
    bool ends;
    uint64_t random;
} completer = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void add_later(struct request *request, skua_completion completion)
{
    (void)pthread_mutex_lock(&completer.lock);
    completer.items[completer.count++] = (struct later){request, completion};
    (void)pthread_cond_signal(&completer.changed);
    (void)pthread_mutex_unlock(&completer.lock);
}

/* In any order; false if there will be no more. */
static bool take_later(struct later *later)
{
    (void)pthread_mutex_lock(&completer.lock);
    while (completer.count == 0 && !completer.ends) {
        (void)pthread_cond_wait(&completer.changed, &completer.lock);
    }
    const bool found = completer.count > 0;
    if (found) {
        const uint32_t at = draw(&completer.random, completer.count);
        *later = completer.items[at];
        completer.items[at] = completer.items[--completer.count];
    }
    (void)pthread_mutex_unlock(&completer.lock);
    return found;
}

static void *complete_later(void *arg)
{
    (void)arg;
    struct later later;
    while (take_later(&later)) {
        complete(later.request, later.completion, &later.request->random, false);
        if (chance(&later.request->random, 20)) {
            complete(later.request, later.completion, &later.request->random, false);
        }
    }
    return NULL;
}

/* The calls that handlers were given. */
static struct {
    pthread_mutex_t lock;
    struct later items[REQUESTS_MAX]; /* under lock, like the next */
    uint32_t count;
} given = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void note_call(struct request *request, skua_completion completion)
{
    (void)pthread_mutex_lock(&given.lock);
    given.items[given.count++] = (struct later){request, completion};
    (void)pthread_mutex_unlock(&given.lock);
}

static struct request *find_call(skua_completion completion)
{
    struct request *request = NULL;
    (void)pthread_mutex_lock(&given.lock);
    for (uint32_t i = 0; i < given.count && request == NULL; i++) {
        const skua_completion *known = &given.items[i].completion;
        if (known->call == completion.call && skua_pid_equal(known->process, completion.process)) {
            request = given.items[i].request;
        }
    }
    (void)pthread_mutex_unlock(&given.lock);
    return request;
}

void commands_start(void)
{
    given.count = 0;
    completer.count = 0;
    completer.ends = false;
    completer.random = random_mix(world.program.seed);
    if (!in_simulator() && pthread_create(&completer.thread, NULL, complete_later, NULL) != 0) {
        abort();
    }
}

void commands_end(void)
{
    if (in_simulator()) {
        return;
    }
    (void)pthread_mutex_lock(&completer.lock);
    completer.ends = true;
    (void)pthread_cond_signal(&completer.changed);
    (void)pthread_mutex_unlock(&completer.lock);
    (void)pthread_join(completer.thread, NULL);
}

/* ---- handlers ---- */

/* The request of a command; null if something is wrong with it. */
static struct request *begin(const skua_command *command)
{
    struct request *request = request_handled(&command->input, false);
    if (request != NULL &&
        (command->deadline < request->deadline ||
         (command->deadline == SKUA_FOREVER) != (request->deadline == SKUA_FOREVER))) {
        fault("request %u: its handler is told another deadline", request->number);
    }
    if (request != NULL) {
        note_call(request, command->completion);
    }
    return request;
}

static int leave_pending(struct request *request)
{
    if (request != NULL) {
        store_relaxed(&request->pending, 1); /* see property.h */
    }
    return SKUA_PENDING;
}

static void abandon(void *arg, skua_runtime *runtime, skua_completion completion)
{
    (void)arg;
    struct request *request = find_call(completion);
    if (request != NULL) {
        request_abandoned(request);
    } else {
        fault("a call that no handler knows is abandoned");
    }
    if (skua_command_complete(runtime, completion, 0, skua_nothing()) != SKUA_E_LATE) {
        fault("a call that was abandoned is completed");
    }
}

static int handle_now(void *arg, skua_command *command, skua_payload *result)
{
    (void)arg;
    struct request *request = begin(command);
    if (request == NULL) {
        return ERROR_HANDLER;
    }
    if (request->kind == REQUEST_FAILING) {
        return ERROR_HANDLER;
    }
    *result = letter_wrap(LETTER_RESULT, request->number, &request->random);
    return 0;
}

static int handle_never(void *arg, skua_command *command, skua_payload *result)
{
    (void)arg;
    (void)result;
    return leave_pending(begin(command));
}

static int handle_later(void *arg, skua_command *command, skua_payload *result)
{
    (void)arg;
    (void)result;
    struct request *request = begin(command);
    if (request != NULL) {
        add_later(request, command->completion);
    }
    return leave_pending(request);
}

static void simulate_one(struct request *request, skua_completion completion)
{
    const uint64_t delay = draw(&request->random, LATER_MOMENTS) * world.program.moment_ns;
    skua_payload result = skua_payload_empty(0);
    if (request->expected == 0) {
        result = letter_wrap(LETTER_RESULT, request->number, &request->random);
    }
    const int error =
        skua_sim_complete_after(world.runtime, completion, delay, request->expected, result);
    if (error != 0) {
        fault("request %u: completing it later: %s", request->number, skua_error_name(error));
    }
}

static int simulate_later(void *arg, skua_command *command, skua_payload *result)
{
    (void)arg;
    (void)result;
    struct request *request = begin(command);
    if (request != NULL) {
        simulate_one(request, command->completion);
        if (chance(&request->random, 20)) {
            simulate_one(request, command->completion);
        }
    }
    return leave_pending(request);
}

/* Completes the command itself. What it does or returns after that changes nothing. */
static int handle_inside(void *arg, skua_command *command, skua_payload *result)
{
    (void)arg;
    struct request *request = begin(command);
    if (request == NULL) {
        return ERROR_HANDLER;
    }
    const bool may_time_out = request->deadline != SKUA_FOREVER;
    complete(request, command->completion, &request->random, !may_time_out);
    if (chance(&request->random, 30)) {
        complete(request, command->completion, &request->random, false);
    }
    if (chance(&request->random, 30)) {
        *result = letter_wrap(LETTER_RESULT, request->number, &request->random);
        return 0;
    }
    return leave_pending(request);
}

void commands_register(void)
{
    static const struct {
        enum request_kind kind;
        skua_handler handler;
    } commands[] = {
        {REQUEST_NOW, {.name = "now", .run = handle_now, .sim_safe = true, .abandon = abandon}},
        {REQUEST_FAILING,
         {.name = "failing", .run = handle_now, .sim_safe = true, .abandon = abandon}},
        {REQUEST_LATER,
         {.name = "later", .run = handle_later, .simulate = simulate_later, .abandon = abandon}},
        {REQUEST_NEVER,
         {.name = "never", .run = handle_never, .sim_safe = true, .abandon = abandon}},
        {REQUEST_INSIDE,
         {.name = "inside", .run = handle_inside, .sim_safe = true, .abandon = abandon}},
        {REQUEST_UNSAFE, {.name = "unsafe", .run = handle_now}},
    };
    static const skua_blocking_pool pools[] = {
        {.name = SKUA_BLOCKING_DEFAULT, .sim_safe = true},
        {.name = POOL_NARROW, .thread_limit = 1, .queue_limit = 1, .sim_safe = true},
    };
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        const int error =
            skua_command_register(world.runtime, (uint32_t)commands[i].kind, &commands[i].handler);
        if (error != 0) {
            fault("registering a command: %s", skua_error_name(error));
        }
    }
    for (size_t i = 0; i < sizeof pools / sizeof pools[0]; i++) {
        const int error = skua_blocking_register(world.runtime, &pools[i], &pool_narrow);
        if (error != 0) {
            fault("registering a pool: %s", skua_error_name(error));
        }
    }
}

/* ---- on a blocking pool ---- */

int command_block(skua_payload *input, skua_payload *result)
{
    struct request *request = request_handled(input, true);
    if (request == NULL) {
        return ERROR_HANDLER;
    }
    if (request->expected == 0) {
        *result = letter_wrap(LETTER_RESULT, request->number, &request->random);
    }
    return request->expected;
}
