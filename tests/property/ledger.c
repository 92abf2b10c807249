/* SPDX-License-Identifier: MIT */
/* The books of a program: its processes and cancel events. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "process/table.h" /* to take PIDs apart */
#include "property.h"

#define FAULTS_SHOWN 5

struct cancel {
    struct actor *to;
    atomic_u32 seen;
};

struct world world;

static struct actor actors[ACTORS_MAX];
static struct cancel cancels[CANCELS_MAX];
static atomic_u32 actors_made;
static atomic_u32 cancels_made;
static atomic_u32 faults;

/* ---- counters ---- */

static uint32_t get(atomic_u32 *counter)
{
    return load_relaxed(counter); /* see property.h */
}

static uint32_t count(atomic_u32 *counter)
{
    return fetch_add_relaxed(counter, 1); /* see property.h */
}

/* How many there are of what has been asked for. */
static uint32_t filled(atomic_u32 *made, uint32_t room)
{
    const uint32_t asked = get(made);
    return asked < room ? asked : room;
}

/* ---- faults ---- */

void fault(const char *format, ...)
{
    if (count(&faults) >= FAULTS_SHOWN) {
        return;
    }
    char text[300];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    (void)fprintf(stderr, "seed %" PRIu64 ", %s: %s\n", world.program.seed,
                  in_simulator() ? "simulator" : "threads", text);
}

bool ledger_has_faults(void)
{
    return get(&faults) > 0;
}

/* Names the process as the simulator's trace does, too. */
void actor_expect(bool holds, struct actor *actor, const char *otherwise)
{
    if (!holds) {
        const skua_pid pid = actor_pid(actor);
        fault("process %u, %u.%u: %s", actor->number, pid_slot(pid), pid_generation(pid),
              otherwise);
    }
}

void ledger_begin(void)
{
    store_relaxed(&actors_made, 0);
    store_relaxed(&cancels_made, 0);
    store_relaxed(&faults, 0);
    store_relaxed(&world.stop_has_begun, 0);
    store_relaxed(&world.survivors, 0);
    memset(actors, 0, sizeof actors); /* so that none has a PID */
}

/* ---- actors ---- */

struct actor *actor_new(uint64_t key)
{
    const struct program *program = &world.program;
    const uint32_t number = count(&actors_made);
    if (number >= program->actors) {
        return NULL;
    }
    uint64_t random = key;
    struct actor *actor = &actors[number];
    actor->number = number;
    actor->key = key;
    actor->type = (enum type)draw(&random, TYPES);
    store_relaxed(&actor->is_mortal,
                  script_types[actor->type].cancel == SKUA_CANCEL_END);    /* see property.h */
    store_relaxed(&actor->takes_urgent, script_types[actor->type].urgent); /* see property.h */
    store_relaxed(&actor->overflow, script_types[actor->type].overflow);   /* see property.h */
    actor->plan = draw(&random, program->plan_max);
    actor->finale = (enum finale)draw(&random, FINALE_LINGER + 1);
    actor->obeys = chance(&random, 60) || program->everybody_obeys;
    actor->fails_upwards = chance(&random, 30);
    actor->fails_in_init = chance(&random, 8);
    actor->method_is_wrong = chance(&random, 4);
    actor->result_is_caught = chance(&random, 30);
    actor->outcome = SKUA_PENDING;
    mail_actor_begins(number);
    return actor;
}

struct actor *actor_at(uint32_t number)
{
    return &actors[number];
}

uint32_t actor_count(void)
{
    return filled(&actors_made, world.program.actors);
}

skua_pid actor_pid(struct actor *actor)
{
    return (skua_pid){load_relaxed(&actor->pid)}; /* see property.h */
}

struct actor *actor_find(skua_pid pid)
{
    const uint32_t made = actor_count();
    for (uint32_t i = 0; i < made && !skua_pid_is_none(pid); i++) {
        if (skua_pid_equal(actor_pid(&actors[i]), pid)) {
            return &actors[i];
        }
    }
    return NULL;
}

static bool is_mortal(struct actor *actor)
{
    return get(&actor->is_mortal) != 0;
}

/* One that obeys ends by itself, if it gets the time. */
static bool may_be_ended_by_stop(struct actor *actor)
{
    return get(&world.stop_has_begun) != 0 && (!world.program.everybody_obeys || is_mortal(actor));
}

bool actor_may_have_ended(struct actor *actor)
{
    return get(&actor->is_ending) != 0 || get(&actor->kills) != 0 || get(&actor->dooms) != 0 ||
           may_be_ended_by_stop(actor);
}

void actor_initialise(struct actor *actor, skua_pid pid)
{
    actor_expect(count(&actor->inits) == 0, actor, "init is called again");
    actor_expect(actor_find(pid) == NULL, actor, "has the PID of another one");
    store_relaxed(&actor->pid, pid.bits); /* see property.h */
}

bool may_lack_memory(int error)
{
    return error == SKUA_E_NO_MEMORY && world.program.faults.no_memory > 0;
}

static bool may_be_refused(struct actor *actor, int error)
{
    const struct program *program = &world.program;
    switch (error) {
    case SKUA_E_UNKNOWN_METHOD:
        return actor->method_is_wrong;
    case ERROR_INIT:
        return actor->fails_in_init && !actor->fails_upwards && get(&actor->inits) == 1;
    case SKUA_E_INVALID:
        return actor->fails_in_init && actor->fails_upwards && get(&actor->inits) == 1;
    case SKUA_E_PROCESS_LIMIT:
        return program->process_limit < ACTORS_MAX && get(&actor->inits) == 0;
    case SKUA_E_NO_MEMORY:
        return may_lack_memory(error) && (get(&actor->inits) == 0 || actor->heirloom != NULL);
    case SKUA_E_SOCKET_BUSY:
        return actor->heirloom != NULL;
    case SKUA_E_STOPPED:
        return get(&world.stop_has_begun) != 0;
    default:
        return false;
    }
}

void actor_spawned(struct actor *actor, int error, skua_pid pid)
{
    actor->outcome = error;
    if (error == 0) {
        actor_expect(!actor->fails_in_init && !actor->method_is_wrong, actor,
                     "should not have begun");
        actor_expect(skua_pid_equal(pid, actor_pid(actor)), actor,
                     "spawn gives another PID than init");
        store_relaxed(&actor->is_published, 1); /* see property.h */
    } else if (!may_be_refused(actor, error)) {
        fault("process %u: refused with %s (%d)", actor->number, skua_error_name(error), error);
    }
}

/* START comes first, and once; CONTINUE comes last, if the step before has asked for it. A task
 * gets one event at a time, so that may come later. */
static void check_events(struct actor *actor, const skua_event *events, size_t number)
{
    const bool is_first = get(&actor->steps) == 0;
    const bool is_task = script_types[actor->type].main != NULL;
    const bool is_put_off = is_task && events[0].type != SKUA_EVENT_CONTINUE;
    for (size_t i = 0; i < number; i++) {
        actor_expect((events[i].type == SKUA_EVENT_START) == (is_first && i == 0), actor,
                     "START is not the first event");
        actor_expect(is_put_off || (events[i].type == SKUA_EVENT_CONTINUE) ==
                                       (actor->continues && i + 1 == number),
                     actor, "CONTINUE is not the last event");
    }
    actor->continues &= is_put_off;
}

void actor_step_begins(struct actor *actor, skua_pid pid, const skua_event *events, size_t number)
{
    actor_expect(fetch_add_relaxed(&actor->is_running, 1) == 0, actor, "runs on two workers");
    actor_expect(skua_pid_equal(pid, actor_pid(actor)), actor, "has another PID now");
    actor_expect(get(&actor->inits) == 1, actor, "runs without an init");
    actor_expect(get(&actor->closes) == 0, actor, "runs after its close");
    actor_expect(get(&actor->is_ending) == 0, actor, "runs after its end");
    actor_expect(get(&actor->has_lost) == 0, actor, "lives on, but a message to it was dropped");
    actor_expect(number > 0, actor, "runs without a reason");
    actor_expect(number <= SKUA_EVENTS_PER_STEP, actor, "gets too many events at once");
    check_events(actor, events, number);
    (void)count(&actor->steps);
}

void actor_step_ends(struct actor *actor)
{
    (void)fetch_sub_relaxed(&actor->is_running, 1); /* see property.h */
}

void actor_closes(struct actor *actor)
{
    actor_expect(get(&actor->is_running) == 0, actor, "is closed while it runs");
    actor_expect(get(&actor->exits) == 0, actor, "is closed after on_exit");
    actor_expect(count(&actor->closes) == 0, actor, "is closed again");
}

/* The cancel event with this reason; null if there is none. */
static struct cancel *cancel_of(int reason)
{
    const uint32_t number = (uint32_t)(ERROR_CANCEL - reason);
    const bool exists = reason <= ERROR_CANCEL && number < filled(&cancels_made, CANCELS_MAX);
    return exists ? &cancels[number] : NULL;
}

static bool may_end_with(struct actor *actor, int error)
{
    const bool has_failed = get(&actor->failed_in_step) != 0;
    switch (error) {
    case 0:
        return actor->has_finished;
    case ERROR_STEP:
        return has_failed && !actor->fails_upwards;
    case SKUA_E_INVALID:
        return has_failed && actor->fails_upwards;
    case SKUA_E_TERMINATED:
        return get(&actor->kills) != 0 || may_be_ended_by_stop(actor);
    case SKUA_E_STOPPED:
        return is_mortal(actor) && get(&world.stop_has_begun) != 0;
    case SKUA_E_OVERFLOW:
        return get(&actor->overflow) == SKUA_OVERFLOW_END && get(&actor->dooms) != 0;
    default:
        break;
    }
    const struct cancel *cancel = cancel_of(error);
    return cancel != NULL && cancel->to == actor && is_mortal(actor);
}

void ledger_on_exit(void *arg, skua_exit *exit)
{
    (void)arg;
    if (crews_on_exit(exit)) {
        return;
    }
    struct actor *actor = actor_find(exit->pid);
    if (actor == NULL) {
        fault("on_exit of a process that there never was");
        return;
    }
    actor_expect(count(&actor->exits) == 0, actor, "on_exit is called again");
    actor_expect(get(&actor->closes) == 1, actor, "on_exit without a close");
    actor_expect(exit->type == &script_types[actor->type], actor, "ends with another type");
    if (!may_end_with(actor, exit->error)) {
        fault("process %u: ends with %s (%d)", actor->number, skua_error_name(exit->error),
              exit->error);
    }
    actor->exit_error = exit->error;
    struct letter letter;
    const bool has_result = letter_read(&exit->result, LETTER_EXIT, &letter);
    actor_expect(has_result == (exit->error == 0), actor, "has lost its result, or found one");
    actor_expect(!has_result || letter.number == actor->number, actor, "has the result of another");
    if (actor->result_is_caught) {
        skua_payload caught = skua_payload_take(&exit->result);
        skua_payload_drop(&caught);
    }
}

static void will_be_killed(skua_pid pid, const char *type_name)
{
    struct actor *actor = actor_find(pid);
    if (crews_own(type_name)) {
        return;
    }
    if (actor == NULL) {
        fault("a process that there never was is about to be ended");
    } else {
        (void)count(&actor->kills);
    }
}

void ledger_on_survivor(void *arg, const skua_process_snapshot *info)
{
    (void)arg;
    (void)count(&world.survivors);
    will_be_killed(info->pid, info->type_name);
}

void ledger_on_record(const skua_sim_record *record)
{
    if (record->type == SKUA_SIM_FAULT && record->what == SKUA_SIM_PROCESS_KILL) {
        will_be_killed(record->pid, record->type_name);
    }
}

void ledger_on_log(void *arg, const skua_log *log)
{
    (void)arg;
    if (log->text == NULL || log->text[0] == '\0') {
        fault("a line of the log without a text");
    }
}

/* ---- what may be refused, messages and cancel events alike ---- */

bool may_be_unreachable(struct actor *to, int error, bool must_arrive)
{
    switch (error) {
    case SKUA_E_NO_PROCESS:
        return !must_arrive || actor_may_have_ended(to);
    case SKUA_E_NO_MEMORY:
        return world.program.faults.no_memory > 0;
    default:
        return false;
    }
}

/* ---- cancel events ---- */

uint32_t cancel_new(struct actor *to)
{
    const uint32_t number = count(&cancels_made);
    if (number >= CANCELS_MAX) {
        return NONE;
    }
    struct cancel *cancel = &cancels[number];
    cancel->to = to;
    store_relaxed(&cancel->seen, 0); /* see property.h */
    return number;
}

void cancel_sent(uint32_t number, int error, bool must_arrive)
{
    struct actor *to = cancels[number].to;
    if (error == 0) {
        (void)count(&to->cancels);
    } else if (!may_be_unreachable(to, error, must_arrive)) {
        fault("cancel event %u to process %u: %s", number, to->number, skua_error_name(error));
    }
}

void cancel_seen(struct actor *actor, const skua_event *event)
{
    actor_expect(!is_mortal(actor), actor, "gets a cancel event that should have ended it");
    if (event->error == SKUA_E_STOPPED) {
        actor_expect(get(&world.stop_has_begun) != 0, actor, "is told to stop without a reason");
        actor_expect(count(&actor->stops) == 0, actor, "is told to stop again");
        return;
    }
    struct cancel *cancel = cancel_of(event->error);
    if (cancel == NULL) {
        fault("process %u: a cancel event with reason %d", actor->number, event->error);
        return;
    }
    actor_expect(cancel->to == actor, actor, "gets the cancel event of another");
    actor_expect(count(&cancel->seen) == 0, actor, "gets a cancel event again");
    (void)count(&actor->cancels_seen);
}

/* ---- rest ---- */

static bool is_alive(struct actor *actor)
{
    return get(&actor->is_published) != 0 && get(&actor->exits) == 0;
}

/* Why an actor is not at rest; null if it is. */
static const char *restlessness(struct actor *actor)
{
    skua_process_snapshot info;
    const int error = skua_process_info(world.runtime, actor_pid(actor), &info);
    if (!is_alive(actor)) {
        return error == 0 ? "has ended, but is still there" : NULL;
    }
    if (error != 0) {
        return "has gone without a word";
    }
    if (info.state == SKUA_PROCESS_READY || info.state == SKUA_PROCESS_RUNNING) {
        return "is ready, but does not run";
    }
    if (get(&actor->kills) != 0) {
        return "was terminated, but is still there";
    }
    if (get(&actor->accepted) != get(&actor->seen) + get(&actor->dead) ||
        info.mailbox_length != 0) {
        return "has messages that it does not get";
    }
    if (get(&actor->cancels) != get(&actor->cancels_seen)) {
        return "has cancel events that it does not get";
    }
    if (get(&actor->open_ends) != 0) {
        return "has yields that do not end";
    }
    if ((info.state == SKUA_PROCESS_BLOCKED) != (get(&actor->blocks) != 0)) {
        return "is blocked instead of idle, or the other way round";
    }
    return info.steps == get(&actor->steps) ? NULL : "had more steps than it knows of, or fewer";
}

bool ledger_is_at_rest(bool is_expected)
{
    bool rests = true;
    const uint32_t made = actor_count();
    for (uint32_t i = 0; i < made; i++) {
        const char *reason = restlessness(&actors[i]);
        rests = rests && reason == NULL;
        actor_expect(reason == NULL || !is_expected, &actors[i], reason);
        if (is_expected && get(&actors[i].open_ends) != 0 && is_alive(&actors[i])) {
            requests_blame(&actors[i]);
        }
    }
    rests = crews_are_at_rest(is_expected) && rests;
    return wires_are_at_rest(is_expected) && rests;
}

/* ---- the end ---- */

static void check_actor(struct actor *actor)
{
    const uint32_t inits = get(&actor->inits);
    const uint32_t exits = get(&actor->exits);
    actor_expect(actor->outcome != SKUA_PENDING, actor, "spawn has not returned");
    actor_expect(get(&actor->closes) == inits, actor, "not one close for its init");
    actor_expect(exits == (actor->outcome == 0 ? 1 : 0), actor, "not one on_exit for its spawn");
    actor_expect(get(&actor->is_running) == 0, actor, "still runs");
    actor_expect(actor->outcome == 0 || get(&actor->steps) == 0, actor, "was refused, but ran");
    actor_expect(get(&actor->seen) + get(&actor->dead) == get(&actor->accepted), actor,
                 "not every message was seen or reported as a dead letter");
    actor_expect(get(&actor->killed) == 0 || actor->exit_error == SKUA_E_TERMINATED ||
                     (get(&actor->overflows) != 0 && actor->exit_error == SKUA_E_OVERFLOW),
                 actor, "was terminated, but ended otherwise");
    actor_expect(get(&actor->overflows) == 0 || !in_simulator() ||
                     actor->exit_error == SKUA_E_OVERFLOW || actor->exit_error == SKUA_E_TERMINATED,
                 actor, "was full, but ended otherwise");
}

void ledger_check(void)
{
    const uint32_t made = actor_count();
    for (uint32_t i = 0; i < made; i++) {
        check_actor(&actors[i]);
    }
}
