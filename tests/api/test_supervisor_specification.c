/* SPDX-License-Identifier: MIT */
/* Specifications that make no sense are refused, with a text that says why. */
#include <stdio.h>

#include "wards.h"

#define LONG_NAME "a name of more than sixty-three bytes, which is one byte too many"

static int step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self, (void)ctx, (void)events, (void)count;
    return 0;
}

static int main_of_task(void *self, skua_context *ctx)
{
    (void)self;
    (void)ctx;
    return 0;
}

static const char *const methods[] = {"work", NULL};
static const skua_process_type good_type = {.name = "good", .step = step, .methods = methods};
static const skua_process_type idle_type = {.name = "idle"};
static const skua_process_type both_type = {.name = "both", .step = step, .main = main_of_task};
static const skua_process_type nameless_type = {.step = step};
static const skua_process_type boundless_type = {
    .name = "boundless", .step = step, .mailbox_limit = UINT32_MAX};
static const skua_process_type boiling_type = {
    .name = "boiling", .step = step, .overflow = (enum skua_overflow)9};
static const skua_process_type immortal_type = {
    .name = "immortal", .step = step, .cancel = (enum skua_cancel_mode)9};
static const skua_process_type stacked_type = {.name = "stacked", .step = step, .stack_size = 1};
static const skua_process_type towering_type = {
    .name = "towering", .main = main_of_task, .stack_size = SIZE_MAX};

static void drop_nothing(void *data, size_t size)
{
    (void)data;
    (void)size;
}

static skua_payload owned;
static skua_payload taken;
static const skua_supervisor endless;

/* What is wrong with a child, or with a template, and what is said then. */
static const struct {
    skua_child child;
    const char *text;
} children[] = {
    {{.type = &good_type}, "child number 2: name"},
    {{.name = "", .type = &good_type}, "child number 2: name"},
    {{.name = LONG_NAME, .type = &good_type}, "child number 2: name"},
    {{.name = "a\n", .type = &good_type}, "child number 2: name"},
    {{.name = "x"}, "child x: type: it has neither"},
    {{.name = "x", .type = &good_type, .supervisor = &endless},
     "child x: supervisor: it has a type"},
    {{.name = "x", .supervisor = &endless, .method = "main"}, "child x: supervisor: it takes"},
    {{.name = "x", .type = &idle_type}, "child x: type: the process type needs exactly one of"},
    {{.name = "x", .type = &both_type}, "child x: type: the process type needs exactly one of"},
    {{.name = "x", .type = &nameless_type}, "child x: type: the process type has no name"},
    {{.name = "x", .type = &boundless_type}, "child x: type: mailbox_limit of the process type"},
    {{.name = "x", .type = &boiling_type}, "child x: type: overflow of the process type"},
    {{.name = "x", .type = &immortal_type}, "child x: type: cancel of the process type"},
    {{.name = "x", .type = &stacked_type}, "child x: type: stack_size of the process type: only"},
    {{.name = "x", .type = &towering_type}, "child x: type: state_size, stack_size or reserved"},
    {{.name = "x", .type = &good_type, .method = "play"}, "child x: method"},
    {{.name = "x", .type = &good_type, .input_count = 1}, "child x: input_count"},
    {{.name = "x", .type = &good_type, .input = &owned, .input_count = 1}, "child x: input"},
    {{.name = "x", .type = &good_type, .input = &taken, .input_count = 1}, "child x: input"},
    {{.name = "x", .type = &good_type, .restart = (enum skua_restart)3}, "child x: restart"},
    {{.name = "x", .type = &good_type, .significant = true}, "child x: significant"},
    {{.name = "x", .type = &good_type, .start_ns = (uint64_t)-5}, "child x: start_ns"},
    {{.name = "x", .type = &good_type, .stop_ns = (uint64_t)-5}, "child x: stop_ns"},
    {{.name = "x", .type = &good_type, .budget = {3, 0}}, "child x: budget.restarts without"},
    {{.name = "x", .type = &good_type, .budget = {0, 3}}, "child x: budget.period_ns without"},
    {{.name = "x", .type = &good_type, .budget = {SKUA_RESTARTS_MAX + 1, 3}},
     "child x: budget.restarts is more"},
    {{.name = "x", .type = &good_type, .budget = {1, (uint64_t)-5}},
     "child x: budget.period_ns is"},
    {{.name = "x", .type = &good_type, .backoff = {.first_ns = (uint64_t)-5}},
     "child x: backoff.first_ns"},
    {{.name = "x", .type = &good_type, .backoff = {.max_ns = (uint64_t)-5}},
     "child x: backoff.max_ns is negative"},
    {{.name = "x", .type = &good_type, .backoff = {.first_ns = 5, .max_ns = 4}},
     "child x: backoff.max_ns is less"},
    {{.name = "x", .type = &good_type, .backoff = {.first_ns = 31 * SKUA_SECOND}},
     "child x: backoff.first_ns is more than backoff.max_ns, which is 30 s"},
    {{.name = "x", .type = &good_type, .backoff = {.stable_ns = (uint64_t)-5}},
     "child x: backoff.stable_ns"},
    {{.name = "x", .type = &good_type, .restart = SKUA_RESTART_NEVER, .budget = {3, SKUA_SECOND}},
     "child x: budget: it is never"},
    {{.name = "x",
      .type = &good_type,
      .restart = SKUA_RESTART_NEVER,
      .backoff = {.stable_ns = SKUA_SECOND}},
     "child x: backoff: it is never"},
    {{.name = "x", .type = &good_type, .reserved = {0, 1}}, "child x: reserved"},
    {{.name = "good", .type = &both_type}, "child good: type"},
    {{.name = "good", .type = &good_type}, "child good: name: another child has it"},
};

static const skua_child good = {.name = "good", .type = &good_type};

static void assert_refused(const skua_supervisor *specification, const char *part)
{
    char text[256];
    skua_pid pid = {5};
    assert_int_equal(skua_supervisor_check(specification, text, sizeof text), SKUA_E_SPECIFICATION);
    if (strstr(text, part) == NULL) {
        fail_msg("it says '%s', without '%s'", text, part);
    }
    assert_int_equal(skua_supervisor_check(specification, NULL, 0), SKUA_E_SPECIFICATION);
    assert_int_equal(skua_supervisor_check(specification, text, 4), SKUA_E_SPECIFICATION);
    assert_int_equal(strlen(text), 3);
    assert_int_equal(skua_process_start_supervisor(world_runtime(), specification, &pid),
                     SKUA_E_SPECIFICATION);
}

TEST(children_that_make_no_sense_are_refused)
{
    owned = skua_payload_owned(0, &owned, 1, drop_nothing);
    taken = (skua_payload){.storage = SKUA_PAYLOAD_TAKEN};
    world_open();
    for (size_t i = 0; i < COUNT_OF(children); i++) {
        const skua_child list[] = {good, children[i].child};
        assert_refused(
            &(skua_supervisor){.name = "top", .children = list, .child_count = COUNT_OF(list)},
            children[i].text);
    }
}

TEST(supervisor_by_its_type_is_refused_in_a_list)
{
    const skua_child child = {.name = "x", .type = skua_supervisor_type()};
    world_open();
    assert_refused(&(skua_supervisor){.name = "top", .children = &child, .child_count = 1},
                   "child x: type: a supervisor in the list");
}

TEST(templates_that_make_no_sense_are_refused)
{
    static const skua_payload number;
    static const struct {
        skua_child template;
        const char *text;
    } rows[] = {
        {{.name = "x", .type = &both_type, .method = "work"}, "template x: method: it comes"},
        {{.name = "x", .type = &both_type, .input = &number, .input_count = 1},
         "template x: input: it comes"},
        {{.name = "x", .type = &both_type, .registered = true}, "template x: registered"},
        {{.name = "x", .supervisor = &endless}, "template x: supervisor: a template"},
        {{.name = "x", .type = &both_type}, "template x: type: the process type needs"},
        {{.name = "x", .type = &good_type}, "template x: type: another template"},
    };
    world_open();
    FOR_ROWS (row, rows) {
        const skua_child templates[] = {good, row->template};
        world_open();
        assert_refused(&(skua_supervisor){.name = "top",
                                          .templates = templates,
                                          .template_count = COUNT_OF(templates)},
                       row->text);
    }
}

TEST(supervisors_that_make_no_sense_are_refused)
{
    static const skua_child significant = {
        .name = "s", .type = &good_type, .restart = SKUA_RESTART_NEVER, .significant = true};
    static const struct {
        skua_supervisor specification;
        const char *text;
    } rows[] = {
        {{.children = &good, .child_count = 1}, "supervisor ?: name"},
        {{.name = LONG_NAME, .children = &good, .child_count = 1}, "supervisor ?: name"},
        {{.name = "top"}, "supervisor top: child_count and template_count are both 0"},
        {{.name = "top", .child_count = 1}, "child_count without"},
        {{.name = "top", .template_count = 1}, "template_count without"},
        {{.name = "top", .children = &good, .child_count = SKUA_CHILDREN_MAX + 1},
         "child_count is"},
        {{.name = "top", .children = &good, .child_count = 1, .strategy = (enum skua_strategy)3},
         "strategy: no such"},
        {{.name = "top", .templates = &good, .template_count = 1, .strategy = SKUA_STRATEGY_ALL},
         "strategy: there is no list"},
        {{.name = "top", .templates = &good, .template_count = 1, .parallel_stop = true},
         "parallel_stop: there is no list"},
        {{.name = "top", .children = &good, .child_count = 1, .auto_stop = (enum skua_auto_stop)3},
         "auto_stop: no such"},
        {{.name = "top", .children = &good, .child_count = 1, .auto_stop = SKUA_AUTO_STOP_ANY},
         "auto_stop without"},
        {{.name = "top", .children = &significant, .child_count = 1}, "auto_stop: there are"},
        {{.name = "top",
          .templates = &significant,
          .template_count = 1,
          .auto_stop = SKUA_AUTO_STOP_ALL},
         "auto_stop: ALL does not go"},
        {{.name = "top", .children = &good, .child_count = 1, .budget = {1, 0}}, "budget.restarts"},
        {{.name = "top", .children = &good, .child_count = 2, .quota = {.processes = 1}},
         "quota.processes is less than child_count"},
        {{.name = "top",
          .children = &good,
          .child_count = 1,
          .quota = {.processes = SKUA_PROCESSES_MAX + 1}},
         "quota.processes is more"},
        {{.name = "top", .children = &good, .child_count = 1, .quota = {.messages = UINT32_MAX}},
         "quota.messages"},
        {{.name = "top", .children = &good, .child_count = 1, .quota = {.bytes = SIZE_MAX}},
         "quota.bytes"},
        {{.name = "top", .children = &good, .child_count = 1, .reserved = {1}}, "reserved"},
    };
    FOR_ROWS (row, rows) {
        world_open();
        assert_refused(&row->specification, row->text);
    }
}

static const skua_child endless_child = {.name = "again", .supervisor = &endless};
static const skua_supervisor endless = {
    .name = "endless", .children = &endless_child, .child_count = 1};

TEST(supervisors_that_contain_themselves_are_refused)
{
    static const skua_child entry = {.name = "entry", .supervisor = &endless};
    world_open();
    assert_refused(&endless, "supervisor endless, child again: supervisor: it contains itself");
    assert_refused(&(skua_supervisor){.name = "top", .children = &entry, .child_count = 1},
                   "supervisor top/entry, child again: supervisor: it contains itself");
}

TEST(supervisors_can_be_nested_only_so_deep)
{
    enum { LEVELS = SKUA_SUPERVISORS_DEEP + 1 };
    static skua_supervisor levels[LEVELS];
    static skua_child links[LEVELS];
    world_open();
    for (size_t i = 0; i < LEVELS; i++) {
        links[i] =
            i + 1 < LEVELS ? (skua_child){.name = "below", .supervisor = &levels[i + 1]} : good;
        levels[i] = (skua_supervisor){.name = "level", .children = &links[i], .child_count = 1};
    }
    assert_refused(&levels[0], "too many levels");
    assert_int_equal(skua_supervisor_check(&levels[1], NULL, 0), 0);
}

/* Two ways down from each level: there are more ways in all than anybody could go. */
TEST(supervisors_with_too_many_below_are_refused)
{
    enum { LEVELS = SKUA_SUPERVISORS_DEEP };
    static skua_supervisor levels[LEVELS];
    static skua_child links[LEVELS][2];
    world_open();
    for (size_t i = 0; i < LEVELS; i++) {
        const skua_supervisor *below = i + 1 < LEVELS ? &levels[i + 1] : NULL;
        links[i][0] = below != NULL ? (skua_child){.name = "left", .supervisor = below} : good;
        links[i][1] = (skua_child){
            .name = "right", .type = below == NULL ? &good_type : NULL, .supervisor = below};
        levels[i] = (skua_supervisor){.name = "level", .children = links[i], .child_count = 2};
    }
    assert_refused(&levels[0], "the lists have more than SKUA_TREE_MAX children together");
    assert_int_equal(skua_supervisor_check(&levels[LEVELS - 10], NULL, 0), 0);
}

static const skua_child pair[] = {{.name = "one", .type = &good_type},
                                  {.name = "two", .type = &good_type}};
static const skua_supervisor pair_below = {.name = "pair", .children = pair, .child_count = 2};

TEST(quota_must_have_room_for_what_is_below)
{
    const skua_child list[] = {good, {.name = "inner", .supervisor = &pair_below}};
    skua_supervisor top = {
        .name = "top", .children = list, .child_count = 2, .quota = {.processes = 3}};
    const skua_child entry = {.name = "middle", .supervisor = &top};
    world_open();
    assert_refused(&top, "supervisor top: quota.processes is less than the children in its lists");
    assert_refused(&(skua_supervisor){.name = "root", .children = &entry, .child_count = 1},
                   "supervisor root/middle: quota.processes is less");
    top.quota.processes = 4;
    assert_int_equal(skua_supervisor_check(&top, NULL, 0), 0);
}

TEST(quota_below_another_fits_into_it)
{
    static const struct {
        skua_quota outer;
        skua_quota inner;
        const char *text; /* null: it does */
    } rows[] = {
        {{.processes = 9}, {.processes = 10}, "supervisor top/middle/inner: quota.processes"},
        {{.messages = 9}, {.messages = 10}, "supervisor top/middle/inner: quota.messages"},
        {{.bytes = 9}, {.bytes = 10}, "supervisor top/middle/inner: quota.bytes"},
        {{.messages = 10, .bytes = 10}, {.messages = 10, .processes = 99}, NULL},
    };
    world_open();
    FOR_ROWS (row, rows) {
        skua_supervisor inner = pair_below;
        inner.quota = row->inner;
        const skua_child in_middle = {.name = "inner", .supervisor = &inner};
        const skua_supervisor middle = {.name = "middle", .children = &in_middle, .child_count = 1};
        const skua_child in_top = {.name = "middle", .supervisor = &middle};
        const skua_supervisor top = {
            .name = "top", .children = &in_top, .child_count = 1, .quota = row->outer};
        if (row->text != NULL) {
            assert_refused(&top, row->text);
        }
        assert_int_equal(skua_supervisor_check(&top, NULL, 0),
                         row->text != NULL ? SKUA_E_SPECIFICATION : 0);
    }
}

TEST(registered_name_stands_for_one_child_of_the_tree)
{
    skua_child below[] = {good, {.name = "clerk", .type = &good_type, .registered = true}};
    const skua_supervisor inner = {.name = "inner", .children = below, .child_count = 2};
    skua_child list[] = {{.name = "clerk", .type = &good_type, .registered = true},
                         {.name = "desk", .supervisor = &inner}};
    const skua_supervisor top = {.name = "top", .children = list, .child_count = 2};
    world_open();
    assert_refused(&top,
                   "supervisor top/desk, child clerk: registered: another child of the tree has");
    list[0].registered = false;
    assert_int_equal(skua_supervisor_check(&top, NULL, 0), 0);
    list[0] = (skua_child){.name = "chair", .supervisor = &inner}; /* in two places */
    assert_refused(&top, "supervisor top/desk, child clerk: registered: another child");
    below[1].registered = false;
    list[0].registered = true;
    assert_int_equal(skua_supervisor_check(&top, NULL, 0), 0);
    below[1] = (skua_child){.name = "chair", .type = &good_type, .registered = true};
    assert_refused(&top, "supervisor top/chair, child chair: registered: another child");
}

TEST(registered_supervisor_is_named_with_the_one_above)
{
    const skua_child list[] = {
        {.name = "pair", .type = &good_type, .registered = true},
        {.name = "inner",
         .supervisor = &(const skua_supervisor){
             .name = "inner",
             .children =
                 &(const skua_child){.name = "pair", .supervisor = &pair_below, .registered = true},
             .child_count = 1}}};
    world_open();
    assert_refused(&(skua_supervisor){.name = "top", .children = list, .child_count = 2},
                   "supervisor top/inner, child pair: registered");
}

/* As many as there may be; comparing each with each would take a moment for every one of these. */
TEST(the_one_child_of_very_many_whose_name_another_has_is_found)
{
    static char names[SKUA_CHILDREN_MAX][8];
    static skua_child list[SKUA_CHILDREN_MAX];
    const skua_supervisor specification = {
        .name = "top", .children = list, .child_count = SKUA_CHILDREN_MAX};
    uint64_t random = 1;
    char text[100];
    for (size_t i = 0; i < SKUA_CHILDREN_MAX; i++) {
        (void)snprintf(names[i], sizeof names[i], "n%zu", i);
        list[i] = (skua_child){.name = names[i], .type = &good_type};
    }
    assert_int_equal(skua_supervisor_check(&specification, text, sizeof text), 0);
    FOR_ROUNDS (round, 100) {
        const size_t later = 1 + seed_next(&random) % (SKUA_CHILDREN_MAX - 1);
        const size_t earlier = seed_next(&random) % later;
        char expected[100];
        list[later].name = names[earlier];
        (void)snprintf(expected, sizeof expected,
                       "supervisor top, child n%zu: name: another child has it", earlier);
        assert_int_equal(skua_supervisor_check(&specification, text, sizeof text),
                         SKUA_E_SPECIFICATION);
        assert_string_equal(text, expected);
        list[later].name = names[later];
    }
}

TEST(the_one_template_of_very_many_whose_type_another_has_is_found)
{
    static char names[SKUA_CHILDREN_MAX][8];
    static skua_process_type types[SKUA_CHILDREN_MAX];
    static skua_child list[SKUA_CHILDREN_MAX];
    const skua_supervisor specification = {
        .name = "top", .templates = list, .template_count = SKUA_CHILDREN_MAX};
    char text[100];
    for (size_t i = 0; i < SKUA_CHILDREN_MAX; i++) {
        (void)snprintf(names[i], sizeof names[i], "n%zu", i);
        types[i] = good_type;
        list[i] = (skua_child){.name = names[i], .type = &types[i]};
    }
    assert_int_equal(skua_supervisor_check(&specification, text, sizeof text), 0);
    list[4000].type = &types[5];
    assert_int_equal(skua_supervisor_check(&specification, text, sizeof text),
                     SKUA_E_SPECIFICATION);
    assert_string_equal(text, "supervisor top, template n4000: type: another template has it");
}

TEST(what_makes_sense_is_not_refused)
{
    char text[8] = "before";
    const skua_supervisor specification = {.name = "top", .children = &good, .child_count = 1};
    assert_int_equal(skua_supervisor_check(&specification, text, sizeof text), 0);
    assert_string_equal(text, "");
    assert_int_equal(skua_supervisor_check(NULL, text, sizeof text), SKUA_E_INVALID);
}

TEST(a_supervisor_needs_a_specification)
{
    world_open();
    skua_pid pid;
    assert_int_equal(skua_process_start_supervisor(world_runtime(), NULL, &pid), SKUA_E_INVALID);
    assert_int_equal(skua_process_start_supervisor(NULL, NULL, &pid), SKUA_E_INVALID);
    assert_int_equal(
        skua_process_submit(world_runtime(), skua_supervisor_type(), skua_nothing(), &pid),
        SKUA_E_INVALID);
}
