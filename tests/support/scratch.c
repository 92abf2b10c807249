/* SPDX-License-Identifier: MIT */
#include "scratch.h"

#include <dirent.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[] = "/tmp/skua-test-XXXXXX";

int scratch_setup(void **state)
{
    (void)state;
    memset(folder + sizeof folder - sizeof "XXXXXX", 'X', strlen("XXXXXX"));
    return mkdtemp(folder) == NULL || setenv("XDG_RUNTIME_DIR", folder, 1) != 0 ? -1 : 0;
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *place)
{
    (void)status;
    (void)type;
    (void)place;
    return remove(path);
}

int scratch_teardown(void **state)
{
    (void)state;
    return nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

const char *scratch_folder(void)
{
    return folder;
}

void scratch_path(char *path, const char *name)
{
    const int length = snprintf(path, SCRATCH_PATH_SIZE, "%s/%s", folder, name);
    assert_in_range(length, 1, SCRATCH_PATH_SIZE - 1);
}

void scratch_write(const char *name, const char *content)
{
    char path[SCRATCH_PATH_SIZE];
    scratch_path(path, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(content, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

size_t scratch_count(const char *path)
{
    size_t count = 0;
    DIR *entries = opendir(path);
    if (entries == NULL) {
        return 0;
    }
    while (readdir(entries) != NULL) {
        count++;
    }
    (void)closedir(entries);
    return count - 2; /* but for . and .. */
}
