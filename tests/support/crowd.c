/* SPDX-License-Identifier: MIT */
#include "crowd.h"

struct crowd crowd_new(size_t count, struct script script)
{
    struct actor **actors = test_alloc(count * sizeof *actors);
    for (size_t i = 0; i < count; i++) {
        actors[i] = actor_new(script);
    }
    return (struct crowd){actors, count};
}

void crowd_submit(struct crowd crowd)
{
    for (size_t i = 0; i < crowd.count; i++) {
        actor_submit(crowd.actors[i]);
    }
}

void crowd_await_end(struct crowd crowd)
{
    for (size_t i = 0; i < crowd.count; i++) {
        actor_await_end(crowd.actors[i]);
    }
}

/* ---- acts ---- */

static int spawn_crowd(struct turn *turn, const struct act *act)
{
    struct actor **actors = act->arg;
    int error = 0;
    for (size_t i = 0; i < act->number && error == 0; i++) {
        error = perform(turn, spawns(actors[i]));
    }
    return error;
}

struct act spawns_crowd(struct crowd crowd)
{
    return (struct act){.perform = spawn_crowd, .arg = crowd.actors, .number = crowd.count};
}

static int count_one(struct turn *turn, const struct act *act)
{
    (void)turn;
    tally_add(act->arg, 1);
    return 0;
}

struct act counts(struct tally *tally)
{
    return does(count_one, tally);
}

static int await_count(struct turn *turn, const struct act *act)
{
    (void)turn;
    tally_wait(act->arg, act->number);
    return 0;
}

struct act awaits_count(struct tally *tally, uint64_t at_least)
{
    return (struct act){.perform = await_count, .arg = tally, .number = at_least};
}
