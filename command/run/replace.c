/* SPDX-License-Identifier: MIT */
/* `skua run`: a newer version of the module, while the program runs.
 *
 * Types are the same if they have the same name. A type of the new module whose version is higher
 * than any before replaces those of all earlier modules: their processes are asked to change, and
 * whoever starts one of theirs gets the new one. All of that is checked before any type is
 * replaced. The handlers and pools of the new module are not registered: that is over when the
 * runtime has started.
 *
 * A reload does not take longer for those before it. A type is replaced once, by the next; who
 * starts it is led on from there to the newest. Only for processes that could not change is it
 * replaced again, so first all processes are looked at. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command/run/session.h"

/* Processes that are looked at together. */
#define PAGE 256

/* A type of a module that was loaded. */
struct known_type {
    const skua_process_type *type;
    const skua_module *module;
    struct known_type *next;
    bool is_replaced;
    bool is_live;   /* it was replaced, and processes of it have not changed */
    bool is_chosen; /* of the new module: is to replace others */
};

/* ---- the types of a module ---- */

/* Adds a type at the end of a list. False without memory. */
static bool add_type(struct known_type **types, const skua_process_type *type,
                     const skua_module *module)
{
    struct known_type *known = malloc(sizeof *known);
    if (known == NULL) {
        return false;
    }
    *known = (struct known_type){.type = type, .module = module};
    while (*types != NULL) {
        types = &(*types)->next;
    }
    *types = known;
    return true;
}

static void forget(struct known_type **types)
{
    while (*types != NULL) {
        struct known_type *known = *types;
        *types = known->next;
        free(known);
    }
}

/* Puts the types of a module into an empty list. False without memory. */
static bool list_types(struct known_type **types, const skua_module *module)
{
    bool added = add_type(types, module->root, module);
    for (const skua_process_type *const *type = module->types;
         added && type != NULL && *type != NULL; type++) {
        added = *type == module->root || add_type(types, *type, module);
    }
    if (!added) {
        forget(types);
    }
    return added;
}

static bool is_same(const struct known_type *one, const struct known_type *other)
{
    return one->type != other->type && strcmp(one->type->name, other->type->name) == 0;
}

/* The highest version before a new type, or null. */
static const struct known_type *find_highest(const struct session *session,
                                             const struct known_type *newer)
{
    const struct known_type *highest = NULL;
    for (const struct known_type *known = session->types; known != NULL; known = known->next) {
        if (is_same(known, newer) &&
            (highest == NULL || known->type->version > highest->type->version)) {
            highest = known;
        }
    }
    return highest;
}

/* ---- what is to be replaced ---- */

/* Whether skua_runtime_upgrade would take these two, of which one has the higher version. */
static bool can_replace(const skua_process_type *old, const skua_process_type *newer)
{
    const bool has_shape = newer->migrate == NULL || (old->step != NULL && newer->step != NULL) ||
                           (old->serve != NULL && newer->serve != NULL);
    return has_shape && (newer->calls || !old->calls) && skua_process_type_check(newer) == 0;
}

/* Whether a type can replace all before it that nothing has replaced yet. */
static int check_type(const struct session *session, const struct known_type *newer, char *message,
                      size_t size)
{
    for (const struct known_type *known = session->types; known != NULL; known = known->next) {
        if (is_same(known, newer) && !known->is_replaced &&
            !can_replace(known->type, newer->type)) {
            (void)snprintf(message, size,
                           "'%s' cannot be upgraded from version %" PRIu32 " to %" PRIu32
                           ": that one is of another shape, or takes no calls",
                           newer->type->name, known->type->version, newer->type->version);
            return SKUA_E_VERSION;
        }
    }
    return 0;
}

/* Chooses which types of a new module replace others: all, or those with this name. Returns 0, or
 * an error and the reason. */
static int choose(const struct session *session, struct known_type *fresh, const char *only,
                  const char *file, char *message, size_t size)
{
    const struct known_type *highest = NULL; /* of a type that is not higher */
    bool has_type = false;
    bool is_higher = false;
    for (; fresh != NULL; fresh = fresh->next) {
        if (only != NULL && strcmp(only, fresh->type->name) != 0) {
            continue;
        }
        const struct known_type *before = find_highest(session, fresh);
        has_type = true;
        fresh->is_chosen = before != NULL && fresh->type->version > before->type->version;
        const int error = fresh->is_chosen ? check_type(session, fresh, message, size) : 0;
        if (error != 0) {
            return error;
        }
        is_higher = is_higher || fresh->is_chosen;
        highest = before != NULL ? before : highest;
    }
    if (is_higher) {
        return 0;
    }
    if (highest != NULL) {
        (void)snprintf(message, size,
                       "%s has no higher version of any type: '%s' has version %" PRIu32
                       " in this program",
                       file, highest->type->name, highest->type->version);
        return SKUA_E_VERSION;
    }
    if (has_type) {
        (void)snprintf(message, size, "%s has no type that this program knows", file);
    } else {
        (void)snprintf(message, size, "%s has no type '%s'", file, only);
    }
    return SKUA_E_MODULE;
}

/* ---- replacing ---- */

/* The type of a process. Each module has its names to itself. */
static void note_process(struct known_type *known, const skua_process_snapshot *process)
{
    while (known != NULL && (known->type->name != process->type_name ||
                             known->type->version != process->type_version)) {
        known = known->next;
    }
    if (known != NULL) {
        known->is_live = known->is_replaced;
    }
}

static bool has_replaced(const struct known_type *known)
{
    while (known != NULL && !known->is_replaced) {
        known = known->next;
    }
    return known != NULL;
}

/* Finds the replaced types that processes still have. */
static int find_live(const struct session *session)
{
    if (!has_replaced(session->types)) {
        return 0;
    }
    skua_process_snapshot *page = malloc(PAGE * sizeof *page);
    skua_process_snapshot before = {.type_name = NULL};
    skua_pid after = {0};
    int count = PAGE;
    if (page == NULL) {
        return SKUA_E_NO_MEMORY;
    }
    for (struct known_type *known = session->types; known != NULL; known = known->next) {
        known->is_live = false;
    }
    while (count == PAGE) {
        count = skua_process_list(session->runtime, after, page, PAGE);
        for (int i = 0; i < count; i++) {
            if (page[i].type_name != before.type_name ||
                page[i].type_version != before.type_version) {
                note_process(session->types, &page[i]);
                before = page[i];
            }
            after = page[i].pid;
        }
    }
    free(page);
    return count < 0 ? count : 0;
}

/* Puts a type in the place of all before it. Those that were replaced before only have processes
 * that may be able to change to this one. */
static int replace_with(const struct session *session, const struct known_type *newer)
{
    for (struct known_type *known = session->types; known != NULL; known = known->next) {
        if (!is_same(known, newer) || (known->is_replaced && !known->is_live)) {
            continue;
        }
        const int asked = skua_runtime_upgrade(session->runtime, known->type, newer->type);
        if (asked < 0 && !(known->is_replaced && asked == SKUA_E_VERSION)) {
            return asked;
        }
        known->is_replaced = true;
    }
    return 0;
}

/* Says which type could not replace others, and which have, although all had been checked. */
static void tell_failure(const struct known_type *fresh, const struct known_type *failed, int error,
                         char *message, size_t size)
{
    const char *between = ", after ";
    int used = snprintf(message, size, "cannot upgrade '%s': %s", failed->type->name,
                        skua_error_text(error));
    for (; fresh != failed; fresh = fresh->next) {
        if (fresh->is_chosen && used > 0 && (size_t)used < size) {
            used +=
                snprintf(message + used, size - (size_t)used, "%s'%s'", between, fresh->type->name);
            between = ", ";
        }
    }
}

/* Replaces what was chosen. From then on the module is in use. */
static int replace_all(struct session *session, struct known_type *fresh, char *message,
                       size_t size)
{
    struct known_type *newer = fresh;
    struct known_type *last = fresh;
    int error = 0;
    while (newer != NULL && error == 0) {
        error = newer->is_chosen ? replace_with(session, newer) : 0;
        if (error != 0) {
            tell_failure(fresh, newer, error, message, size);
        }
        newer = newer->next;
    }
    while (last->next != NULL) {
        last = last->next;
    }
    last->next = session->types;
    session->types = fresh;
    return error;
}

/* ---- a reload ---- */

/* Whether the loader has brought a module that is there already. */
static bool is_there(const struct session *session, const skua_module *module)
{
    const struct known_type *known = session->types;
    while (known != NULL && known->module != module) {
        known = known->next;
    }
    return known != NULL;
}

/* Gets ready to replace types, and changes nothing. */
static int prepare(const struct session *session, const skua_module *module, const char *file,
                   const char *only, struct known_type **fresh, char *message, size_t size)
{
    if (is_there(session, module)) {
        (void)snprintf(message, size, "the loader has not read the new file");
        return SKUA_E_MODULE;
    }
    if (!list_types(fresh, module)) {
        return SKUA_E_NO_MEMORY;
    }
    int error = choose(session, *fresh, only, file, message, size);
    error = error != 0 ? error : find_live(session);
    if (error != 0) {
        forget(fresh);
    }
    return error;
}

int replace_modules(void *arg, const char *file, const char *type_name, char *message, size_t size)
{
    struct session *session = arg;
    struct module_fault fault;
    struct module_copy copy;
    struct known_type *fresh = NULL;
    if (session->types == NULL && !list_types(&session->types, session->module)) {
        return SKUA_E_NO_MEMORY;
    }
    if (module_load_again(file, &copy, &fault) != 0) {
        (void)snprintf(message, size, "%s", fault.text);
        return SKUA_E_MODULE;
    }
    const int error = prepare(session, copy.module, file, type_name, &fresh, message, size);
    if (error != 0) {
        module_unload(&copy); /* nothing in the program is of it */
        return error;
    }
    return replace_all(session, fresh, message, size);
}

void replace_forget(struct session *session)
{
    forget(&session->types);
}
