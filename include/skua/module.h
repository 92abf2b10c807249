/* SPDX-License-Identifier: MIT */
/* Modules: programs for the command `skua run`.
 *
 * A module is a shared object that exports one descriptor: what it is called, its process types,
 * the handlers and blocking pools it brings, and its root process. `skua run` makes a runtime, with
 * or without the simulator, registers what the module brings, starts the root and waits for it:
 *
 *     SKUA_MODULE(.name = "hello", .root = &hello_type);
 *
 * Compile a module with -shared -fPIC. It need not be linked with libskua: the command that loads
 * it has the functions. `skua new` writes one that compiles as it is. */
#ifndef SKUA_MODULE_H
#define SKUA_MODULE_H

#include <skua/blocking.h>
#include <skua/command.h>
#include <skua/process.h>
#include <skua/version.h>

/* What a module must have been compiled for: until 1.0, the same major and minor version. */
#define SKUA_MODULE_VERSION ((uint32_t)SKUA_VERSION_MAJOR << 16 | (uint32_t)SKUA_VERSION_MINOR)

/* The handler of a command that a module brings. */
typedef struct skua_module_handler {
    uint32_t id;          /* of the command, as for skua_command_register */
    skua_handler handler; /* likewise */
} skua_module_handler;

/* What a module is and brings. Everything that it points to stays valid and unchanged while the
 * module is loaded. */
typedef struct skua_module {
    uint32_t version;              /* SKUA_MODULE_VERSION; SKUA_MODULE fills it in */
    const char *name;              /* for messages of the command */
    const char *about;             /* what it does, in one line; may be null */
    const skua_process_type *root; /* the process that is the program; its input is the arguments
                                      of the command line, each a payload of its bytes with a
                                      zero at the end */
    /* The other types, ended by a null; may be null. `skua run --list` shows them. */
    const skua_process_type *const *types;
    /* Ended by one whose handler has no `run`; may be null. */
    const skua_module_handler *handlers;
    /* Ended by one without a name; may be null. Processes find them by skua_blocking_find. */
    const skua_blocking_pool *pools;
    uintptr_t reserved[4]; /* zero */
} skua_module;

/* The name of the descriptor, as the command looks it up. */
#define SKUA_MODULE_SYMBOL "skua_module_descriptor"

/* Defines the descriptor: the fields are given as in an initializer, also in C++ before C++20. */
#ifdef __cplusplus
#define SKUA_MODULE(...) SKUA_MODULE_ASSIGN_(__VA_ARGS__, , , , , , , , , , , , )
#else
#define SKUA_MODULE(...)                                                                           \
    extern SKUA_API const skua_module skua_module_descriptor;                                      \
    const skua_module skua_module_descriptor = {.version = SKUA_MODULE_VERSION, __VA_ARGS__}
#endif

/* C++ has designators since C++20 only: here `.name = "x"` becomes an assignment, up to twelve of
 * them. All of it is constant, so no code runs when the module is loaded. */
#define SKUA_MODULE_ASSIGN_(a, b, c, d, e, f, g, h, i, j, k, l, ...)                               \
    SKUA_BEGIN_DECLS                                                                               \
    extern SKUA_API const skua_module skua_module_descriptor;                                      \
    SKUA_END_DECLS                                                                                 \
    const skua_module skua_module_descriptor = [] {                                                \
        skua_module skua_made_ = skua_module();                                                    \
        skua_made_.version = SKUA_MODULE_VERSION;                                                  \
        (void)(skua_made_ a), (void)(skua_made_ b), (void)(skua_made_ c);                          \
        (void)(skua_made_ d), (void)(skua_made_ e), (void)(skua_made_ f);                          \
        (void)(skua_made_ g), (void)(skua_made_ h), (void)(skua_made_ i);                          \
        (void)(skua_made_ j), (void)(skua_made_ k), (void)(skua_made_ l);                          \
        return skua_made_;                                                                         \
    }()

#endif
