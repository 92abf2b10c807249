/* SPDX-License-Identifier: MIT */
/* Whether a specification is right. Whatever makes no sense is refused, not ignored. A check is a
 * row: a condition that must not hold, and what is wrong if it does. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "supervise/supervisor.h"

#define NAME_MAX_BYTES 63

/* A supervisor on the way down from the root. */
struct level {
    const skua_supervisor *spec;
    const struct level *above; /* null: this is the root */
    uint32_t depth;
};

struct check {
    char *text;
    size_t size;
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
        {!is_duration(backoff->stable_ns), "backoff.stable_ns is negative or too long"});
}

/* ---- a child ---- */

static const char *fault_in_type(const skua_child *child)
{
    const skua_process_type *type = child->type;
    if (type == NULL) {
        return NULL;
    }
    return FIRST_FAULT(
        {type->name == NULL, "type: the process type has no name"},
        {!can_run(type), "type: the process type needs exactly one of step, main, serve"},
        {skua_process_type_check(type) != 0, "type: a field of the process type is out of range"},
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
        {child->restart > SKUA_RESTART_NEVER, "restart: no such value"},
        {child->significant && child->restart == SKUA_RESTART_ALWAYS,
         "significant: it is always started again, so it never ends for good"},
        {!is_duration(child->start_ns), "start_ns is negative or too long"},
        {!is_duration(child->stop_ns), "stop_ns is negative or too long"},
        {!is_zero(child->reserved, sizeof child->reserved / sizeof *child->reserved),
         "reserved: not zero"});
    fault = fault != NULL ? fault : fault_in_type(child);
    fault = fault != NULL ? fault : fault_in_budget(&child->budget);
    return fault != NULL ? fault : fault_in_backoff(&child->backoff);
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
    text[0] = '\0';
    if (child == NULL) {
        return;
    }
    if (is_name(child->name)) {
        (void)snprintf(text, size, ", child %s", child->name);
        return;
    }
    size_t index = 0;
    while (child_at(spec, index) != child) {
        index++;
    }
    const bool is_template = index >= spec->child_count;
    (void)snprintf(text, size, ", %s number %zu", is_template ? "template" : "child",
                   index + 1 - (is_template ? spec->child_count : 0));
}

static int complain(const struct check *check, const skua_supervisor *spec, const skua_child *child,
                    const char *fault)
{
    char name[80];
    if (check->text != NULL && check->size > 0) {
        name_child(spec, child, name, sizeof name);
        (void)snprintf(check->text, check->size, "supervisor %s%s: %s",
                       is_name(spec->name) ? spec->name : "?", name, fault);
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
        if (i >= spec->child_count && may_be_seen(&seen, &child->type, sizeof child->type)) {
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

static bool is_above(const struct level *level, const skua_supervisor *spec)
{
    while (level != NULL && level->spec != spec) {
        level = level->above;
    }
    return level != NULL;
}

/* NOLINTNEXTLINE(misc-no-recursion): SKUA_SUPERVISORS_DEEP bounds it. */
static int check_level(const struct check *check, const struct level *level)
{
    const skua_supervisor *spec = level->spec;
    const char *fault = fault_in_supervisor(spec);
    int error = fault != NULL ? complain(check, spec, NULL, fault) : 0;
    for (size_t i = 0; error == 0 && i < spec->child_count + spec->template_count; i++) {
        error = check_child(check, spec, i);
    }
    error = error != 0 ? error : check_pairs(check, spec);
    fault = error == 0 ? fault_in_stop(spec) : NULL;
    error = fault != NULL ? complain(check, spec, NULL, fault) : error;
    for (size_t i = 0; error == 0 && i < spec->child_count; i++) {
        const skua_child *child = &spec->children[i];
        const struct level below = {
            .spec = child->supervisor, .above = level, .depth = level->depth + 1};
        if (child->supervisor == NULL) {
            continue;
        }
        if (is_above(level, child->supervisor)) {
            error = complain(check, spec, child, "supervisor: it contains itself");
        } else if (below.depth > SKUA_SUPERVISORS_DEEP) {
            error = complain(check, spec, child, "supervisor: too many levels");
        } else {
            error = check_level(check, &below);
        }
    }
    return error;
}

int specification_check(const skua_supervisor *spec, char *text, size_t size)
{
    const struct check check = {.text = text, .size = size};
    const struct level root = {.spec = spec, .depth = 1};
    if (text != NULL && size > 0) {
        text[0] = '\0';
    }
    return spec != NULL ? check_level(&check, &root) : SKUA_E_INVALID;
}

int skua_supervisor_check(const skua_supervisor *specification, char *text, size_t size)
{
    return specification_check(specification, text, size);
}
