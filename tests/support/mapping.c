/* SPDX-License-Identifier: MIT */
#include "mapping.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

void mapping_flags(const void *address, char *flags, size_t size)
{
    char line[512];
    bool is_inside = false;
    flags[0] = '\0';
    FILE *file = fopen("/proc/self/smaps", "r");
    while (file != NULL && flags[0] == '\0' && fgets(line, sizeof line, file) != NULL) {
        uintptr_t begin;
        uintptr_t end;
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " ", &begin, &end) == 2) {
            is_inside = (uintptr_t)address - begin < end - begin;
        } else if (is_inside && strncmp(line, "VmFlags:", 8) == 0) {
            (void)snprintf(flags, size, "%s", line + 8);
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
}
