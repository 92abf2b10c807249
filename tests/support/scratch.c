/* SPDX-License-Identifier: MIT */
#include "scratch.h"

#include <dirent.h>
#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test.h"

static char folder[] = "/tmp/skua-test-XXXXXX";

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *place)
{
    (void)status;
    (void)type;
    (void)place;
    return remove(path);
}

static void scratch_close(void)
{
    assert_int_equal(nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS), 0);
}

void scratch_open(void)
{
    memset(folder + sizeof folder - sizeof "XXXXXX", 'X', strlen("XXXXXX"));
    assert_non_null(mkdtemp(folder));
    assert_int_equal(setenv("XDG_RUNTIME_DIR", folder, 1), 0);
    test_at_end(scratch_close);
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

mode_t scratch_mode(const char *path)
{
    struct stat status;
    assert_int_equal(lstat(path, &status), 0);
    return status.st_mode;
}
