/* SPDX-License-Identifier: MIT */
#include "ward_model.h"

#include <skua/clock.h>
#include <stdio.h>

#define RESTARTS_MAX 4096

struct modelled {
    bool has_started; /* once */
    bool lives;
    bool is_ready;
    bool is_wanted;   /* may be started again */
    bool is_missed;   /* the supervisor knows that it must be */
    bool is_told_of;  /* a line of the log says that it will be */
    bool must_end;    /* because others do */
    bool may_be_over; /* has ended in a way that may have been for good */
    /* For its next pause. */
    uint32_t failures;
    bool may_begin_anew, must_begin_anew;
    uint64_t ready_at;
};

/* A restart, for budgets. */
struct restart {
    size_t index;
    uint64_t at;
};

struct ward_model_tally ward_model_tally;

static struct {
    const skua_supervisor *specification;
    struct modelled children[WARDS_MAX];
    struct restart restarts[RESTARTS_MAX];
    size_t restart_count;
    bool is_ending;
    bool lacks_memory; /* now and then */
    char trace[8192];  /* for those who have to find out */
    size_t trace_length;
} now;

static void trace(char sign, char letter)
{
    if (now.trace_length + 3 < sizeof now.trace) {
        now.trace[now.trace_length++] = sign;
        now.trace[now.trace_length++] = letter;
    }
}

static char letter_of(size_t index)
{
    return (char)('a' + index);
}

static void surprise(const char *what, size_t index)
{
    fail_msg("%s (%c) after %s", what, letter_of(index), now.trace);
}

static uint64_t sim_now(void)
{
    return skua_sim_now(world_runtime());
}

static bool is_orderly_end(int error)
{
    return error == 0 || error == SKUA_E_CANCELLED || error == SKUA_E_STOPPED;
}

/* ---- the specification ---- */

static size_t listed(void)
{
    return now.specification->child_count;
}

static bool is_dynamic(size_t index)
{
    return index >= listed();
}

static const skua_child *spec_of(size_t index)
{
    return is_dynamic(index) ? now.specification->templates : &now.specification->children[index];
}

/* Whether the failure of one means that the other must end, too. */
static bool concerns(size_t failed, size_t other)
{
    if (is_dynamic(failed) || is_dynamic(other)) {
        return false;
    }
    switch (now.specification->strategy) {
    case SKUA_STRATEGY_ONE:
        return false;
    case SKUA_STRATEGY_ALL:
        return other != failed;
    case SKUA_STRATEGY_REST:
        return other > failed;
    }
    return false;
}

/* ---- for good ---- */

/* Whether it may have ended for good: also without a start, if there was no memory for the only
 * one. */
static bool may_be_over(size_t index)
{
    const struct modelled *child = &now.children[index];
    return child->may_be_over || (now.lacks_memory && !child->has_started &&
                                  spec_of(index)->restart == SKUA_RESTART_NEVER);
}

/* Whether the significant children that have ended, perhaps for good, are enough to stop. */
static bool may_stop(void)
{
    size_t significant = 0;
    size_t over = 0;
    for (size_t i = 0; i < listed(); i++) {
        significant += spec_of(i)->significant;
        over += spec_of(i)->significant && !now.children[i].lives && may_be_over(i);
    }
    switch (now.specification->auto_stop) {
    case SKUA_AUTO_STOP_NEVER:
        return false;
    case SKUA_AUTO_STOP_ANY:
        return over > 0;
    case SKUA_AUTO_STOP_ALL:
        return over == significant;
    }
    return false;
}

/* ---- pauses ---- */

/* How long it has been ready says whether its failures are forgotten: for sure, or perhaps. */
static void model_stability(size_t index)
{
    struct modelled *child = &now.children[index];
    const uint64_t stable_ns = spec_of(index)->backoff.stable_ns;
    const bool was_ready = child->is_ready || spec_of(index)->start_ns == 0;
    const uint64_t ran = was_ready ? sim_now() - child->ready_at : 0;
    if (was_ready && ran + WARD_MODEL_SLACK_NS >= stable_ns) {
        child->may_begin_anew = true;
    }
    if (was_ready && ran >= stable_ns + WARD_MODEL_SLACK_NS) {
        child->must_begin_anew = true;
    }
}

/* The pause that a line says, with its unit: "in 12 ms". False: none. */
static bool read_pause(const char *line, uint64_t *least_ns, uint64_t *most_ns)
{
    const char *text = strstr(line, "again in ");
    double number;
    char unit[3];
    if (text == NULL || sscanf(text, "again in %lf %2s", &number, unit) != 2) {
        return false;
    }
    const uint64_t unit_ns = strcmp(unit, "us") == 0   ? SKUA_MICROSECOND
                             : strcmp(unit, "ms") == 0 ? SKUA_MILLISECOND
                                                       : SKUA_SECOND;
    const double error = unit_ns == SKUA_SECOND ? number / 200 : 1; /* three digits, or cut off */
    *least_ns = (uint64_t)((number - (unit_ns == SKUA_SECOND ? error : 0)) * (double)unit_ns);
    *most_ns = (uint64_t)((number + error) * (double)unit_ns);
    return true;
}

/* In milliseconds: the first pause, the longest, and those that are expected, one after the other;
 * the last of them stays. Written down, so that no formula agrees with itself. */
#define PAUSES_MAX 7
static const struct {
    unsigned first;
    unsigned longest;
    unsigned expected[PAUSES_MAX];
} pauses[] = {
    {1, 1, {1, 1, 1, 1, 1, 1, 1}},          {1, 6, {1, 2, 4, 6, 6, 6, 6}},
    {1, 40, {1, 2, 4, 8, 16, 32, 40}},      {2, 5, {2, 4, 5, 5, 5, 5, 5}},
    {3, 12, {3, 6, 12, 12, 12, 12, 12}},    {5, 19, {5, 10, 19, 19, 19, 19, 19}},
    {7, 35, {7, 14, 28, 35, 35, 35, 35}},   {10, 60, {10, 20, 40, 60, 60, 60, 60}},
    {13, 13, {13, 13, 13, 13, 13, 13, 13}}, {20, 100, {20, 40, 80, 100, 100, 100, 100}},
};

skua_backoff ward_model_backoff(uint64_t random)
{
    const size_t row = random % COUNT_OF(pauses);
    return (skua_backoff){.first_ns = pauses[row].first * SKUA_MILLISECOND,
                          .max_ns = pauses[row].longest * SKUA_MILLISECOND};
}

/* 0 if the table does not have it, which is a wrong pause. */
static uint64_t pause_after(const skua_backoff *backoff, uint32_t failures)
{
    const size_t column = failures <= PAUSES_MAX ? failures - 1 : PAUSES_MAX - 1;
    for (size_t row = 0; row < COUNT_OF(pauses); row++) {
        if (backoff->first_ns == pauses[row].first * SKUA_MILLISECOND &&
            backoff->max_ns == pauses[row].longest * SKUA_MILLISECOND) {
            return pauses[row].expected[column] * SKUA_MILLISECOND;
        }
    }
    return 0;
}

static void model_pause(size_t index, const char *line)
{
    struct modelled *child = &now.children[index];
    uint64_t least_ns;
    uint64_t most_ns;
    if (!read_pause(line, &least_ns, &most_ns)) {
        if (child->failures > 0 && !child->may_begin_anew) {
            surprise("started again without a pause", index);
        }
        ward_model_tally.fresh_starts += child->failures > 0;
        child->failures = 0;
    } else if (child->failures == 0 || child->must_begin_anew) {
        surprise("started again after a pause", index);
    } else {
        const uint64_t pause = pause_after(&spec_of(index)->backoff, child->failures);
        ward_model_tally.pauses++;
        if (most_ns < pause - pause / 4 || least_ns > pause + pause / 4) {
            surprise("started again after a wrong pause", index);
        }
    }
    child->failures++;
    child->may_begin_anew = child->must_begin_anew = false;
}

/* ---- budgets ---- */

static uint32_t count_restarts(const skua_budget *budget, size_t index, bool all)
{
    uint32_t count = 0;
    for (size_t i = 0; i < now.restart_count; i++) {
        const struct restart *restart = &now.restarts[i];
        count += (all || restart->index == index) && sim_now() - restart->at < budget->period_ns;
    }
    return count;
}

static bool is_used_up(const skua_budget *budget, size_t index, bool all)
{
    return budget->restarts > 0 && count_restarts(budget, index, all) >= budget->restarts;
}

static void model_budgets(size_t index)
{
    if (is_used_up(&spec_of(index)->budget, index, false) ||
        is_used_up(&now.specification->budget, index, true)) {
        surprise("started again beyond a budget", index);
    }
    assert_true(now.restart_count < RESTARTS_MAX);
    now.restarts[now.restart_count++] = (struct restart){index, sim_now()};
}

static void model_give_up(size_t index, bool is_of_child)
{
    trace('G', letter_of(index));
    const skua_budget *budget = is_of_child ? &spec_of(index)->budget : &now.specification->budget;
    if (!is_used_up(budget, index, !is_of_child)) {
        surprise("given up within the budget", index);
    }
    if (count_restarts(budget, index, !is_of_child) > budget->restarts) {
        surprise("given up too late", index);
    }
    ward_model_tally.give_ups++;
    ward_model_tally.give_ups_of_child += is_of_child;
    now.is_ending = true;
}

/* ---- what is seen ---- */

static void model_restart(size_t index, const char *line)
{
    trace('R', letter_of(index));
    if (now.is_ending) {
        surprise("to be started again by a supervisor that ends", index);
    }
    model_budgets(index);
    model_pause(index, line);
    now.children[index].is_wanted = true;
    now.children[index].is_missed = true;
    now.children[index].is_told_of = true;
    now.children[index].may_be_over = false;
    for (size_t i = 0; i < listed(); i++) {
        if (concerns(index, i) && now.children[i].lives) {
            now.children[i].must_end = true;
        }
    }
    ward_model_tally.restarts++;
}

/* One that is stopped with another. */
static void model_stop_with(size_t index, bool is_for_good)
{
    struct modelled *child = &now.children[index];
    trace('S', letter_of(index));
    if (is_for_good != (spec_of(index)->restart == SKUA_RESTART_NEVER)) {
        surprise("is said to start again, or not to", index);
    }
    if (child->is_told_of) {
        surprise("has a second line for one restart", index);
    }
    child->is_told_of = !is_for_good;
}

static void check_order_of_start(size_t index)
{
    const bool in_group = now.specification->strategy != SKUA_STRATEGY_ONE;
    for (size_t i = 0; i < listed() && !is_dynamic(index); i++) {
        const struct modelled *child = &now.children[i];
        if (in_group && child->lives && child->must_end) {
            surprise("started while others must end", index);
        }
        if (i < index && !child->has_started && !may_be_over(i)) {
            surprise("started before an earlier one", index);
        }
        if (i < index && in_group && child->is_missed && !child->lives) {
            surprise("started again before an earlier one", index);
        }
        if (i < index && in_group && child->lives && !child->is_ready &&
            spec_of(i)->start_ns != 0) {
            surprise("started before an earlier one is ready", index);
        }
    }
}

static void model_start(size_t index)
{
    struct modelled *child = &now.children[index];
    if (now.is_ending && !is_dynamic(index)) {
        surprise("started by a supervisor that ends", index);
    }
    if (child->lives) {
        surprise("started twice", index);
    }
    if (child->has_started && !child->is_wanted) {
        surprise("started again for no reason", index);
    }
    if (child->has_started && spec_of(index)->restart == SKUA_RESTART_NEVER) {
        surprise("started again", index);
    }
    if (child->has_started && !child->is_told_of) {
        surprise("started again without a line in the log", index);
    }
    check_order_of_start(index);
    *child = (struct modelled){.has_started = true,
                               .lives = true,
                               .failures = child->failures,
                               .may_begin_anew = child->may_begin_anew,
                               .must_begin_anew = child->must_begin_anew,
                               .ready_at = sim_now()};
}

/* Whether the supervisor has heard that somebody started a child. */
static bool is_known(size_t index)
{
    return sim_now() - now.children[index].ready_at >= WARD_MODEL_SLACK_NS;
}

/* A supervisor that ends stops the children of templates first, then the list from its end; or all
 * at once. */
static void check_order_of_end(size_t index)
{
    const struct modelled *child = &now.children[index];
    if (is_dynamic(index) || now.specification->parallel_stop) {
        return;
    }
    for (size_t i = 0; i < WARDS_MAX; i++) {
        const bool comes_first = is_dynamic(i) ? is_known(i) : i > index;
        if (comes_first && now.is_ending && now.children[i].lives) {
            surprise("asked to end before a later one", index);
        }
        if (comes_first && child->must_end && now.children[i].must_end && now.children[i].lives) {
            surprise("asked to end before a later one", index);
        }
    }
}

static void model_cancel(size_t index)
{
    const struct modelled *child = &now.children[index];
    const bool may_be_late = !child->is_ready && spec_of(index)->start_ns != 0;
    if (!child->must_end && !now.is_ending && !may_be_late) {
        if (!may_stop()) {
            surprise("asked to end for no reason", index);
        }
        trace('!', '!');
        now.is_ending = true;
    }
    check_order_of_end(index);
}

static void model_end(size_t index)
{
    struct modelled *child = &now.children[index];
    const skua_child *spec = spec_of(index);
    const int error = ward_of(letter_of(index))->exit_error;
    model_stability(index);
    child->lives = false;
    child->may_be_over = spec->restart == SKUA_RESTART_NEVER ||
                         (spec->restart == SKUA_RESTART_ON_ERROR && is_orderly_end(error)) ||
                         (is_dynamic(index) && now.lacks_memory && error == SKUA_E_TERMINATED);
    child->is_wanted = spec->restart != SKUA_RESTART_NEVER;
    child->is_missed = child->is_wanted && child->must_end;
    child->must_end = false;
}

static void watch(char sign, char letter)
{
    const size_t index = (size_t)(letter - 'a');
    trace(sign, letter);
    switch (sign) {
    case '+':
        model_start(index);
        break;
    case 'r':
        now.children[index].is_ready = true;
        now.children[index].ready_at = sim_now();
        break;
    case 'c':
        model_cancel(index);
        break;
    case '-':
        model_end(index);
        break;
    default:
        break;
    }
}

/* "supervisor top: child a (...) failed with ...; starting it again ...", then for each other
 * "supervisor top: child b (...) is stopped and started again with child a" */
void ward_model_read_log(void *arg, const skua_log *log)
{
    static const char begin[] = "supervisor top: child ";
    (void)arg;
    if (strncmp(log->text, begin, strlen(begin)) != 0) {
        return;
    }
    const size_t index = (size_t)(log->text[strlen(begin)] - 'a');
    if (strstr(log->text, "_QUOTA") != NULL) {
        surprise("a start was refused for a quota that has room", index);
    }
    if (strstr(log->text, " is stopped") != NULL) {
        model_stop_with(index, strstr(log->text, "for good") != NULL);
    } else if (strstr(log->text, "giving up") != NULL) {
        model_give_up(index, strstr(log->text, "of this child") != NULL);
    } else if (strstr(log->text, "starting it again") != NULL) {
        ward_model_tally.failed_starts += strstr(log->text, "SKUA_E_NO_MEMORY") != NULL;
        model_restart(index, log->text);
    }
}

/* ---- for the test ---- */

void ward_model_open(const skua_supervisor *specification)
{
    memset(&now, 0, sizeof now);
    now.specification = specification;
    wards_watch(watch);
}

void ward_model_lacks_memory(void)
{
    now.lacks_memory = true;
}

void ward_model_note(char sign, char letter)
{
    trace(sign, letter);
}

void ward_model_end(void)
{
    now.is_ending = true;
}

bool ward_model_is_ending(void)
{
    return now.is_ending;
}

static void check_rest_of(size_t index)
{
    const struct modelled *child = &now.children[index];
    if (is_dynamic(index) && !child->has_started) {
        return;
    }
    if (!child->lives && !may_be_over(index)) {
        surprise("does not live in the end", index);
    }
    if (child->lives && child->must_end) {
        surprise("was to be started again", index);
    }
}

void ward_model_check_rest(bool supervisor_lives)
{
    const bool must_stop = may_stop(); /* what may have been for good by now was */
    ward_model_tally.stops += must_stop;
    if (supervisor_lives == (now.is_ending || must_stop)) {
        fail_msg("the supervisor %s after %s", supervisor_lives ? "lives" : "has ended", now.trace);
    }
    for (size_t i = 0; i < WARDS_MAX; i++) {
        if (supervisor_lives) {
            check_rest_of(i);
        } else if (now.children[i].lives) {
            surprise("outlives its supervisor", i);
        }
    }
}
