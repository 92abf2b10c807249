/* SPDX-License-Identifier: MIT */
/* Whether a specification is right. Whatever makes no sense is refused, not ignored. A check is a
 * row: a condition that must not hold, and what is wrong if it does. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "supervise/supervisor.h"

#define NAME_MAX_BYTES 63

/* A way through a tree of supervisors: to a child, then to the children below it, then to the next.
 * It has no supervisor twice, so that each has one place on the way to where it is. */
struct walk {
    struct level {
        const skua_supervisor *spec;
        size_t next; /* child of its list */
    } levels[SKUA_SUPERVISORS_DEEP];
    uint32_t depth; /* levels in use */
};

struct check {
    char *text;
    size_t size;
    struct walk walk;
    size_t children; /* of all lists so far */
};

struct fault {
    bool is_there;
    const char *text;
};

#define FIRST_FAULT(...)                                                                           \
    first_fault((const struct fault[]){__VA_ARGS__},                                               \
                sizeof((const struct fault[]){__VA_ARGS__}) / sizeof(struct fault))

static const char *first_fault(const struct fault *faults, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (faults[i].is_there) {
            return faults[i].text;
        }
    }
    return NULL;
}

/* ---- a tree ---- */

static void enter(struct walk *walk, const skua_supervisor *spec)
{
    walk->levels[walk->depth++] = (struct level){.spec = spec};
}

/* The next child of the list where the walk is, or of the one above; null at the end. */
static const skua_child *next_child(struct walk *walk)
{
    while (walk->depth > 0) {
        struct level *level = &walk->levels[walk->depth - 1];
        if (level->next < level->spec->child_count) {
            return &level->spec->children[level->next++];
        }
        walk->depth--;
    }
    return NULL;
}

/* The next child of all, where a tree is known to be one. */
static const skua_child *next_in_tree(struct walk *walk)
{
    const skua_child *child = next_child(walk);
    if (child != NULL && child->supervisor != NULL) {
        enter(walk, child->supervisor);
    }
    return child;
}

static size_t count_tree(const skua_supervisor *spec)
{
    struct walk walk = {.depth = 0};
    size_t count = 0;
    enter(&walk, spec);
    while (next_in_tree(&walk) != NULL) {
        count++;
    }
    return count;
}

/* ---- parts ---- */

static bool is_name(const char *name)
{
    size_t length = 0;
    for (; name != NULL && name[length] != '\0'; length++) {
        if ((unsigned char)name[length] < ' ' || name[length] == 0x7f || length == NAME_MAX_BYTES) {
            return false;
        }
    }
    return length > 0;
}

static bool is_zero(const uintptr_t *words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (words[i] != 0) {
            return false;
        }
    }
    return true;
}

static bool is_duration(uint64_t duration)
{
    return duration <= SKUA_DURATION_MAX || duration == SKUA_FOREVER;
}

static bool can_run(const skua_process_type *type)
{
    return (type->step != NULL) + (type->main != NULL) + (type->serve != NULL) == 1;
}

static bool has_method(const skua_process_type *type, const char *method)
{
    if (method == NULL || (type->methods == NULL && strcmp(method, "main") == 0)) {
        return true;
    }
    for (size_t i = 0; type->methods != NULL && type->methods[i] != NULL; i++) {
        if (strcmp(type->methods[i], method) == 0) {
            return true;
        }
    }
    return false;
}

/* As skua_payload_ref would find it. */
static bool can_repeat(const skua_payload *payload)
{
    const bool owns = payload->storage >= SKUA_PAYLOAD_OWNED && payload->as.owned.drop != NULL;
    return payload->storage == SKUA_PAYLOAD_SHARED ||
           (!owns && payload->storage != SKUA_PAYLOAD_TAKEN);
}

static bool can_repeat_all(const skua_child *child)
{
    for (size_t i = 0; child->input != NULL && i < child->input_count; i++) {
        if (!can_repeat(&child->input[i])) {
            return false;
        }
    }
    return true;
}

static const char *fault_in_budget(const skua_budget *budget)
{
    return FIRST_FAULT(
        {budget->restarts > 0 && budget->period_ns == 0, "budget.restarts without a period"},
        {budget->restarts == 0 && budget->period_ns > 0, "budget.period_ns without restarts"},
        {budget->restarts > SKUA_RESTARTS_MAX, "budget.restarts is more than SKUA_RESTARTS_MAX"},
        {!is_duration(budget->period_ns), "budget.period_ns is negative or too long"});
}

static const char *fault_in_quota(const skua_supervisor *spec)
{
    const skua_quota *quota = &spec->quota;
    return FIRST_FAULT(
        {quota->processes != 0 && quota->processes < spec->child_count,
         "quota.processes is less than child_count"},
        {quota->processes > SKUA_PROCESSES_MAX, "quota.processes is more than SKUA_PROCESSES_MAX"},
        {quota->messages > SKUA_MAILBOX_MAX, "quota.messages is more than SKUA_MAILBOX_MAX"},
        {quota->bytes > PTRDIFF_MAX, "quota.bytes is negative or too large"});
}

static const char *fault_in_backoff(const skua_backoff *backoff)
{
    const uint64_t most = SKUA_DURATION_MAX / 4;
    return FIRST_FAULT(
        {backoff->first_ns > most, "backoff.first_ns is negative or too long"},
        {backoff->max_ns > most, "backoff.max_ns is negative or too long"},
        {backoff->max_ns != 0 && backoff->max_ns < backoff->first_ns,
         "backoff.max_ns is less than backoff.first_ns"},
        {backoff_max(backoff) < backoff->first_ns,
         "backoff.first_ns is more than backoff.max_ns, which is 30 s if it is not set"},
        {!is_duration(backoff->stable_ns), "backoff.stable_ns is negative or too long"});
}

/* Of a quota that lies within another one. */
static const char *fault_in_inner_quota(const skua_quota *inner, const skua_quota *outer)
{
    return FIRST_FAULT({outer->processes != 0 && inner->processes > outer->processes,
                        "quota.processes is more than a supervisor above it allows"},
                       {outer->messages != 0 && inner->messages > outer->messages,
                        "quota.messages is more than a supervisor above it allows"},
                       {outer->bytes != 0 && inner->bytes > outer->bytes,
                        "quota.bytes is more than a supervisor above it allows"});
}

/* ---- a child ---- */

/* What is never started again needs none of this. */
static const char *fault_in_restart(const skua_child *child)
{
    const bool is_once = child->restart == SKUA_RESTART_NEVER;
    const skua_backoff *backoff = &child->backoff;
    return FIRST_FAULT(
        {child->restart > SKUA_RESTART_NEVER, "restart: no such value"},
        {is_once && child->budget.restarts > 0, "budget: it is never started again"},
        {is_once && (backoff->first_ns != 0 || backoff->max_ns != 0 || backoff->stable_ns != 0),
         "backoff: it is never started again"});
}

static const char *fault_in_type(const skua_child *child)
{
    const skua_process_type *type = child->type;
    if (type == NULL) {
        return NULL;
    }
    return FIRST_FAULT(
        {type->name == NULL, "type: the process type has no name"},
        {!can_run(type), "type: the process type needs exactly one of step, main, serve"},
        {type->mailbox_limit > SKUA_MAILBOX_MAX,
         "type: mailbox_limit of the process type is more than SKUA_MAILBOX_MAX"},
        {type->overflow > SKUA_OVERFLOW_END, "type: overflow of the process type: no such value"},
        {type->cancel > SKUA_CANCEL_EVENT, "type: cancel of the process type: no such value"},
        {type->step != NULL && type->stack_size > 0,
         "type: stack_size of the process type: only a task has a stack"},
        {skua_process_type_check(type) != 0,
         "type: state_size, stack_size or reserved of the process type is out of range"},
        {!has_method(type, child->method), "method: the type has no such method"});
}

static const char *fault_in_child(const skua_child *child)
{
    const char *fault = FIRST_FAULT(
        {child->type == NULL && child->supervisor == NULL, "type: it has neither type nor "
                                                           "supervisor"},
        {child->type != NULL && child->supervisor != NULL,
         "supervisor: it has a type as well; set one of them"},
        {child->supervisor != NULL && (child->method != NULL || child->input_count > 0),
         "supervisor: it takes neither method nor input"},
        {child->input == NULL && child->input_count > 0, "input_count without an input"},
        {!can_repeat_all(child), "input: a payload that cannot be repeated; share it"},
        {child->significant && child->restart == SKUA_RESTART_ALWAYS,
         "significant: it is always started again, so it never ends for good"},
        {!is_duration(child->start_ns), "start_ns is negative or too long"},
        {!is_duration(child->stop_ns), "stop_ns is negative or too long"},
        {!is_zero(child->reserved, sizeof child->reserved / sizeof *child->reserved),
         "reserved: not zero"});
    fault = fault != NULL ? fault : fault_in_type(child);
    fault = fault != NULL ? fault : fault_in_budget(&child->budget);
    fault = fault != NULL ? fault : fault_in_backoff(&child->backoff);
    return fault != NULL ? fault : fault_in_restart(child);
}

static const char *fault_in_listed(const skua_child *child)
{
    return child->type == skua_supervisor_type()
               ? "type: a supervisor in the list has its specification in .supervisor"
               : NULL;
}

static const char *fault_in_template(const skua_child *child)
{
    return FIRST_FAULT({child->supervisor != NULL, "supervisor: a template has a type"},
                       {child->method != NULL, "method: it comes with each start of a template"},
                       {child->input_count > 0 || child->input != NULL,
                        "input: it comes with each start of a template"},
                       {child->registered, "registered: the name comes with each start of a "
                                           "template"});
}

/* ---- a supervisor ---- */

static size_t count_significant(const skua_child *children, size_t count)
{
    size_t significant = 0;
    for (size_t i = 0; i < count; i++) {
        significant += children[i].significant;
    }
    return significant;
}

static const char *fault_in_stop(const skua_supervisor *spec)
{
    const size_t in_list = count_significant(spec->children, spec->child_count);
    const size_t in_templates = count_significant(spec->templates, spec->template_count);
    return FIRST_FAULT({spec->auto_stop > SKUA_AUTO_STOP_ALL, "auto_stop: no such value"},
                       {spec->auto_stop != SKUA_AUTO_STOP_NEVER && in_list + in_templates == 0,
                        "auto_stop without a significant child"},
                       {spec->auto_stop == SKUA_AUTO_STOP_NEVER && in_list + in_templates > 0,
                        "auto_stop: there are significant children, and it is not set"},
                       {spec->auto_stop == SKUA_AUTO_STOP_ALL && in_templates > 0,
                        "auto_stop: ALL does not go with a significant template"});
}

static const char *fault_in_supervisor(const skua_supervisor *spec)
{
    const char *fault = FIRST_FAULT(
        {!is_name(spec->name), "name: it needs 1 to 63 bytes without control characters"},
        {spec->children == NULL && spec->child_count > 0, "child_count without children"},
        {spec->templates == NULL && spec->template_count > 0, "template_count without templates"},
        {spec->child_count == 0 && spec->template_count == 0, "child_count and template_count are "
                                                              "both 0"},
        {spec->child_count > SKUA_CHILDREN_MAX, "child_count is more than SKUA_CHILDREN_MAX"},
        {spec->template_count > SKUA_CHILDREN_MAX, "template_count is more than SKUA_CHILDREN_MAX"},
        {spec->strategy > SKUA_STRATEGY_REST, "strategy: no such value"},
        {spec->strategy != SKUA_STRATEGY_ONE && spec->child_count == 0,
         "strategy: there is no list of children"},
        {spec->parallel_stop && spec->child_count == 0, "parallel_stop: there is no list of "
                                                        "children"},
        {!is_zero(spec->reserved, sizeof spec->reserved / sizeof *spec->reserved),
         "reserved: not zero"});
    fault = fault != NULL ? fault : fault_in_budget(&spec->budget);
    return fault != NULL ? fault : fault_in_quota(spec);
}

/* ---- names, and all of it ---- */

static const skua_child *child_at(const skua_supervisor *spec, size_t index)
{
    return index < spec->child_count ? &spec->children[index]
                                     : &spec->templates[index - spec->child_count];
}

/* What a child must not have in common with an earlier one. */
static const char *fault_in_pair(const skua_supervisor *spec, size_t earlier, size_t later)
{
    const skua_child *one = child_at(spec, earlier);
    const skua_child *other = child_at(spec, later);
    const bool are_templates = earlier >= spec->child_count;
    return FIRST_FAULT(
        {strcmp(one->name, other->name) == 0, "name: another child has it"},
        {are_templates && one->type == other->type, "type: another template has it"});
}

/* ", child NAME"; or, if its name is what is wrong, its number from 1; or nothing. */
static void name_child(const skua_supervisor *spec, const skua_child *child, char *text,
                       size_t size)
{
    size_t index = 0;
    text[0] = '\0';
    if (child == NULL) {
        return;
    }
    while (child_at(spec, index) != child) {
        index++;
    }
    const bool is_template = index >= spec->child_count;
    const char *kind = is_template ? "template" : "child";
    if (is_name(child->name)) {
        (void)snprintf(text, size, ", %s %s", kind, child->name);
    } else {
        (void)snprintf(text, size, ", %s number %zu", kind,
                       index + 1 - (is_template ? spec->child_count : 0));
    }
}

/* The names on the way to a supervisor: of the root, then of children. "shop/tills" */
static void name_path(const struct walk *walk, const skua_supervisor *spec, char *text, size_t size)
{
    const struct level *level = walk->levels;
    (void)snprintf(text, size, "%s", is_name(level->spec->name) ? level->spec->name : "?");
    for (; level->spec != spec; level++) {
        const size_t length = strlen(text);
        (void)snprintf(text + length, size - length, "/%s",
                       level->spec->children[level->next - 1].name);
    }
}

static int complain(const struct check *check, const skua_supervisor *spec, const skua_child *child,
                    const char *fault)
{
    char path[160];
    char name[80];
    if (check->text != NULL && check->size > 0) {
        name_path(&check->walk, spec, path, sizeof path);
        name_child(spec, child, name, sizeof name);
        (void)snprintf(check->text, check->size, "supervisor %s%s: %s", path, name, fault);
    }
    return SKUA_E_SPECIFICATION;
}

static int check_child(const struct check *check, const skua_supervisor *spec, size_t index)
{
    const skua_child *child = child_at(spec, index);
    const char *fault =
        is_name(child->name) ? NULL : "name: it needs 1 to 63 bytes without control characters";
    if (fault == NULL) {
        fault = (index < spec->child_count ? fault_in_listed : fault_in_template)(child);
    }
    fault = fault != NULL ? fault : fault_in_child(child);
    return fault != NULL ? complain(check, spec, child, fault) : 0;
}

/* Names and types that were seen, two bits for each: one that lacks a bit is new. Few others lack
 * none, so few have to be compared with all before them. As large as a task has room for. */
#define SEEN_BITS (UINT32_C(1) << 15)

struct seen {
    uint64_t words[SEEN_BITS / 64];
};

static bool set_bit(struct seen *seen, uint64_t number)
{
    uint64_t *word = &seen->words[number % SEEN_BITS / 64];
    const uint64_t bit = UINT64_C(1) << number % 64;
    const bool was_set = (*word & bit) != 0;
    *word |= bit;
    return was_set;
}

/* Whether it may have been seen before. */
static bool may_be_seen(struct seen *seen, const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < size; i++) {
        hash = (hash ^ at[i]) * UINT64_C(0x100000001b3); /* FNV-1a */
    }
    const bool has_one = set_bit(seen, hash >> 40);
    const bool has_other = set_bit(seen, hash >> 16);
    return has_one && has_other;
}

/* No two children may have the same name, no two templates the same type. */
static int check_pairs(const struct check *check, const skua_supervisor *spec)
{
    struct seen seen = {{0}};
    for (size_t i = 0; i < spec->child_count + spec->template_count; i++) {
        const skua_child *child = child_at(spec, i);
        bool may_be_second = may_be_seen(&seen, child->name, strlen(child->name));
        if (i >= spec->child_count && may_be_seen(&seen, &child->type, sizeof(void *))) {
            may_be_second = true;
        }
        for (size_t earlier = 0; may_be_second && earlier < i; earlier++) {
            const char *fault = fault_in_pair(spec, earlier, i);
            if (fault != NULL) {
                return complain(check, spec, child, fault);
            }
        }
    }
    return 0;
}

/* ---- one supervisor, and all of them ---- */

static int check_supervisor(const struct check *check, const skua_supervisor *spec)
{
    const char *fault = fault_in_supervisor(spec);
    int error = fault != NULL ? complain(check, spec, NULL, fault) : 0;
    for (size_t i = 0; error == 0 && i < spec->child_count + spec->template_count; i++) {
        error = check_child(check, spec, i);
    }
    error = error != 0 ? error : check_pairs(check, spec);
    fault = error == 0 ? fault_in_stop(spec) : NULL;
    return fault != NULL ? complain(check, spec, NULL, fault) : error;
}

static bool is_on_the_way(const struct walk *walk, const skua_supervisor *spec)
{
    for (uint32_t i = 0; i < walk->depth; i++) {
        if (walk->levels[i].spec == spec) {
            return true;
        }
    }
    return false;
}

/* Before the walk enters the supervisor that a child is. */
static const char *fault_in_place(const struct check *check, const skua_child *child)
{
    return FIRST_FAULT(
        {is_on_the_way(&check->walk, child->supervisor), "supervisor: it contains itself"},
        {check->walk.depth == SKUA_SUPERVISORS_DEEP, "supervisor: too many levels"},
        {check->children > SKUA_TREE_MAX,
         "supervisor: the lists have more than SKUA_TREE_MAX children together"});
}

/* Each supervisor by itself. What is below one that stands in several places is checked as often:
 * there may be so many ways down that only SKUA_TREE_MAX ends it. */
static int check_each(struct check *check, const skua_supervisor *root)
{
    enter(&check->walk, root);
    int error = check_supervisor(check, root);
    for (const skua_child *child; error == 0 && (child = next_child(&check->walk)) != NULL;) {
        check->children++;
        if (child->supervisor == NULL) {
            continue;
        }
        const skua_supervisor *above = check->walk.levels[check->walk.depth - 1].spec;
        const char *fault = fault_in_place(check, child);
        if (fault != NULL) {
            return complain(check, above, child, fault);
        }
        enter(&check->walk, child->supervisor);
        error = check_supervisor(check, child->supervisor);
    }
    return error;
}

static bool fits_quota(const skua_supervisor *spec)
{
    return spec->quota.processes == 0 || spec->quota.processes >= count_tree(spec);
}

/* Whether one of the first `count` children of a tree is registered by this name. */
static bool is_registered(const skua_supervisor *root, size_t count, const char *name)
{
    struct walk walk = {.depth = 0};
    enter(&walk, root);
    for (; count > 0; count--) {
        const skua_child *child = next_in_tree(&walk);
        if (child->registered && strcmp(child->name, name) == 0) {
            return true;
        }
    }
    return false;
}

static const skua_supervisor *supervisor_of(const struct walk *walk, const skua_child *child)
{
    return walk->levels[walk->depth - (child->supervisor != NULL ? 2 : 1)].spec;
}

/* The quota of the supervisor that the walk has just entered. */
static const char *fault_in_nesting(const struct walk *walk)
{
    const char *fault = NULL;
    const skua_quota *inner = &walk->levels[walk->depth - 1].spec->quota;
    for (uint32_t i = 0; fault == NULL && i + 1 < walk->depth; i++) {
        fault = fault_in_inner_quota(inner, &walk->levels[i].spec->quota);
    }
    return fault;
}

/* Quotas must have room for what is below and lie within those above; no two children may be
 * registered by one name. */
static int check_together(struct check *check, const skua_supervisor *root)
{
    static const char too_small[] = "quota.processes is less than the children in its lists, and "
                                    "below";
    struct seen seen = {{0}};
    size_t count = 0;
    if (!fits_quota(root)) {
        return complain(check, root, NULL, too_small);
    }
    for (const skua_child *child; (child = next_in_tree(&check->walk)) != NULL; count++) {
        if (child->supervisor != NULL && !fits_quota(child->supervisor)) {
            return complain(check, child->supervisor, NULL, too_small);
        }
        const char *fault = child->supervisor != NULL ? fault_in_nesting(&check->walk) : NULL;
        if (fault != NULL) {
            return complain(check, child->supervisor, NULL, fault);
        }
        if (child->registered && may_be_seen(&seen, child->name, strlen(child->name)) &&
            is_registered(root, count, child->name)) {
            return complain(check, supervisor_of(&check->walk, child), child,
                            "registered: another child of the tree has that name");
        }
    }
    return 0;
}

int specification_check(const skua_supervisor *spec, char *text, size_t size)
{
    struct check check = {.text = text, .size = size};
    if (text != NULL && size > 0) {
        text[0] = '\0';
    }
    if (spec == NULL) {
        return SKUA_E_INVALID;
    }
    const int error = check_each(&check, spec);
    if (error != 0) {
        return error;
    }
    enter(&check.walk, spec); /* which has come to its end */
    return check_together(&check, spec);
}

int skua_supervisor_check(const skua_supervisor *specification, char *text, size_t size)
{
    return specification_check(specification, text, size);
}
