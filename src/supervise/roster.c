/* SPDX-License-Identifier: MIT */
/* The table of children. Those that live are found by their PID in an open hash table, which is
 * always twice as large as the table of children: so there is room in it for everyone who is in
 * there, and starting a child again takes no memory. */
#include <string.h>

#include "supervise/supervisor.h"

#define CAPACITY_MIN 8

static uint32_t place_of(const struct supervisor *self, const struct child *child)
{
    return (uint32_t)(child - self->children);
}

/* ---- by PID ---- */

static uint32_t mask(const struct supervisor *self)
{
    return 2 * self->capacity - 1; /* the capacity is a power of two */
}

static uint32_t home_of(const struct supervisor *self, skua_pid pid)
{
    return (uint32_t)((pid.bits * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & mask(self);
}

static void index_pid(const struct supervisor *self, uint32_t place)
{
    uint32_t at = home_of(self, self->children[place].pid);
    while (self->by_pid[at] != NOBODY) {
        at = (at + 1) & mask(self);
    }
    self->by_pid[at] = place;
}

static uint32_t find_entry(const struct supervisor *self, skua_pid pid)
{
    uint32_t at = home_of(self, pid);
    while (self->by_pid[at] != NOBODY &&
           !skua_pid_equal(self->children[self->by_pid[at]].pid, pid)) {
        at = (at + 1) & mask(self);
    }
    return at;
}

/* Empties an entry, and moves those behind it that would no longer be found. */
static void clear_entry(const struct supervisor *self, uint32_t at)
{
    self->by_pid[at] = NOBODY;
    for (uint32_t next = (at + 1) & mask(self); self->by_pid[next] != NOBODY;
         next = (next + 1) & mask(self)) {
        const uint32_t place = self->by_pid[next];
        self->by_pid[next] = NOBODY;
        index_pid(self, place);
    }
}

struct child *roster_find(const struct supervisor *self, skua_pid pid)
{
    const uint32_t place = self->by_pid[find_entry(self, pid)];
    return place != NOBODY ? &self->children[place] : NULL;
}

void roster_live(struct supervisor *self, struct child *child, skua_pid pid)
{
    child->pid = pid;
    self->dynamic += child->is_dynamic;
    index_pid(self, place_of(self, child));
}

void roster_die(struct supervisor *self, struct child *child)
{
    roster_clear_timer(self, child);
    clear_entry(self, find_entry(self, child->pid));
    child->pid = (skua_pid){0};
    self->dynamic -= child->is_dynamic;
    self->doomed -= child->is_doomed;
    child->is_doomed = false;
}

/* ---- places ---- */

/* Moves the table to one with this capacity, a power of two. */
static int resize(struct supervisor *self, skua_context *ctx, uint32_t capacity)
{
    void *children;
    void *by_pid;
    int error = skua_own_alloc(ctx, capacity * sizeof *self->children, &children);
    if (error != 0) {
        return error;
    }
    error = skua_own_alloc(ctx, 2 * (size_t)capacity * sizeof *self->by_pid, &by_pid);
    if (error != 0) {
        (void)skua_own_free(ctx, children);
        return error;
    }
    if (self->used > 0) {
        memcpy(children, self->children, self->used * sizeof *self->children);
    }
    (void)skua_own_free(ctx, self->children);
    (void)skua_own_free(ctx, self->by_pid);
    self->children = children;
    self->by_pid = by_pid;
    self->capacity = capacity;
    memset(self->by_pid, 0xff, 2 * (size_t)capacity * sizeof *self->by_pid); /* NOBODY */
    for (uint32_t i = 0; i < self->used; i++) {
        if (!skua_pid_is_none(self->children[i].pid)) {
            index_pid(self, i);
        }
    }
    return 0;
}

static void fill_place(struct child *child, const skua_child *spec)
{
    *child =
        (struct child){.spec = spec, .start = skua_payload_empty(0), .state = SKUA_CHILD_STOPPED};
}

/* Fills the next place of the list. */
static int fill_listed(struct supervisor *self, skua_context *ctx)
{
    const skua_child *spec = &self->spec->children[self->used];
    struct child *child = &self->children[self->used];
    fill_place(child, spec);
    self->used++;
    self->significant += spec->significant;
    return backoff_reserve(ctx, &spec->budget, &child->spent);
}

int roster_init(struct supervisor *self, skua_context *ctx)
{
    uint32_t capacity = CAPACITY_MIN;
    while (capacity < self->spec->child_count) {
        capacity *= 2;
    }
    self->first_free = NOBODY;
    int error = resize(self, ctx, capacity);
    error = error != 0 ? error : backoff_reserve(ctx, &self->spec->budget, &self->spent);
    while (error == 0 && self->used < self->spec->child_count) {
        error = fill_listed(self, ctx);
    }
    return error;
}

/* Makes sure that there is a free place. */
static int make_room(struct supervisor *self)
{
    if (self->first_free != NOBODY) {
        return 0;
    }
    if (self->used == self->capacity) {
        const int error = self->capacity > UINT32_MAX / 8
                              ? SKUA_E_NO_MEMORY
                              : resize(self, self->ctx, 2 * self->capacity);
        if (error != 0) {
            return error;
        }
    }
    self->children[self->used] = (struct child){.next_free = NOBODY};
    self->first_free = self->used++;
    return 0;
}

int roster_add(struct supervisor *self, const skua_child *spec, struct child **added)
{
    struct spending spent = {0};
    int error = make_room(self);
    error = error != 0 ? error : backoff_reserve(self->ctx, &spec->budget, &spent);
    if (error != 0) {
        return error;
    }
    struct child *child = &self->children[self->first_free];
    self->first_free = child->next_free;
    fill_place(child, spec);
    child->is_dynamic = true;
    child->spent = spent;
    *added = child;
    return 0;
}

void roster_remove(struct supervisor *self, struct child *child)
{
    skua_payload_drop(&child->start);
    (void)skua_own_free(self->ctx, child->spent.times);
    *child = (struct child){.next_free = self->first_free};
    self->first_free = place_of(self, child);
}

/* ---- timers ---- */

static void arm(struct supervisor *self, struct child *child)
{
    const bool failed = skua_yield_sleep(self->ctx, child->timer, child->timer_ns) != 0;
    self->unarmed += failed;
    self->unarmed -= child->is_unarmed;
    child->is_unarmed = failed;
}

void roster_set_timer(struct supervisor *self, struct child *child, uint64_t duration_ns)
{
    roster_clear_timer(self, child);
    self->serial += self->serial < UINT32_MAX ? 1 : 2; /* never 0 */
    child->timer = (uint64_t)place_of(self, child) << 32 | self->serial;
    child->timer_ns = duration_ns;
    arm(self, child);
}

void roster_clear_timer(struct supervisor *self, struct child *child)
{
    if (child->timer != 0 && !child->is_unarmed) {
        const int error = skua_yield_cancel(self->ctx, child->timer);
        (void)error; /* a timer that cannot be taken back ends unnoticed */
    }
    self->unarmed -= child->is_unarmed;
    child->is_unarmed = false;
    child->timer = 0;
}

void roster_retry_timers(struct supervisor *self)
{
    for (uint32_t i = 0; i < self->used && self->unarmed > 0; i++) {
        if (self->children[i].is_unarmed) {
            arm(self, &self->children[i]);
        }
    }
    if (self->unarmed > 0) {
        (void)skua_continue(self->ctx);
    }
}

struct child *roster_take_timer(struct supervisor *self, uint64_t tag)
{
    const uint64_t place = tag >> 32;
    if (place >= self->used || self->children[place].timer != tag) {
        return NULL;
    }
    self->children[place].timer = 0;
    return &self->children[place];
}
