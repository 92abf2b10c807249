/* SPDX-License-Identifier: MIT */
#include "task/stack_memory.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Newer than the headers of many systems. */
#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif

#ifndef ARCH_SHSTK_STATUS
#define ARCH_SHSTK_STATUS 0x5005
#endif
#define ARCH_SHSTK_IS_ON 1

#define MAPPINGS_DEFAULT 65530

/* Looked at in one call. */
#define RESIDENT_PAGES 256

/* Without huge pages: the first byte of a stack would cost 2 MiB. */
static void *reserve(size_t size)
{
    void *start = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED) {
        return NULL;
    }
    (void)madvise(start, size, MADV_NOHUGEPAGE); /* refused where there are none */
    return start;
}

static void unreserve(void *start, size_t size)
{
    (void)munmap(start, size);
}

static bool commit(void *start, size_t size)
{
    return mprotect(start, size, PROT_READ | PROT_WRITE) == 0;
}

static bool guard(void *start, size_t size)
{
    return madvise(start, size, MADV_GUARD_INSTALL) == 0;
}

static bool protect(void *start, size_t size)
{
    return mprotect(start, size, PROT_NONE) == 0;
}

/* How much memory there is, but for what is swapped out. */
static size_t resident(char *start, size_t size)
{
    unsigned char pages[RESIDENT_PAGES];
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t bytes = 0;
    for (size_t done = 0; done < size; done += sizeof pages * page) {
        const size_t left = size - done;
        const size_t part = left < sizeof pages * page ? left : sizeof pages * page;
        if (mincore(start + done, part, pages) != 0) {
            return size;
        }
        for (size_t i = 0; i < part / page; i++) {
            bytes += (pages[i] & 1) * page;
        }
    }
    return bytes;
}

static size_t discard(void *start, size_t size)
{
    const size_t bytes = resident(start, size);
    return madvise(start, size, MADV_DONTNEED) == 0 ? bytes : 0;
}

static uint32_t mappings_max(void)
{
    char text[16] = {0};
    const int fd = open("/proc/sys/vm/max_map_count", O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return MAPPINGS_DEFAULT;
    }
    const ssize_t length = read(fd, text, sizeof text - 1);
    (void)close(fd);
    const unsigned long count = length > 0 ? strtoul(text, NULL, 10) : MAPPINGS_DEFAULT;
    return count < UINT32_MAX ? (uint32_t)count : UINT32_MAX;
}

#ifdef __x86_64__
static bool has_shadow_stack(void)
{
    unsigned long features = 0;
    return syscall(SYS_arch_prctl, ARCH_SHSTK_STATUS, &features) == 0 &&
           (features & ARCH_SHSTK_IS_ON) != 0;
}
#else
static bool has_shadow_stack(void)
{
    return false;
}
#endif

const struct stack_memory stack_memory_of_system = {
    .reserve = reserve,
    .unreserve = unreserve,
    .commit = commit,
    .guard = guard,
    .protect = protect,
    .discard = discard,
    .mappings_max = mappings_max,
    .has_shadow_stack = has_shadow_stack,
};
