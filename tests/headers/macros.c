/* SPDX-License-Identifier: MIT */
/* What the macros of the headers make in a user's program. ./run compiles it as C and as C++. */
#include <stdio.h>
#include <string.h>

#include <skua/skua.h>

#if SKUA_VERSION_HEX < 0x00020000 || SKUA_VERSION_HEX != (SKUA_VERSION_HEX & 0x7fffff00)
#error "SKUA_VERSION_HEX"
#endif

/* All types as users may have them: in static memory, and filled in later. */
static skua_process_type root_type;
static skua_process_type other_type;
static const skua_process_type *const types[] = {&other_type, NULL};

/* All that are there need not be given, and not everybody gives an `about`. */
SKUA_MODULE(.name = "macros", .root = &root_type, .types = types);

SKUA_BEGIN_DECLS
SKUA_API SKUA_NODISCARD int shared_function(void);
SKUA_END_DECLS

int shared_function(void)
{
    return 7;
}

/* Packed: 12 bytes. */
SKUA_MESSAGE(order, 7, uint32_t count; uint64_t article;);

static int order_is_read(void)
{
    const struct order sent = {3, 44};
    struct order received = {0, 0};
    const skua_payload payload = skua_payload_static(order_number, &sent, sizeof sent);
    const skua_payload other = skua_payload_static(order_number + 1, &sent, sizeof sent);
    return sizeof sent == 12 && order_get(&payload, &received) == 0 && received.count == 3 &&
           received.article == 44 && order_get(&other, &received) == SKUA_E_PAYLOAD_TYPE;
}

struct row {
    const char *name;
    int number;
};

static const struct row errors[] = {
#define ROW(name, value, text) {"SKUA_E_" #name, SKUA_E_##name},
    SKUA_ERROR_MAP(ROW)
#undef ROW
};

static const char *const counters[] = {
#define NAME(name) #name,
    SKUA_STATS_MAP(NAME)
#undef NAME
};

/* One use of each macro that is a value; ./run writes it. */
static void use_values(void)
{
#include "values.h"
}

static int has_failed(int is_right, const char *what)
{
    if (!is_right) {
        fprintf(stderr, "wrong: %s\n", what);
    }
    return !is_right;
}

int main(void)
{
    use_values();
    const skua_module *module = &skua_module_descriptor;
    return has_failed(module->version == SKUA_MODULE_VERSION, "the version of the module") |
           has_failed(strcmp(module->name, "macros") == 0, "its name") |
           has_failed(module->root == &root_type && module->types == types, "its types") |
           has_failed(module->about == NULL && module->handlers == NULL, "what is not given") |
           has_failed(order_is_read(), "a message") |
           has_failed(shared_function() == 7, "a function of one's own") |
           has_failed(errors[0].number == SKUA_E_INVALID, "the first error") |
           has_failed(strcmp(errors[0].name, "SKUA_E_INVALID") == 0, "its name") |
           has_failed(strcmp(counters[0], "spawned") == 0, "the first counter");
}
