/* SPDX-License-Identifier: MIT */
/* `skua run`: a newer version of the module, while the program runs.
 *
 * Types are the same if they have the same name. A type of the new module whose version is higher
 * than any before replaces those of all earlier modules: their processes are asked to change, and
 * whoever starts one of theirs gets the new one. The handlers and pools of the new module are not
 * registered: that is over when the runtime has started. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command/run/session.h"

/* What has become of a reload so far. */
struct replacing {
    struct session *session;
    const char *only; /* the name of a type, or null */
    bool has_type;    /* the new module has a type that was asked for, */
    bool is_known;    /* an earlier one has it too, */
    bool is_higher;   /* with a lower version */
    uint32_t highest; /* of the type at hand, in earlier modules */
    uint32_t version; /* of the last type that was not higher, */
    const char *name; /* and its name */
    int error;
};

/* ---- the types of a module ---- */

typedef void type_fn(struct replacing *replacing, const skua_process_type *type,
                     const skua_process_type *newer);

static void for_types(const skua_module *module, type_fn *function, struct replacing *replacing,
                      const skua_process_type *newer)
{
    function(replacing, module->root, newer);
    for (const skua_process_type *const *type = module->types; type != NULL && *type != NULL;
         type++) {
        if (*type != module->root) {
            function(replacing, *type, newer);
        }
    }
}

static void for_earlier_types(struct replacing *replacing, type_fn *function,
                              const skua_process_type *newer)
{
    const struct session *session = replacing->session;
    for (const struct newer_module *module = session->newest->earlier; module != NULL;
         module = module->earlier) {
        for_types(module->module, function, replacing, newer);
    }
    for_types(session->module, function, replacing, newer);
}

/* ---- replacing ---- */

static bool is_same(const skua_process_type *type, const skua_process_type *newer)
{
    return strcmp(type->name, newer->name) == 0 && type != newer;
}

/* One type of an earlier module. */
static void find_highest(struct replacing *replacing, const skua_process_type *type,
                         const skua_process_type *newer)
{
    if (is_same(type, newer)) {
        replacing->is_known = true;
        replacing->highest =
            type->version > replacing->highest ? type->version : replacing->highest;
    }
}

/* The same. */
static void replace_type(struct replacing *replacing, const skua_process_type *type,
                         const skua_process_type *newer)
{
    if (!is_same(type, newer)) {
        return;
    }
    const int asked = skua_runtime_upgrade(replacing->session->runtime, type, newer);
    if (asked < 0) {
        replacing->error = asked;
    } else {
        replacing->is_higher = true;
    }
}

/* One type of the new module. */
static void bring_type(struct replacing *replacing, const skua_process_type *type,
                       const skua_process_type *unused)
{
    (void)unused;
    if (replacing->only != NULL && strcmp(replacing->only, type->name) != 0) {
        return;
    }
    replacing->has_type = true;
    replacing->highest = 0;
    for_earlier_types(replacing, find_highest, type);
    if (type->version > replacing->highest) {
        for_earlier_types(replacing, replace_type, type);
    } else {
        replacing->version = replacing->highest;
        replacing->name = type->name;
    }
}

/* ---- what came of it ---- */

static int judge(const struct replacing *replacing, const char *file, char *message, size_t size)
{
    if (replacing->error != 0) {
        (void)snprintf(message, size, "cannot upgrade: %s", skua_error_text(replacing->error));
        return replacing->error;
    }
    if (!replacing->has_type) {
        (void)snprintf(message, size, "%s has no type '%s'", file, replacing->only);
        return SKUA_E_MODULE;
    }
    if (!replacing->is_known) {
        (void)snprintf(message, size, "%s has no type that this program knows", file);
        return SKUA_E_MODULE;
    }
    if (!replacing->is_higher) {
        (void)snprintf(message, size,
                       "%s has no higher version of any type: '%s' has version %" PRIu32
                       " in this program",
                       file, replacing->name, replacing->version);
        return SKUA_E_VERSION;
    }
    return 0;
}

/* Whether the loader has brought a module that is there already. */
static bool is_there(const struct session *session, const skua_module *module)
{
    const struct newer_module *newer = session->newest;
    while (newer != NULL && newer->module != module) {
        newer = newer->earlier;
    }
    return newer != NULL || session->module == module;
}

int replace_modules(void *arg, const char *file, const char *type_name, char *message, size_t size)
{
    struct session *session = arg;
    struct module_fault fault;
    const skua_module *module;
    struct newer_module *newer = malloc(sizeof *newer);
    if (newer == NULL) {
        return SKUA_E_NO_MEMORY;
    }
    int error = module_load_again(file, &module, &fault) != 0 ? SKUA_E_MODULE : 0;
    if (error == 0 && is_there(session, module)) {
        (void)snprintf(fault.text, sizeof fault.text, "the loader has not read the new file");
        error = SKUA_E_MODULE;
    }
    if (error != 0) {
        (void)snprintf(message, size, "%s", fault.text);
        free(newer);
        return error;
    }
    *newer = (struct newer_module){.module = module, .earlier = session->newest};
    session->newest = newer;
    struct replacing replacing = {.session = session, .only = type_name};
    for_types(module, bring_type, &replacing, NULL);
    error = judge(&replacing, file, message, size);
    if (error != 0 && !replacing.is_higher) { /* nothing in the program is of it */
        session->newest = newer->earlier;
        free(newer);
    }
    return error;
}

void replace_forget(struct session *session)
{
    while (session->newest != NULL) {
        struct newer_module *newest = session->newest;
        session->newest = newest->earlier;
        free(newest);
    }
}
