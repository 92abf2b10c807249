/* SPDX-License-Identifier: MIT */
/* Supervisors with a few children, who fail, end and are killed at random. No child outlives its
 * supervisor, no child of a list is there twice, and at rest those that must always run do. */
#include <skua/supervisor.h>
#include <stdio.h>

#include "property.h"

#define CREWS_MAX  3
#define HANDS_MAX  4 /* in the list of one */
#define TEMPLATE   HANDS_MAX
#define LIVES      5 /* from then on a child does not fail any more, so that there is rest */
#define ERROR_HAND (SKUA_E_USER - 4)

/* A child of the list; the last place stands for all of the template. */
struct place {
    atomic_u32 starts;
    atomic_u32 live;
};

struct crew {
    uint32_t number;
    skua_supervisor specification;
    skua_child list[HANDS_MAX];
    skua_child template;
    skua_payload input[HANDS_MAX];
    char names[HANDS_MAX][12];
    bool is_under_way; /* its start has returned 0 */
    atomic_u64 pid;    /* known a moment after that */
    struct place places[HANDS_MAX + 1];
    atomic_u64 hand_pids[HANDS_MAX + 1]; /* of the last in each place, to be killed */
};

static struct crew crews[CREWS_MAX];
static uint32_t crew_count;
static atomic_u32 ended; /* supervisors and children */

static uint32_t get(atomic_u32 *counter)
{
    return load_relaxed(counter); /* see property.h */
}

/* ---- a child ---- */

struct hand {
    struct crew *crew;
    uint32_t place;
    uint32_t life; /* which of the lives of this place it is */
    uint32_t steps;
    uint64_t random;
};

static int init_hand(void *self, skua_context *ctx, skua_payload *input, size_t count)
{
    struct hand *hand = self;
    const uint64_t which = count > 0 ? skua_payload_to_u64(&input[0]) : 0;
    hand->crew = &crews[which >> 8];
    hand->place = which & 0xff;
    struct place *place = &hand->crew->places[hand->place];
    hand->life = fetch_add_relaxed(&place->starts, 1); /* see property.h, as for the next */
    hand->random = random_mix(world.program.seed ^ random_mix(which << 16 | hand->life));
    const uint32_t others = fetch_add_relaxed(&place->live, 1);
    store_relaxed(&hand->crew->hand_pids[hand->place], skua_self(ctx).bits);
    if (others > 0 && hand->place != TEMPLATE) {
        fault("crew %u: child %u is there twice", hand->crew->number, hand->place);
    }
    return hand->life < LIVES && chance(&hand->random, 5) ? ERROR_HAND : 0;
}

static void close_hand(void *self, skua_context *ctx, const skua_exit *exit)
{
    const struct hand *hand = self;
    (void)ctx;
    (void)exit;
    (void)fetch_sub_relaxed(&hand->crew->places[hand->place].live, 1); /* see property.h */
}

/* What it does for its living, until it has had enough lives. */
static int live_on(struct hand *hand, skua_context *ctx)
{
    const uint32_t what = draw(&hand->random, hand->life < LIVES ? 10 : 2);
    switch (what) {
    case 0:
        return hand->steps < 8 ? skua_continue(ctx) : 0;
    case 1:
    case 2:
    case 3:
        return hand->steps < 8
                   ? skua_yield_sleep(ctx, 1, draw(&hand->random, 3) * world.program.moment_ns)
                   : 0;
    case 4:
    case 5:
        return ERROR_HAND;
    case 6:
        return skua_done(ctx, skua_nothing());
    default:
        return 0;
    }
}

static int step_hand(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    struct hand *hand = self;
    hand->steps++;
    for (size_t i = 0; i < count; i++) {
        if (events[i].type == SKUA_EVENT_CANCEL) {
            return skua_done(ctx, skua_nothing());
        }
    }
    const bool is_late = hand->life < LIVES && chance(&hand->random, 10);
    const int error = hand->steps == 1 && !is_late ? skua_ready(ctx) : 0;
    return error != 0 ? error : live_on(hand, ctx);
}

#define HAND                                                                                       \
    .init = init_hand, .step = step_hand, .close = close_hand, .state_size = sizeof(struct hand)

static const skua_process_type hand_types[] = {
    {.name = "hand", HAND},
    {.name = "tidy hand", HAND, .cancel = SKUA_CANCEL_EVENT},
};
static const skua_process_type guest_type = {.name = "guest", HAND};

/* ---- a supervisor ---- */

static uint64_t some_time(uint64_t *random)
{
    return (1 + draw(random, 4)) * world.program.moment_ns;
}

/* What is never started again must have no back-off. */
static void drop_useless(skua_child *child)
{
    if (child->restart == SKUA_RESTART_NEVER) {
        child->backoff = (skua_backoff){.first_ns = 0};
    }
}

static void describe_child(struct crew *crew, uint32_t place, uint64_t *random)
{
    (void)snprintf(crew->names[place], sizeof crew->names[place], "%u", place);
    crew->input[place] = skua_payload_u64(0, crew->number << 8 | place);
    const uint64_t first = some_time(random);
    const uint64_t patience = some_time(random);
    crew->list[place] = (skua_child){
        .name = crew->names[place],
        .type = &hand_types[draw(random, 2)],
        .input = &crew->input[place],
        .input_count = 1,
        .restart = (enum skua_restart)draw(random, 3),
        .start_ns = chance(random, 30) ? 50 * patience : 0,
        .stop_ns = chance(random, 30) ? first : 0,
        .backoff = {.first_ns = first, .max_ns = 4 * first},
    };
    drop_useless(&crew->list[place]);
}

static void describe(struct crew *crew, uint64_t *random)
{
    const uint32_t count = draw(random, HANDS_MAX + 1);
    for (uint32_t i = 0; i < count; i++) {
        describe_child(crew, i, random);
    }
    crew->template = (skua_child){.name = "guest",
                                  .type = &guest_type,
                                  .restart = (enum skua_restart)(1 + draw(random, 2)),
                                  .backoff = {.first_ns = some_time(random)}};
    drop_useless(&crew->template);
    const bool is_strict = chance(random, 30);
    crew->specification = (skua_supervisor){
        .name = "crew",
        .children = crew->list,
        .child_count = count,
        .templates = &crew->template,
        .template_count = 1,
        .strategy = (enum skua_strategy)draw(random, count > 0 ? 3 : 1),
        .parallel_stop = chance(random, 30) && count > 0,
    };
    if (is_strict) {
        crew->specification.budget = (skua_budget){1 + draw(random, 4), SKUA_SECOND};
    }
}

void crews_begin(void)
{
    uint64_t random = random_mix(world.program.seed ^ random_mix(77));
    crew_count = world.program.uses_crews ? 1 + draw(&random, CREWS_MAX) : 0;
    store_relaxed(&ended, 0); /* see property.h */
    for (uint32_t i = 0; i < crew_count; i++) {
        crews[i] = (struct crew){.number = i};
        describe(&crews[i], &random);
    }
}

void crews_start(void)
{
    for (uint32_t i = 0; i < crew_count; i++) {
        skua_pid pid;
        const int error =
            skua_process_start_supervisor(world.runtime, &crews[i].specification, &pid);
        crews[i].is_under_way = error == 0;
        if (error == 0) {
            store_relaxed(&crews[i].pid, pid.bits); /* see property.h */
        } else if (!may_lack_memory(error)) {
            fault("crew %u: does not start: %s", i, skua_error_name(error));
        }
    }
}

/* ---- what is done to them ---- */

static void start_guest(struct agent *agent, const struct crew *crew, skua_pid supervisor)
{
    skua_pid pid;
    skua_payload input = skua_payload_u64(0, crew->number << 8 | TEMPLATE);
    const skua_spawn_options options = {
        .type = &guest_type, .input = &input, .input_count = 1, .supervisor = supervisor};
    const int error = agent->ctx != NULL ? skua_spawn_with(agent->ctx, &options, &pid)
                                         : skua_process_submit_with(world.runtime, &options, &pid);
    switch (error) {
    case 0:
    case ERROR_HAND:
    case SKUA_E_NO_PROCESS:  /* it has ended, */
    case SKUA_E_LATE:        /* is about to, */
    case SKUA_E_NO_TEMPLATE: /* or has not begun */
    case SKUA_E_STOPPED:
        break;
    default:
        if (!may_lack_memory(error)) {
            fault("crew %u: a guest: %s", crew->number, skua_error_name(error));
        }
    }
}

void act_crew(struct agent *agent)
{
    const uint32_t which = draw(&agent->random, CREWS_MAX);
    const uint32_t place = draw(&agent->random, HANDS_MAX + 1);
    const uint32_t what = draw(&agent->random, 20);
    if (which >= crew_count || load_relaxed(&crews[which].pid) == 0) { /* see property.h */
        return;
    }
    struct crew *crew = &crews[which];
    const skua_pid supervisor = {load_relaxed(&crew->pid)};        /* see property.h */
    const skua_pid hand = {load_relaxed(&crew->hand_pids[place])}; /* the same */
    int error = 0;
    if (what < 10) {
        start_guest(agent, crew, supervisor);
    } else if (what < 15) {
        error = skua_process_terminate(world.runtime, hand);
    } else if (what < 18) {
        error = skua_process_cancel(world.runtime, hand, ERROR_HAND);
    } else if (what < 19) {
        error = skua_process_cancel(world.runtime, supervisor, SKUA_E_CANCELLED);
    } else {
        error = skua_process_terminate(world.runtime, supervisor);
    }
    if (error != 0 && error != SKUA_E_NO_PROCESS && !may_lack_memory(error)) {
        fault("crew %u: ending somebody: %s", which, skua_error_name(error));
    }
}

/* ---- what comes of it ---- */

static uint32_t count_live(struct crew *crew)
{
    uint32_t live = 0;
    for (uint32_t i = 0; i <= HANDS_MAX; i++) {
        live += get(&crew->places[i].live);
    }
    return live;
}

/* One that is terminated ends at once, and its children then. */
static void check_end_of_supervisor(const skua_exit *exit)
{
    for (uint32_t i = 0; i < crew_count && exit->error != SKUA_E_TERMINATED; i++) {
        if (load_relaxed(&crews[i].pid) == exit->pid.bits && /* see property.h */
            count_live(&crews[i]) > get(&crews[i].places[TEMPLATE].live)) {
            fault("crew %u: a child outlives its supervisor", i);
        }
    }
}

bool crews_on_exit(const skua_exit *exit)
{
    const bool is_hand =
        exit->type == &hand_types[0] || exit->type == &hand_types[1] || exit->type == &guest_type;
    const bool is_supervisor = exit->type == skua_supervisor_type();
    (void)fetch_add_relaxed(&ended, is_hand || is_supervisor); /* see property.h */
    if (is_supervisor) {
        check_end_of_supervisor(exit);
    }
    return is_hand || is_supervisor;
}

bool crews_own(const char *type_name)
{
    return type_name == hand_types[0].name || type_name == hand_types[1].name ||
           type_name == guest_type.name || type_name == skua_supervisor_type()->name;
}

uint32_t crews_ended(void)
{
    return get(&ended);
}

bool crews_are_used(void)
{
    return crew_count > 0;
}

/* Why a crew is not at rest; null if it is. */
static const char *restlessness(struct crew *crew)
{
    skua_process_snapshot info;
    const skua_pid pid = {load_relaxed(&crew->pid)}; /* see property.h */
    if (!crew->is_under_way || skua_process_info(world.runtime, pid, &info) != 0) {
        return count_live(crew) > 0 ? "children outlive their supervisor" : NULL;
    }
    if (info.state == SKUA_PROCESS_READY || info.state == SKUA_PROCESS_RUNNING) {
        return "the supervisor is ready, but does not run";
    }
    for (uint32_t i = 0; i < crew->specification.child_count; i++) {
        if (crew->list[i].restart == SKUA_RESTART_ALWAYS && get(&crew->places[i].live) != 1) {
            return "a child that must always run does not";
        }
    }
    return NULL;
}

bool crews_are_at_rest(bool is_expected)
{
    bool rests = true;
    for (uint32_t i = 0; i < crew_count; i++) {
        const char *reason = restlessness(&crews[i]);
        rests = rests && reason == NULL;
        if (reason != NULL && is_expected) {
            fault("crew %u: %s", i, reason);
        }
    }
    return rests;
}

void crews_check(void)
{
    for (uint32_t i = 0; i < crew_count; i++) {
        if (count_live(&crews[i]) > 0) {
            fault("crew %u: children outlive the runtime", i);
        }
    }
}
