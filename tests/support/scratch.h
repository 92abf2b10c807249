/* SPDX-License-Identifier: MIT */
/* A folder of the test's own in place of the user's runtime directory. */
#ifndef SKUA_TESTS_SCRATCH_H
#define SKUA_TESTS_SCRATCH_H

#include <stddef.h>
#include <sys/types.h>

#define SCRATCH_PATH_SIZE 400

/* Makes an empty folder and has XDG_RUNTIME_DIR name it; it is removed with all that is in it when
 * the test ends. */
void scratch_open(void);

/* The folder. */
const char *scratch_folder(void);

/* The path of something in it. */
void scratch_path(char *path, const char *name);

/* Writes a file there. */
void scratch_write(const char *name, const char *content);

/* How many entries a folder has; 0 if there is none. */
size_t scratch_count(const char *folder);

/* The type and the permissions of a file, which has to be there; links are not followed. */
mode_t scratch_mode(const char *path);

#endif
