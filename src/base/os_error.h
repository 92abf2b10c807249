/* SPDX-License-Identifier: MIT */
/* The errno behind an error that says that the system refused something: skua_error_os. */
#ifndef SKUA_BASE_OS_ERROR_H
#define SKUA_BASE_OS_ERROR_H

/* Keeps the errno of a failed system call for this thread; returns `error`. */
int os_error_keep(int system_error, int error);

#endif
