/* SPDX-License-Identifier: MIT */
/* `skua run`: from a file to a descriptor that can be trusted. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command/run/run.h"
#include "command/support.h"

static const char *const default_methods[] = {"main", NULL};

static const char *const *methods_of(const skua_process_type *type)
{
    return type->methods != NULL ? type->methods : default_methods;
}

/* ---- loading ---- */

/* Notes what is wrong with a module. Returns STATUS_FAILURE. */
__attribute__((format(printf, 2, 3))) static int complain(struct module_fault *fault,
                                                          const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(fault->text, sizeof fault->text, format, arguments);
    va_end(arguments);
    return STATUS_FAILURE;
}

/* What is wrong with the file itself: the loader would say it in words of its own, if at all. The
 * descriptor; -1 after a complaint. */
static int open_file(const char *path, struct module_fault *fault)
{
    struct stat status;
    if (stat(path, &status) != 0) {
        (void)complain(fault, "%s: %s", path, strerror(errno));
        return -1;
    }
    if (!S_ISREG(status.st_mode)) { /* a pipe would be waited for */
        (void)complain(fault, "%s is not a file", path);
        return -1;
    }
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        (void)complain(fault, "%s: %s", path, strerror(errno));
        return -1;
    }
    const char *reason = elf_fault(fd, (uint64_t)status.st_size);
    if (reason != NULL) {
        (void)complain(fault, "%s %s", path, reason);
        (void)close(fd);
        return -1;
    }
    return fd;
}

/* The loader's complaint without the path that it may begin with. */
static const char *loader_says(const char *path)
{
    const char *text = dlerror();
    const size_t length = strlen(path);
    if (text == NULL) {
        return "?";
    }
    return strncmp(text, path, length) == 0 && strncmp(text + length, ": ", 2) == 0
               ? text + length + 2
               : text;
}

/* The library that is loaded from `place`; null after a complaint. */
static void *load(const char *path, const char *place, int flags, struct module_fault *fault)
{
    void *library = dlopen(place, RTLD_NOW | RTLD_LOCAL | flags);
    if (library == NULL) {
        (void)complain(fault, "cannot load %s: %s", path, loader_says(place));
    }
    return library;
}

/* Its descriptor; null after a complaint, here or before. */
static const skua_module *module_in(void *library, const char *path, struct module_fault *fault)
{
    const skua_module *module = library != NULL ? dlsym(library, SKUA_MODULE_SYMBOL) : NULL;
    if (library != NULL && module == NULL) {
        (void)complain(fault,
                       "%s is not a Skua module: the symbol %s, which SKUA_MODULE "
                       "(skua/module.h) defines, is missing",
                       path, SKUA_MODULE_SYMBOL);
    }
    return module;
}

static const skua_module *open_path(const char *path, struct module_fault *fault)
{
    const int fd = open_file(path, fault);
    if (fd < 0) {
        return NULL;
    }
    (void)close(fd);
    return module_in(load(path, path, RTLD_NODELETE, fault), path, fault);
}

/* A copy of a file in memory; -1 after a complaint. */
static int copy_file(const char *path, struct module_fault *fault)
{
    const int from = open_file(path, fault);
    if (from < 0) {
        return -1;
    }
    const int copy = memfd_create("skua-module", MFD_CLOEXEC);
    ssize_t copied = copy < 0 ? -1 : 1;
    while (copied > 0) {
        copied = sendfile(copy, from, NULL, SSIZE_MAX / 2);
    }
    if (copied < 0) {
        (void)complain(fault, "cannot copy %s: %s", path, strerror(errno));
        (void)close(copy);
    }
    (void)close(from);
    return copied < 0 ? -1 : copy;
}

/* Where the loader finds a copy. */
struct place {
    char path[64];
};

static struct place place_of(int copy)
{
    struct place place;
    (void)snprintf(place.path, sizeof place.path, "/proc/self/fd/%d", copy);
    return place;
}

/* The loader knows files by name and inode, and would not load one again: so it gets a copy. While
 * it is loaded, that stays open, so that its name stays its own, and tools find the symbols there.
 */
static int open_copy(const char *path, struct module_copy *copy, struct module_fault *fault)
{
    *copy = (struct module_copy){.file = copy_file(path, fault)};
    if (copy->file < 0) {
        return STATUS_FAILURE;
    }
    copy->library = load(path, place_of(copy->file).path, 0, fault);
    copy->module = module_in(copy->library, path, fault);
    return copy->module != NULL ? 0 : STATUS_FAILURE;
}

void module_unload(const struct module_copy *copy)
{
    if (copy->library != NULL) {
        (void)dlclose(copy->library);
    }
    if (copy->file >= 0 && dlopen(place_of(copy->file).path, RTLD_NOW | RTLD_NOLOAD) == NULL) {
        (void)close(copy->file);
    } /* or the loader keeps it */
}

/* ---- checking ---- */

static const char *fault_of_type(const skua_process_type *type)
{
    if (type->name == NULL || type->name[0] == '\0') {
        return "a process type has no name";
    }
    const int shapes = (type->step != NULL) + (type->main != NULL) + (type->serve != NULL);
    if (shapes != 1) {
        return shapes == 0 ? "a process type has no step, main or serve"
                           : "a process type has more than one of step, main and serve";
    }
    if (type->methods != NULL && type->methods[0] == NULL) {
        return "a process type has an empty list of methods";
    }
    return NULL;
}

/* What is wrong with the descriptor; null if nothing is. */
static const char *fault_of(const skua_module *module)
{
    if (module->name == NULL || module->name[0] == '\0') {
        return "it has no name";
    }
    if (module->root == NULL) {
        return "it has no root process";
    }
    const char *fault = fault_of_type(module->root);
    const skua_process_type *const *type = module->types;
    while (fault == NULL && type != NULL && *type != NULL) {
        fault = fault_of_type(*type++);
    }
    return fault;
}

static int check_version(const char *path, const skua_module *module, struct module_fault *fault)
{
    if (module->version == SKUA_MODULE_VERSION) {
        return 0;
    }
    return complain(fault, "%s was compiled for Skua %u.%u, and this is Skua %u.%u", path,
                    (unsigned)(module->version >> 16), (unsigned)(module->version & 0xffff),
                    (unsigned)SKUA_VERSION_MAJOR, (unsigned)SKUA_VERSION_MINOR);
}

static int check(const char *path, const skua_module *module, struct module_fault *fault)
{
    const int status = check_version(path, module, fault);
    if (status != 0) {
        return status;
    }
    const char *reason = fault_of(module);
    return reason != NULL ? complain(fault, "%s: invalid module descriptor: %s", path, reason) : 0;
}

int module_load(const char *file, const skua_module **module)
{
    /* A name without a slash would be looked for among the system's libraries. */
    char *path = NULL;
    struct module_fault fault;
    if (asprintf(&path, "%s%s", strchr(file, '/') == NULL ? "./" : "", file) < 0) {
        return failure(RUN, "out of memory");
    }
    *module = open_path(path, &fault);
    const int status = *module != NULL ? check(path, *module, &fault) : STATUS_FAILURE;
    free(path);
    return status == 0 ? 0 : failure(RUN, "%s", fault.text);
}

int module_load_again(const char *file, struct module_copy *copy, struct module_fault *fault)
{
    int status = open_copy(file, copy, fault);
    status = status == 0 ? check(file, copy->module, fault) : status;
    if (status != 0) {
        module_unload(copy);
    }
    return status;
}

/* ---- what it consists of ---- */

bool module_has_method(const skua_process_type *type, const char *method)
{
    const char *const *name = methods_of(type);
    while (method != NULL && *name != NULL && strcmp(*name, method) != 0) {
        name++;
    }
    return *name != NULL;
}

void module_format_methods(const skua_process_type *type, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (const char *const *name = methods_of(type); *name != NULL && used < size; name++) {
        used += (size_t)snprintf(text + used, size - used, "%s%s", used > 0 ? ", " : "", *name);
    }
}

static void list_type(const char *role, const skua_process_type *type)
{
    char methods[256];
    module_format_methods(type, methods, sizeof methods);
    printf("  %-8s %-16s methods: %s\n", role, type->name, methods);
}

static void list_handler(const skua_module_handler *entry)
{
    const skua_handler *handler = &entry->handler;
    const char *simulated = handler->simulate != NULL ? "by a double"
                            : handler->sim_safe       ? "as it is"
                                                      : "no";
    printf("  %-8s %-16s command %" PRIu32 ", simulated: %s\n", "handler",
           handler->name != NULL ? handler->name : "-", entry->id, simulated);
}

static void list_pool(const skua_blocking_pool *pool)
{
    printf("  %-8s %-16s threads: ", "pool", pool->name);
    if (pool->thread_limit > 0) {
        printf("%" PRIu32, pool->thread_limit);
    } else {
        printf("default");
    }
    printf(", simulated: %s\n", pool->sim_safe ? "as it is" : "no");
}

void module_list(const skua_module *module)
{
    printf("%s%s%s\n", module->name, module->about != NULL ? ": " : "",
           module->about != NULL ? module->about : "");
    list_type("root", module->root);
    for (const skua_process_type *const *type = module->types; type != NULL && *type != NULL;
         type++) {
        list_type("type", *type);
    }
    for (const skua_module_handler *entry = module->handlers;
         entry != NULL && entry->handler.run != NULL; entry++) {
        list_handler(entry);
    }
    for (const skua_blocking_pool *pool = module->pools; pool != NULL && pool->name != NULL;
         pool++) {
        list_pool(pool);
    }
}

int module_register(const skua_module *module, skua_runtime *runtime)
{
    for (const skua_module_handler *entry = module->handlers;
         entry != NULL && entry->handler.run != NULL; entry++) {
        const int error = skua_command_register(runtime, entry->id, &entry->handler);
        if (error != 0) {
            return failure(RUN, "%s: cannot register the handler of command %" PRIu32 ": %s: %s",
                           module->name, entry->id, skua_error_name(error), skua_error_text(error));
        }
    }
    for (const skua_blocking_pool *pool = module->pools; pool != NULL && pool->name != NULL;
         pool++) {
        const int error = skua_blocking_register(runtime, pool, NULL);
        if (error != 0) {
            return failure(RUN, "%s: cannot register the pool '%s': %s: %s", module->name,
                           pool->name, skua_error_name(error), skua_error_text(error));
        }
    }
    return 0;
}
