/* SPDX-License-Identifier: MIT */
/* Files hashed on a blocking pool: reading a file sleeps in the kernel, so it is done on threads
 * that are there to sleep, while the process is free to do something else.
 *
 *   05_hash_file [FILE...]      default: this program itself */
#include <errno.h>
#include <inttypes.h>
#include <skua/skua.h>
#include <stdio.h>
#include <string.h>

/* FNV-1a, 64 bits: quick to write down, good enough to compare files by. */
#define FNV_BASIS UINT64_C(0xcbf29ce484222325)
#define FNV_PRIME UINT64_C(0x100000001b3)

/* Runs on a thread of the pool. The input is the name of the file; the result its hash. */
static int hash_file(skua_payload *input, skua_payload *result)
{
    FILE *file = fopen(input->as.owned.data, "rbe");
    if (file == NULL) {
        return SKUA_E_USER - errno;
    }
    unsigned char block[65536];
    uint64_t hash = FNV_BASIS;
    for (size_t size; (size = fread(block, 1, sizeof block, file)) > 0;) {
        for (size_t i = 0; i < size; i++) {
            hash = (hash ^ block[i]) * FNV_PRIME;
        }
    }
    const int error = ferror(file) ? SKUA_E_USER - EIO : 0;
    fclose(file);
    *result = skua_payload_u64(0, hash);
    return error;
}

struct hasher {
    bool asked;
    char **names;
    uint64_t count;
    uint64_t left;
    uint64_t failed;
};

/* The input is the array of names, which ends with a null. */
static int hasher_init(void *self, skua_context *ctx, const char *method, skua_payload *input,
                       size_t input_count)
{
    struct hasher *hasher = self;
    (void)ctx;
    (void)method;
    if (input_count != 1) {
        return SKUA_E_INVALID;
    }
    hasher->names = input[0].as.owned.data;
    while (hasher->names[hasher->count] != NULL) {
        hasher->count++;
    }
    hasher->left = hasher->count;
    return 0;
}

/* Asks for all files at once; the tag says which one. The names outlive the process, so the
 * payloads need not own them. */
static int ask(struct hasher *hasher, skua_step *out)
{
    int error = 0;
    hasher->asked = true;
    for (uint64_t i = 0; i < hasher->count && error == 0; i++) {
        error = skua_step_blocking(out, i, "files", hash_file,
                                   skua_payload_pointer(0, hasher->names[i], NULL));
    }
    return error;
}

static void show(struct hasher *hasher, const skua_event *event)
{
    const char *name = hasher->names[event->tag];
    hasher->left--;
    if (event->error == 0) {
        printf("%016" PRIx64 "  %s\n", skua_payload_to_u64(&event->payload), name);
        return;
    }
    hasher->failed++;
    fprintf(stderr, "05_hash_file: %s: %s\n", name,
            event->error <= SKUA_E_USER ? strerror(SKUA_E_USER - event->error)
                                        : skua_error_text(event->error));
}

static int hasher_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                       skua_step *out)
{
    struct hasher *hasher = self;
    (void)ctx;
    for (size_t i = 0; i < count; i++) {
        if (events[i].type == SKUA_EVENT_COMPLETION) {
            show(hasher, &events[i]);
        } else if (events[i].type == SKUA_EVENT_CANCEL) {
            return events[i].error;
        }
    }
    if (!hasher->asked) {
        return ask(hasher, out);
    }
    if (hasher->left == 0) {
        skua_step_done(out, skua_payload_u64(0, hasher->failed));
    }
    return 0;
}

static const skua_process_type hasher_type = {
    .name = "hasher",
    .state_size = sizeof(struct hasher),
    .init = hasher_init,
    .step = hasher_step,
};

static int run(skua_runtime *runtime, char **names, uint64_t *failed)
{
    const skua_blocking_pool files = {.name = "files", .thread_limit = 4};
    skua_payload input = skua_payload_pointer(0, names, NULL);
    skua_exit exit;
    int error = skua_blocking_register(runtime, &files);
    if (error == 0) {
        error = skua_runtime_start(runtime);
    }
    if (error == 0) {
        error = skua_process_run(runtime, &hasher_type, NULL, &input, 1, &exit);
        (void)skua_runtime_stop(runtime, SKUA_SECOND);
    }
    if (error == 0) {
        *failed = skua_payload_to_u64(&exit.result);
    }
    return error != 0 ? error : exit.error;
}

int main(int argc, char **argv)
{
    static char self[] = "/proc/self/exe";
    char *only_self[] = {self, NULL};
    skua_runtime *runtime;
    uint64_t failed = 0;
    int error = skua_runtime_create(&runtime, NULL);
    if (error == 0) {
        error = run(runtime, argc > 1 ? argv + 1 : only_self, &failed);
        (void)skua_runtime_destroy(runtime);
    }
    if (error != 0) {
        fprintf(stderr, "05_hash_file: %s\n", skua_error_text(error));
    }
    return error == 0 && failed == 0 ? 0 : 1;
}
