/* SPDX-License-Identifier: MIT */
/* Says which process a crash happened in. The handlers of SIGSEGV, SIGABRT, SIGFPE and SIGBUS
 * print, if the crash is on a worker whose runtime wants that, a line such as
 *
 *   skua: SIGSEGV in process 0010000004000003 (type counter), step 17, worker 2
 *
 * and a backtrace to stderr; also, if a task has used up its stack, a line that says so. Then they
 * do what would have happened without them: they call the handler that the program had, or end the
 * program by the signal.
 *
 * Workers run them on a stack of their own, because the one that has overflowed has no room left.
 * A thread that drives a simulation belongs to the program, and so does its stack. */
#ifndef SKUA_WATCH_CRASH_REPORT_H
#define SKUA_WATCH_CRASH_REPORT_H

#include "sched/scheduler.h"

/* Installs the handlers, and restores the program's when the last runtime that wants reports has
 * removed them. A handler that the program has replaced meanwhile stays replaced. */
void crash_report_install(void);
void crash_report_remove(void);

/* Gives the calling thread a stack for the handlers, and takes it back before the thread ends. If
 * there is no memory for it, the thread goes without, and a stack overflow is not reported. */
void crash_report_begin_thread(void);
void crash_report_end_thread(void);

#endif
