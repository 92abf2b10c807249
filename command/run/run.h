/* SPDX-License-Identifier: MIT */
/* The parts of `skua run`: its options (run.c), the module (module.c) and its file (elf.c),
 * the runtime and what interrupts it (session.c), what is printed at the end (report.c). */
#ifndef COMMAND_RUN_RUN_H
#define COMMAND_RUN_RUN_H

#include <skua/module.h>
#include <skua/skua.h>

#define RUN "run" /* whose complaints these are */

struct run_options {
    const char *file;
    const char *method; /* null: the first one */
    uint32_t workers;
    uint64_t seed;
    uint64_t timeout_ns;
    bool sim;
    bool stats;
    bool list;
    char **arguments;
    size_t argument_count;
};

/* Loads a module and checks its descriptor. Returns 0, or the status after a complaint. The module
 * is never unloaded: threads that it has started may run its code until the program ends. */
int module_load(const char *file, const skua_module **module);

/* What is wrong with the file of a module, `file_size` bytes long; null if the loader may have it.
 */
const char *elf_fault(int fd, uint64_t file_size);

/* Whether a type has a method; null stands for the first one. */
bool module_has_method(const skua_process_type *type, const char *method);

/* Writes the methods of a type, separated by commas. */
void module_format_methods(const skua_process_type *type, char *text, size_t size);

/* Prints what a module consists of. */
void module_list(const skua_module *module);

/* Registers what a module brings. Returns 0, or the status after a complaint. */
int module_register(const skua_module *module, skua_runtime *runtime);

/* Keeps Ctrl-C and SIGTERM for session_run. To be called while there are no other threads: those
 * that come later, a module's too, inherit it. */
void session_hold_signals(void);

/* Runs the module's root until it has ended or is interrupted. Returns the exit status. */
int session_run(const skua_module *module, const struct run_options *options);

/* Prints the result of the root to stdout. */
void report_result(const skua_payload *result);

/* Says why the root has failed. Returns the exit status that this error stands for. */
int report_error(const skua_module *module, int error);

/* Prints the counters of a runtime to stderr. */
void report_stats(skua_runtime *runtime);

/* Says what has happened, and names the processes that are alive, on stderr. */
void report_survivors(skua_runtime *runtime, const char *what);

#endif
