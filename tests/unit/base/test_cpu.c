/* SPDX-License-Identifier: MIT */
/* How many CPUs may be used, by quota and by affinity mask. The files of a control group hierarchy
 * are made in a temporary directory. */
#include "base/cpu.h"

#include <ftw.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define NO_LIMIT UINT32_MAX

/* ---- cpu_quota_parse ---- */

static void quota_parse_without_limit_is_no_limit(void **state)
{
    (void)state;
    assert_int_equal(cpu_quota_parse("max 100000"), NO_LIMIT);
    assert_int_equal(cpu_quota_parse("max 100000\n"), NO_LIMIT);
}

static void quota_parse_part_of_a_cpu_is_rounded_up(void **state)
{
    (void)state;
    assert_int_equal(cpu_quota_parse("150000 100000"), 2);
    assert_int_equal(cpu_quota_parse("100001 100000"), 2);
    assert_int_equal(cpu_quota_parse("1 100000"), 1);
}

static void quota_parse_whole_cpus_are_exact(void **state)
{
    (void)state;
    assert_int_equal(cpu_quota_parse("100000 100000"), 1);
    assert_int_equal(cpu_quota_parse("400000 100000\n"), 4);
    assert_int_equal(cpu_quota_parse("6400000 50000"), 128);
}

static void quota_parse_is_never_zero(void **state)
{
    (void)state;
    assert_int_equal(cpu_quota_parse("0 100000"), 1);
}

static void quota_parse_nonsense_is_no_limit(void **state)
{
    (void)state;
    assert_int_equal(cpu_quota_parse(""), NO_LIMIT);
    assert_int_equal(cpu_quota_parse("100000"), NO_LIMIT);
    assert_int_equal(cpu_quota_parse("100000 0"), NO_LIMIT);
    assert_int_equal(cpu_quota_parse("many few"), NO_LIMIT);
}

static void quota_parse_large_numbers_do_not_wrap(void **state)
{
    (void)state;
    assert_int_equal(cpu_quota_parse("4294967294 1"), UINT32_C(4294967294));
    assert_int_equal(cpu_quota_parse("4294967296 1"), NO_LIMIT);
    assert_int_equal(cpu_quota_parse("4294967297 1"), NO_LIMIT);
    assert_int_equal(cpu_quota_parse("18446744073709551615 1"), NO_LIMIT);
    assert_int_equal(cpu_quota_parse("18446744073709551615 18446744073709551615"), 1);
}

/* ---- cpu_quota_read ---- */

struct hierarchy {
    char root[64];
    char cgroup_file[128];
};

static int set_up(void **state)
{
    struct hierarchy *tree = calloc(1, sizeof *tree);
    *state = tree;
    if (tree == NULL) {
        return -1;
    }
    (void)snprintf(tree->root, sizeof tree->root, "/tmp/skua_test_cpu_XXXXXX");
    if (mkdtemp(tree->root) == NULL) {
        return -1;
    }
    (void)snprintf(tree->cgroup_file, sizeof tree->cgroup_file, "%s/self_cgroup", tree->root);
    return 0;
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    (void)status;
    (void)type;
    (void)walk;
    return remove(path);
}

static int tear_down(void **state)
{
    struct hierarchy *tree = *state;
    const int result = nftw(tree->root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    free(tree);
    return result;
}

static void write_file(const char *path, const char *content)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(content, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void add_group(const struct hierarchy *tree, const char *group)
{
    char path[256];
    (void)snprintf(path, sizeof path, "%s%s", tree->root, group);
    assert_int_equal(mkdir(path, 0700), 0);
}

static void set_quota(const struct hierarchy *tree, const char *group, const char *content)
{
    char path[256];
    (void)snprintf(path, sizeof path, "%s%s/cpu.max", tree->root, group);
    write_file(path, content);
}

static uint32_t read_quota(const struct hierarchy *tree)
{
    return cpu_quota_read(tree->cgroup_file, tree->root);
}

static void quota_read_without_cgroup_file_is_no_limit(void **state)
{
    const struct hierarchy *tree = *state;
    set_quota(tree, "", "100000 100000\n");
    assert_int_equal(read_quota(tree), NO_LIMIT);
}

static void quota_read_with_version_1_only_is_no_limit(void **state)
{
    const struct hierarchy *tree = *state;
    set_quota(tree, "", "100000 100000\n");
    write_file(tree->cgroup_file, "3:cpu,cpuacct:/\n10::/\n1:name=systemd:/\n");
    assert_int_equal(read_quota(tree), NO_LIMIT);
}

static void quota_read_finds_the_version_2_line_among_others(void **state)
{
    const struct hierarchy *tree = *state;
    add_group(tree, "/app");
    set_quota(tree, "/app", "300000 100000\n");
    write_file(tree->cgroup_file, "10::/other\n3:cpu,cpuacct:/other\n0::/app\n1:name=systemd:/\n");
    assert_int_equal(read_quota(tree), 3);
}

static void quota_read_root_group_reads_the_mount(void **state)
{
    const struct hierarchy *tree = *state;
    write_file(tree->cgroup_file, "0::/\n");
    assert_int_equal(read_quota(tree), NO_LIMIT);
    set_quota(tree, "", "500000 100000\n");
    assert_int_equal(read_quota(tree), 5);
}

static void quota_read_without_quota_files_is_no_limit(void **state)
{
    const struct hierarchy *tree = *state;
    write_file(tree->cgroup_file, "0::/gone/away\n");
    assert_int_equal(read_quota(tree), NO_LIMIT);
}

static void add_nested_groups(const struct hierarchy *tree)
{
    add_group(tree, "/a");
    add_group(tree, "/a/b");
    add_group(tree, "/a/b/c");
    write_file(tree->cgroup_file, "0::/a/b/c\n");
}

static void quota_read_takes_the_tightest_of_nested_groups(void **state)
{
    const struct hierarchy *tree = *state;
    add_nested_groups(tree);
    set_quota(tree, "/a/b/c", "900000 100000\n");
    assert_int_equal(read_quota(tree), 9);
    set_quota(tree, "/a", "700000 100000\n");
    assert_int_equal(read_quota(tree), 7);
    set_quota(tree, "/a/b", "800000 100000\n");
    assert_int_equal(read_quota(tree), 7);
    set_quota(tree, "", "600000 100000\n");
    assert_int_equal(read_quota(tree), 6);
    set_quota(tree, "/a/b/c", "150000 100000\n");
    assert_int_equal(read_quota(tree), 2);
}

static void quota_read_missing_or_unlimited_levels_do_not_hide_others(void **state)
{
    const struct hierarchy *tree = *state;
    add_nested_groups(tree);
    set_quota(tree, "/a/b/c", "max 100000\n");
    set_quota(tree, "/a", "400000 100000\n");
    assert_int_equal(read_quota(tree), 4);
}

static void quota_read_ignores_groups_beside_the_path(void **state)
{
    const struct hierarchy *tree = *state;
    add_group(tree, "/a");
    add_group(tree, "/a/b");
    add_group(tree, "/a/c");
    set_quota(tree, "/a/c", "100000 100000\n");
    set_quota(tree, "/a/b", "800000 100000\n");
    write_file(tree->cgroup_file, "0::/a/b\n");
    assert_int_equal(read_quota(tree), 8);
}

/* ---- cpu_usable_count ---- */

/* The quota of this program itself, which the tests cannot choose. */
static uint32_t below_own_quota(uint32_t cpus)
{
    const uint32_t quota = cpu_quota_read("/proc/self/cgroup", "/sys/fs/cgroup");
    return quota < cpus ? quota : cpus;
}

static void usable_count_is_that_of_the_affinity_mask(void **state)
{
    (void)state;
    cpu_set_t all;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    assert_int_equal(cpu_usable_count(), below_own_quota((uint32_t)CPU_COUNT(&all)));
}

static size_t first_cpu(const cpu_set_t *set)
{
    size_t cpu = 0;
    while (!CPU_ISSET(cpu, set)) {
        cpu++;
    }
    return cpu;
}

static void usable_count_of_a_narrowed_mask_is_one(void **state)
{
    (void)state;
    cpu_set_t all;
    cpu_set_t one;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&one);
    CPU_SET(first_cpu(&all), &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    const uint32_t narrowed = cpu_usable_count();
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
    assert_int_equal(narrowed, 1);
}

#define READ_TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quota_parse_without_limit_is_no_limit),
        cmocka_unit_test(quota_parse_part_of_a_cpu_is_rounded_up),
        cmocka_unit_test(quota_parse_whole_cpus_are_exact),
        cmocka_unit_test(quota_parse_is_never_zero),
        cmocka_unit_test(quota_parse_nonsense_is_no_limit),
        cmocka_unit_test(quota_parse_large_numbers_do_not_wrap),
        READ_TEST(quota_read_without_cgroup_file_is_no_limit),
        READ_TEST(quota_read_with_version_1_only_is_no_limit),
        READ_TEST(quota_read_finds_the_version_2_line_among_others),
        READ_TEST(quota_read_root_group_reads_the_mount),
        READ_TEST(quota_read_without_quota_files_is_no_limit),
        READ_TEST(quota_read_takes_the_tightest_of_nested_groups),
        READ_TEST(quota_read_missing_or_unlimited_levels_do_not_hide_others),
        READ_TEST(quota_read_ignores_groups_beside_the_path),
        cmocka_unit_test(usable_count_is_that_of_the_affinity_mask),
        cmocka_unit_test(usable_count_of_a_narrowed_mask_is_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
