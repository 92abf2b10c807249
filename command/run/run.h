/* SPDX-License-Identifier: MIT */
/* The parts of `skua run`: its options (run.c, sim_options.c), the module (module.c) and its file
 * (elf.c), the runtime and what interrupts it (session.c), the root (root.c), a run for each of
 * many seeds (seeds.c), newer modules (replace.c), the trace of a simulation (sim_trace.c), what is
 * printed at the end (report.c). */
#ifndef COMMAND_RUN_RUN_H
#define COMMAND_RUN_RUN_H

#include <skua/module.h>
#include <skua/skua.h>
#include <stdio.h>

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
    char **command_line; /* what follows `run`, with a null at its end */
    char **arguments;
    size_t argument_count;

    /* Of simulations. */
    bool has_faults;
    skua_sim_faults faults;
    const char *trace;   /* a file; null: none */
    uint64_t first_seed; /* for a run each; 0: one run, with `seed` */
    uint64_t last_seed;
};

/* What simulated runs add up to. */
struct run_totals {
    uint64_t virtual_ns;
    uint64_t steps;
    uint64_t hash; /* of the last run */
};

/* Read the value of --faults and --seeds, as option_text does. False after a complaint. */
bool sim_option_faults(char **argv, int *i, struct run_options *options);
bool sim_option_seeds(char **argv, int *i, struct run_options *options);

/* Whether the options of simulations fit the others. Returns 0, or the status after a complaint. */
int sim_options_check(const struct run_options *options);

/* Loads a module and checks its descriptor. Returns 0, or the status after a complaint. The module
 * is never unloaded: threads that it has started may run its code until the program ends. */
int module_load(const char *file, const skua_module **module);

/* The same for a module that comes into a running program, also if it was loaded before from a file
 * of this name. Says what is wrong in `fault`. */
struct module_fault {
    char text[4096]; /* in which the name of a file has its place */
};
struct module_copy {
    const skua_module *module;
    void *library;
    int file;
};
int module_load_again(const char *file, struct module_copy *copy, struct module_fault *fault);

/* Takes back module_load_again, before anything of the module is in use. */
void module_unload(const struct module_copy *copy);

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

/* Runs the module's root until it has ended or is interrupted. Returns the exit status. Adds a
 * simulation to `totals`, unless that is null. */
int session_run(const skua_module *module, const struct run_options *options,
                struct run_totals *totals);

/* Whether a signal has come that no session has seen: 0, or the exit status that it stands for. */
int session_take_interrupt(void);

/* Runs the module once for each seed, up to the first that fails. Returns the exit status. */
int seeds_run(const skua_module *module, const struct run_options *options);

/* Makes room for another line, where the progress of seeds is shown. */
void seeds_erase_progress(void);

/* Says that the run with this seed has failed, and how to repeat it. */
void seeds_tell_failure(const struct run_options *options, const char *reason);

/* A file for a trace, `-` being stdout. Both return 0, or the status after a complaint. */
int sim_trace_open(const char *name, FILE **out);
int sim_trace_close(const char *name, FILE *out);

/* The on_record of a simulation; `out` is a FILE. */
void sim_trace_write(void *out, const skua_sim_record *record);

/* Prints the result of the root to stdout. */
void report_result(const skua_payload *result);

/* Writes why the root has failed. Returns the exit status that this error stands for. */
int report_format_error(int error, char *text, size_t size);

/* Prints the counters of a runtime to stderr. */
void report_stats(skua_runtime *runtime);

/* Says what has happened, and names the processes that are alive, on stderr. */
void report_survivors(skua_runtime *runtime, const char *what);

#endif
