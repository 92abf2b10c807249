/* SPDX-License-Identifier: MIT */
/* How many CPUs may be used, by quota and by affinity mask. The files of a control group hierarchy
 * are made in a folder of the test's own. */
#include "base/cpu.h"

#include <sched.h>
#include <stdio.h>
#include <sys/stat.h>

#include "scratch.h"
#include "test.h"

#define NO_LIMIT UINT32_MAX

TEST(quota_parse_rounds_up_and_takes_nonsense_for_no_limit)
{
    static const struct {
        const char *text;
        uint32_t cpus;
    } rows[] = {
        {"max 100000", NO_LIMIT},
        {"max 100000\n", NO_LIMIT},
        {"150000 100000", 2}, /* part of a CPU is rounded up */
        {"100001 100000", 2},
        {"1 100000", 1},
        {"100000 100000", 1}, /* whole CPUs are exact */
        {"400000 100000\n", 4},
        {"6400000 50000", 128},
        {"0 100000", 1}, /* never zero */
        {"", NO_LIMIT},
        {"100000", NO_LIMIT},
        {"100000 0", NO_LIMIT},
        {"many few", NO_LIMIT},
        {"4294967294 1", UINT32_C(4294967294)}, /* large numbers do not wrap */
        {"4294967296 1", NO_LIMIT},
        {"4294967297 1", NO_LIMIT},
        {"18446744073709551615 1", NO_LIMIT},
        {"18446744073709551615 18446744073709551615", 1},
    };
    FOR_ROWS (row, rows) {
        assert_int_equal(cpu_quota_parse(row->text), row->cpus);
    }
}

/* ---- cpu_quota_read ---- */

#define CGROUP_FILE "self_cgroup"

static void add_group(const char *group)
{
    char path[SCRATCH_PATH_SIZE];
    scratch_path(path, group);
    assert_int_equal(mkdir(path, 0700), 0);
}

/* "" is the root group. */
static void set_quota(const char *group, const char *content)
{
    char name[SCRATCH_PATH_SIZE];
    (void)snprintf(name, sizeof name, "%s/cpu.max", group);
    scratch_write(name, content);
}

static uint32_t read_quota(void)
{
    char path[SCRATCH_PATH_SIZE];
    scratch_path(path, CGROUP_FILE);
    return cpu_quota_read(path, scratch_folder());
}

TEST(quota_read_finds_the_version_2_line_and_no_other)
{
    static const struct {
        const char *cgroup_file; /* null: there is none */
        uint32_t cpus;
    } rows[] = {
        {NULL, NO_LIMIT},
        {"3:cpu,cpuacct:/\n10::/\n1:name=systemd:/\n", NO_LIMIT},
        {"10::/other\n3:cpu,cpuacct:/other\n0::/app\n1:name=systemd:/\n", 3},
        {"0::/\n", 5},
    };
    FOR_ROWS (row, rows) {
        scratch_open();
        add_group("app");
        set_quota("", "500000 100000\n");
        set_quota("app", "300000 100000\n");
        if (row->cgroup_file != NULL) {
            scratch_write(CGROUP_FILE, row->cgroup_file);
        }
        assert_int_equal(read_quota(), row->cpus);
    }
}

TEST(quota_read_without_quota_files_is_no_limit)
{
    scratch_open();
    scratch_write(CGROUP_FILE, "0::/\n");
    assert_int_equal(read_quota(), NO_LIMIT);
    scratch_write(CGROUP_FILE, "0::/gone/away\n");
    assert_int_equal(read_quota(), NO_LIMIT);
}

static void open_nested_groups(void)
{
    scratch_open();
    add_group("a");
    add_group("a/b");
    add_group("a/b/c");
    scratch_write(CGROUP_FILE, "0::/a/b/c\n");
}

TEST(quota_read_takes_the_tightest_of_nested_groups)
{
    static const struct {
        const char *group;
        const char *quota;
        uint32_t cpus;
    } changes[] = {
        {"a/b/c", "900000 100000\n", 9}, {"a", "700000 100000\n", 7},
        {"a/b", "800000 100000\n", 7},   {"", "600000 100000\n", 6},
        {"a/b/c", "150000 100000\n", 2},
    };
    open_nested_groups();
    for (size_t i = 0; i < COUNT_OF(changes); i++) {
        set_quota(changes[i].group, changes[i].quota);
        assert_int_equal(read_quota(), changes[i].cpus);
    }
}

TEST(quota_read_missing_or_unlimited_levels_do_not_hide_others)
{
    open_nested_groups();
    set_quota("a/b/c", "max 100000\n");
    set_quota("a", "400000 100000\n");
    assert_int_equal(read_quota(), 4);
}

TEST(quota_read_ignores_groups_beside_the_path)
{
    open_nested_groups();
    set_quota("a/b/c", "100000 100000\n");
    set_quota("a/b", "800000 100000\n");
    scratch_write(CGROUP_FILE, "0::/a/b\n");
    assert_int_equal(read_quota(), 8);
    add_group("a/d");
    set_quota("a/d", "100000 100000\n");
    assert_int_equal(read_quota(), 8);
}

/* ---- cpu_usable_count ---- */

TEST(usable_count_is_that_of_the_affinity_mask_or_of_the_quota)
{
    const uint32_t quota = cpu_quota_read("/proc/self/cgroup", "/sys/fs/cgroup");
    cpu_set_t all;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    const uint32_t cpus = (uint32_t)CPU_COUNT(&all);
    assert_int_equal(cpu_usable_count(), quota < cpus ? quota : cpus);
}

TEST(usable_count_of_a_narrowed_mask_is_one)
{
    cpu_set_t all;
    cpu_set_t one;
    size_t first = 0;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    while (!CPU_ISSET(first, &all)) {
        first++;
    }
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    const uint32_t narrowed = cpu_usable_count();
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
    assert_int_equal(narrowed, 1);
}
