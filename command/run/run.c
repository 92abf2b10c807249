/* SPDX-License-Identifier: MIT */
/* The command `skua run`: loads a module and runs its root process. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "command/commands.h"
#include "command/run/run.h"
#include "command/support.h"

static const char help[] =
    "usage: skua run FILE [--method NAME] [--workers N] [--seed N] [--timeout D] [--stats]\n"
    "                [--list] [--sim [--seeds N..M] [--faults LIST] [--trace FILE]]\n"
    "                [-- ARGUMENT...]\n"
    "\n"
    "Runs a module until its root process ends. A module is a shared object with a descriptor\n"
    "(skua/module.h); `skua new` creates one. It can be inspected while it runs.\n"
    "\n"
    "  --method NAME  entry point of the root (default: its first method)\n"
    "  --workers N    worker threads (default: the CPUs this program may use)\n"
    "  --seed N       seed of the random numbers (default 1); with --sim it decides every choice\n"
    "  --sim          run in the simulator: one thread, virtual time, repeatable by seed\n"
    "  --timeout D    after 500us, 100ms, 5s, 2m or 1h, ask all processes to finish; 5s later,\n"
    "                 name and end the rest. Virtual time with --sim\n"
    "  --stats        print the scheduler's counters to stderr at the end\n"
    "  --list         list what the module contains, and run nothing\n"
    "  ARGUMENT...    passed to the root process\n"
    "\n"
    "With --sim:\n"
    "  --seeds N..M   a run for each of these seeds, or for one, N; up to the first that fails\n"
    "  --faults LIST  what goes wrong how often: message-delay, handler-error, slow-completion,\n"
    "                 no-memory, spurious-wake and process-kill, which spares the root; of\n"
    "                 sockets: connect-refused, connect-delay, accept-delay, no-descriptors,\n"
    "                 short-read, short-write, reset, silent-drop, eof-late, clog, partition; "
    "each\n"
    "                 as NAME=1%, 0.1% or 500 (in a million); delay-max=10ms; all: some of each\n"
    "  --trace FILE   writes every step, event and fault as a line of text; -: to stdout. With\n"
    "                 --seeds, FILE has the last seed that was run\n"
    "\n"
    "Ctrl-C asks all processes to finish and waits for them; a second Ctrl-C quits at once and\n"
    "names the processes left. `skua top` shows the program unless SKUA_INSPECT=0 is set.\n"
    "\n"
    "Prints the result of the root: UTF-8 text as it is, without trailing zeros; 8 bytes inside\n"
    "the payload as a number, unless they are text of 7 or 8 bytes; other bytes in hexadecimal;\n"
    "pointers not at all.\n"
    "\n"
    "With --seeds it prints a summary in place of results; if a seed fails, the command that\n"
    "repeats it. Static variables of the module keep their values from seed to seed.\n"
    "\n"
    "Exit status: 0 if the root is done; 1 if it failed, after --timeout, or if the module cannot\n"
    "run; N if it failed with SKUA_E_USER - N, N from 3 to 125; 2 for wrong usage; 130 after\n"
    "Ctrl-C, 143 after SIGTERM.\n"
    "\n"
    "Examples:\n"
    "  skua run hello.so\n"
    "  skua run hello.so --workers 4 --stats -- Alice Bob\n"
    "  skua run hello.so --sim --seed 7 --timeout 1h\n"
    "  skua run hello.so --sim --seeds 1..1000 --faults all,process-kill=0 --timeout 1h\n";

/* Reads the option argv[*i]. Returns 0, or the status after a complaint. */
static int read_option(struct run_options *options, char **argv, int *i)
{
    const char *option = argv[*i];
    uint64_t workers = 0;
    bool good = true;
    if (strcmp(option, "--sim") == 0) {
        options->sim = true;
    } else if (strcmp(option, "--stats") == 0) {
        options->stats = true;
    } else if (strcmp(option, "--list") == 0) {
        options->list = true;
    } else if (is_valued(option, "--method")) {
        good = option_text(RUN, argv, i, &options->method);
    } else if (is_valued(option, "--workers")) {
        good = option_number(RUN, argv, i, 1, SKUA_WORKERS_MAX, &workers);
        options->workers = (uint32_t)workers;
    } else if (is_valued(option, "--seed")) {
        good = option_number(RUN, argv, i, 1, UINT64_MAX, &options->seed);
    } else if (is_valued(option, "--timeout")) {
        good = option_duration(RUN, argv, i, &options->timeout_ns);
    } else if (is_valued(option, "--faults")) {
        good = sim_option_faults(argv, i, options);
    } else if (is_valued(option, "--seeds")) {
        good = sim_option_seeds(argv, i, options);
    } else if (is_valued(option, "--trace")) {
        good = option_text(RUN, argv, i, &options->trace);
    } else {
        return usage_error(RUN, "unknown option '%s'; see --help", option);
    }
    return good ? 0 : STATUS_USAGE;
}

static int read_file_name(struct run_options *options, const char *name)
{
    if (options->file != NULL) {
        return usage_error(RUN, "unexpected file '%s'; arguments for the module come after --",
                           name);
    }
    options->file = name;
    return 0;
}

static int read_arguments(struct run_options *options, int argc, char **argv)
{
    int status = 0;
    int i = 1;
    for (; i < argc && status == 0 && strcmp(argv[i], "--") != 0; i++) {
        status =
            argv[i][0] == '-' ? read_option(options, argv, &i) : read_file_name(options, argv[i]);
    }
    if (status != 0) {
        return status;
    }
    if (options->file == NULL) {
        return usage_error(RUN,
                           "missing module; usage: skua run FILE [OPTION...] [-- ARGUMENT...]");
    }
    if (options->sim && options->workers != 0) {
        return usage_error(RUN, "--workers does not go with --sim, which has one thread");
    }
    options->command_line = argv + 1;
    options->arguments = i < argc ? argv + i + 1 : argv + argc;
    options->argument_count = i < argc ? (size_t)(argc - i - 1) : 0;
    return sim_options_check(options);
}

static int check_method(const skua_module *module, const char *method)
{
    char methods[256];
    if (module_has_method(module->root, method)) {
        return 0;
    }
    module_format_methods(module->root, methods, sizeof methods);
    return usage_error(RUN, "%s has no method '%s'; it has: %s", module->name, method, methods);
}

/* Whether the user asks for help, and not the module's user. */
static bool wants_help(int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            return true;
        }
    }
    return false;
}

/* A result that nobody can read is none. */
static int check_output(int status)
{
    const bool written = fflush(stdout) == 0 && ferror(stdout) == 0;
    return status == 0 && !written ? failure(RUN, "cannot write to standard output") : status;
}

int run_command(int argc, char **argv)
{
    struct run_options options = {.timeout_ns = SKUA_FOREVER};
    const skua_module *module = NULL;
    if (wants_help(argc, argv)) {
        fputs(help, stdout);
        return 0;
    }
    int status = read_arguments(&options, argc, argv);
    if (status != 0) {
        return status;
    }
    /* What a module prints is seen at once, also in a pipe. */
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    status = module_load(options.file, &module);
    if (status == 0) {
        /* What `skua top` shows: by the name of the command all modules would be the same. */
        program_invocation_short_name = (char *)module->name;
        session_hold_signals(); /* not before: loading runs code of the module, which may hang */
        status = check_method(module, options.method);
    }
    if (status == 0 && options.list) {
        module_list(module);
    } else if (status == 0) {
        status = options.last_seed != 0 ? seeds_run(module, &options)
                                        : session_run(module, &options, NULL);
    }
    return check_output(status);
}
