/* SPDX-License-Identifier: MIT */
#include "names.h"

#include "process/annex.h"
#include "runtime/runtime.h"

static struct act about(const char *text, struct act act)
{
    act.arg = (void *)(uintptr_t)text;
    return act;
}

/* ---- having a name ---- */

static int take_name(struct turn *turn, const struct act *act)
{
    skua_pid holder = {1};
    const int error = skua_name_register(turn->ctx, act->arg, &holder);
    const uint64_t expected = act->peer != NULL ? act->peer->pid.bits : 0;
    if (holder.bits != expected) {
        actor_surprise(turn->actor, "another holder is given");
    }
    return error;
}

struct act takes_name(const char *name)
{
    return about(name, (struct act){.perform = take_name});
}

struct act meets_holder(const char *name, struct actor *holder)
{
    return about(name,
                 (struct act){.perform = take_name, .peer = holder, .returns = SKUA_E_NAME_TAKEN});
}

static int give_up_name(struct turn *turn, const struct act *act)
{
    return skua_name_unregister(turn->ctx, act->arg);
}

struct act gives_up_name(const char *name)
{
    return about(name, (struct act){.perform = give_up_name});
}

static int take_label(struct turn *turn, const struct act *act)
{
    return skua_label(turn->ctx, act->arg);
}

struct act takes_label(const char *label)
{
    return about(label, (struct act){.perform = take_label});
}

/* ---- finding ---- */

static int find(struct turn *turn, const struct act *act)
{
    skua_pid pid = {1};
    const int error = skua_name_find(world_runtime(), act->arg, &pid);
    if (pid.bits != (act->peer != NULL ? act->peer->pid.bits : 0)) {
        actor_surprise(turn->actor, "another process has the name");
    }
    return error;
}

struct act finds(const char *name, struct actor *holder)
{
    return about(name, (struct act){.perform = find,
                                    .peer = holder,
                                    .returns = holder != NULL ? 0 : SKUA_E_NO_PROCESS});
}

static int await_name(struct turn *turn, const struct act *act)
{
    return skua_yield_await_name(turn->ctx, act->tag, act->arg, act_timeout(turn, act));
}

struct act awaits_name(uint64_t tag, const char *name)
{
    return about(name, (struct act){.perform = await_name, .tag = tag});
}

struct seen holder_of(uint64_t tag, const struct actor *holder)
{
    return completion_of(tag, 0, holder->pid.bits);
}

/* ---- sending and calling ---- */

static skua_payload payload_of(const struct act *act)
{
    return act->item != NULL ? tracked_payload(act->type, act->item)
                             : skua_payload_u64(act->type, act->number);
}

static int send_to_name(struct turn *turn, const struct act *act)
{
    return skua_send_name(turn->ctx, act->arg, payload_of(act));
}

struct act sends_to_name(const char *name, uint32_t type, uint64_t number)
{
    return about(name, (struct act){.perform = send_to_name, .type = type, .number = number});
}

struct act sends_item_to_name(const char *name, struct tracked *item)
{
    return about(name, (struct act){.perform = send_to_name, .item = item});
}

static int ask_name(struct turn *turn, const struct act *act)
{
    return skua_yield_call_name(turn->ctx, act->tag, act->arg, payload_of(act),
                                act_timeout(turn, act));
}

struct act asks_name(uint64_t tag, const char *name, uint64_t number)
{
    return about(name, (struct act){.perform = ask_name, .tag = tag, .number = number});
}

struct act asks_name_item(uint64_t tag, const char *name, struct tracked *item)
{
    return about(name, (struct act){.perform = ask_name, .tag = tag, .item = item});
}

/* ---- starting ---- */

struct act spawns_named(struct actor *actor, const char *name)
{
    return spawns_with(actor, (skua_spawn_options){.name = name});
}

struct find_by_spawn {
    skua_spawn_options options;
    struct actor *holder;
};

static int find_by_spawn(struct turn *turn, const struct act *act)
{
    const struct find_by_spawn *find = act->arg;
    skua_spawn_options options = find->options;
    skua_payload input = api_world_payload(act->peer);
    skua_pid pid = {0};
    options.type = &act->peer->type;
    options.input = &input;
    options.input_count = 1;
    const int error = skua_spawn_with(turn->ctx, &options, &pid);
    if (!skua_pid_equal(pid, find->holder->pid)) {
        actor_surprise(turn->actor, "another holder is given");
    }
    return error;
}

struct act finds_by_spawn(struct actor *actor, skua_spawn_options options, struct actor *holder)
{
    struct find_by_spawn *find = test_alloc(sizeof *find);
    *find = (struct find_by_spawn){options, holder};
    return (struct act){
        .perform = find_by_spawn, .peer = actor, .arg = find, .returns = SKUA_E_NAME_TAKEN};
}

int actor_try_submit_with(struct actor *actor, skua_spawn_options options, skua_pid *pid)
{
    skua_payload input = api_world_payload(actor);
    options.type = &actor->type;
    options.input = &input;
    options.input_count = 1;
    return skua_process_submit_with(world_runtime(), &options, pid);
}

struct actor *named_start(const char *name, struct script script)
{
    skua_pid pid = {0};
    struct actor *actor = actor_new(script);
    assert_int_equal(actor_try_submit_with(actor, (skua_spawn_options){.name = name}, &pid), 0);
    assert_int_equal(pid.bits, actor->pid.bits);
    return actor;
}

/* ---- what the test sees ---- */

void assert_found(const char *name, const struct actor *holder)
{
    skua_pid pid = {0};
    assert_int_equal(skua_name_find(world_runtime(), name, &pid), 0);
    assert_int_equal(pid.bits, holder->pid.bits);
}

void assert_nobody_has(const char *name)
{
    skua_pid pid = {1};
    assert_int_equal(skua_name_find(world_runtime(), name, &pid), SKUA_E_NO_PROCESS);
    assert_int_equal(pid.bits, 0);
}

const char *label_of(const struct actor *actor)
{
    struct process *process = NULL;
    struct scheduler *sched = &world_runtime()->sched;
    assert_int_equal(process_table_find_live(&sched->table, actor->pid, &process), 0);
    const struct annex *annex = annex_of(&sched->events, process);
    return annex != NULL && annex->label != NULL ? annex->label : "";
}
