/* SPDX-License-Identifier: MIT */
/* A module of 300 types, which says that it runs. Their version is the number in the file that
 * VERSION_FILE names, by the time that the module is loaded. */
#include <skua/skua.h>
#include <stdio.h>
#include <stdlib.h>

#define TYPES 300

static char names[TYPES][16];
static skua_process_type all[TYPES];
static const skua_process_type *types[TYPES + 1];

static int step_type(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self, (void)ctx, (void)events, (void)count;
    return 0;
}

static int migrate_type(uint32_t version, const void *old_state, void *new_state, skua_context *ctx)
{
    (void)version, (void)old_state, (void)new_state, (void)ctx;
    return 0;
}

static uint32_t read_version(void)
{
    unsigned version = 0;
    FILE *file = fopen(getenv("VERSION_FILE"), "re");
    if (file == NULL || fscanf(file, "%u", &version) != 1) {
        abort();
    }
    (void)fclose(file);
    return version;
}

__attribute__((constructor)) static void make_types(void)
{
    const uint32_t version = read_version();
    for (int i = 0; i < TYPES; i++) {
        (void)snprintf(names[i], sizeof names[i], "type%d", i);
        all[i] = (skua_process_type){
            .name = names[i], .step = step_type, .migrate = migrate_type, .version = version};
        types[i] = &all[i];
    }
}

static int root_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self, (void)ctx, (void)count;
    if (events[0].type == SKUA_EVENT_START) {
        printf("runs\n");
        (void)fflush(stdout);
    }
    return 0;
}

static const skua_process_type root = {.name = "root", .step = root_step};

SKUA_MODULE(.name = "many_types", .root = &root, .types = types);
