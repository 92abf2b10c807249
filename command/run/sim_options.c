/* SPDX-License-Identifier: MIT */
/* `skua run`: the options that only simulations have. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "command/run/run.h"
#include "command/support.h"

#define RATE_MAX     1000000 /* of skua_sim_faults: always */
#define RATE_PERCENT (RATE_MAX / 100)

/* ---- faults ---- */

static const struct fault {
    const char *name;
    size_t offset;
    uint32_t usual; /* what `all` stands for: rare enough for a program to get somewhere */
} faults[] = {
    {"message-delay", offsetof(skua_sim_faults, message_delay), RATE_PERCENT},
    {"handler-error", offsetof(skua_sim_faults, handler_error), RATE_PERCENT / 10},
    {"slow-completion", offsetof(skua_sim_faults, slow_completion), RATE_PERCENT},
    {"no-memory", offsetof(skua_sim_faults, no_memory), RATE_PERCENT / 100},
    {"spurious-wake", offsetof(skua_sim_faults, spurious_wake), RATE_PERCENT},
    {"process-kill", offsetof(skua_sim_faults, process_kill), RATE_PERCENT / 100},
    {"connect-refused", offsetof(skua_sim_faults, network.connect_refused), RATE_PERCENT / 10},
    {"connect-delay", offsetof(skua_sim_faults, network.connect_delay), RATE_PERCENT},
    {"accept-delay", offsetof(skua_sim_faults, network.accept_delay), RATE_PERCENT},
    {"no-descriptors", offsetof(skua_sim_faults, network.no_descriptors), RATE_PERCENT / 100},
    {"short-read", offsetof(skua_sim_faults, network.short_read), RATE_PERCENT},
    {"short-write", offsetof(skua_sim_faults, network.short_write), RATE_PERCENT},
    {"reset", offsetof(skua_sim_faults, network.reset), RATE_PERCENT / 10},
    {"silent-drop", offsetof(skua_sim_faults, network.silent_drop), RATE_PERCENT / 100},
    {"eof-late", offsetof(skua_sim_faults, network.eof_late), RATE_PERCENT},
    {"clog", offsetof(skua_sim_faults, network.clog), RATE_PERCENT},
    {"partition", offsetof(skua_sim_faults, network.partition), RATE_PERCENT / 10},
};

static void set_rate(skua_sim_faults *rates, const struct fault *fault, uint32_t rate)
{
    memcpy((char *)rates + fault->offset, &rate, sizeof rate);
}

/* The digits after the point of a percentage: each is worth a tenth of the one before it. False
 * unless they are 1 to 4 and then the sign: less than one in a million is no rate. */
static bool parse_fraction(const char *text, uint64_t *rate)
{
    const size_t digits = strspn(text, "0123456789");
    *rate = 0;
    for (size_t i = 0, worth = RATE_PERCENT / 10; i < digits; i++, worth /= 10) {
        *rate += worth * (uint64_t)(text[i] - '0');
    }
    return digits >= 1 && digits <= 4 && strcmp(text + digits, "%") == 0;
}

/* 1%, 0.1%, or a number in a million. */
static bool parse_rate(const char *text, uint32_t *rate)
{
    char whole[8];
    uint64_t number = 0;
    uint64_t fraction = 0;
    const size_t length = strcspn(text, ".%");
    if (text[length] == '\0') {
        const bool good = parse_number(text, 0, RATE_MAX, &number);
        *rate = (uint32_t)number;
        return good;
    }
    if (length >= sizeof whole) {
        return false;
    }
    memcpy(whole, text, length);
    whole[length] = '\0';
    const bool good = parse_number(whole, 0, 100, &number) &&
                      (text[length] == '.' ? parse_fraction(text + length + 1, &fraction)
                                           : strcmp(text + length, "%") == 0);
    number = number * RATE_PERCENT + fraction;
    *rate = (uint32_t)number;
    return good && number <= RATE_MAX;
}

static bool refuse_rate(const char *item)
{
    usage_error(RUN, "--faults: '%s' needs a rate, such as 1%%, 0.01%% or 500 (in a million)",
                item);
    return false;
}

/* One item of the list, cut into its name and its value, if it has one. */
static bool read_fault(skua_sim_faults *rates, const char *item, const char *name,
                       const char *value)
{
    uint32_t rate;
    if (strcmp(name, "delay-max") == 0) {
        const bool good =
            value != NULL && parse_duration(value, &rates->delay_max_ns) && rates->delay_max_ns > 0;
        if (!good) {
            usage_error(RUN, "--faults: '%s' needs a duration, such as 500us or 10ms", item);
        }
        return good;
    }
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        if (strcmp(name, faults[i].name) == 0) {
            if (value == NULL || !parse_rate(value, &rate)) {
                return refuse_rate(item);
            }
            set_rate(rates, &faults[i], rate);
            return true;
        }
    }
    if (strcmp(name, "all") == 0) {
        usage_error(RUN, "--faults: 'all' takes no rate; set single ones after it, as in "
                         "all,message-delay=5%%");
        return false;
    }
    usage_error(RUN,
                "--faults: there is no fault '%s'; there are message-delay, handler-error and "
                "others (skua run --help), delay-max and all",
                name);
    return false;
}

static bool read_item(skua_sim_faults *rates, const char *item)
{
    char name[64];
    const size_t length = strcspn(item, "=");
    if (strcmp(item, "all") == 0) {
        for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
            set_rate(rates, &faults[i], faults[i].usual);
        }
        return true;
    }
    (void)snprintf(name, sizeof name, "%.*s", (int)length, item);
    return read_fault(rates, item, name, item[length] == '=' ? item + length + 1 : NULL);
}

bool sim_option_faults(char **argv, int *i, struct run_options *options)
{
    const char *list;
    if (!option_text(RUN, argv, i, &list)) {
        return false;
    }
    options->has_faults = true;
    for (;;) {
        char item[128];
        const size_t length = strcspn(list, ",");
        (void)snprintf(item, sizeof item, "%.*s", (int)length, list);
        if (!read_item(&options->faults, item)) {
            return false;
        }
        if (list[length] == '\0') {
            return true;
        }
        list += length + 1;
    }
}

/* ---- seeds ---- */

static bool parse_seeds(const char *text, uint64_t *first, uint64_t *last)
{
    char number[32];
    const char *dots = strstr(text, "..");
    if (dots == NULL) {
        const bool good = parse_number(text, 1, UINT64_MAX, first);
        *last = *first;
        return good;
    }
    const size_t length = (size_t)(dots - text);
    if (length >= sizeof number) {
        return false;
    }
    memcpy(number, text, length);
    number[length] = '\0';
    return parse_number(number, 1, UINT64_MAX, first) &&
           parse_number(dots + 2, *first, UINT64_MAX, last);
}

bool sim_option_seeds(char **argv, int *i, struct run_options *options)
{
    const char *text;
    if (!option_text(RUN, argv, i, &text)) {
        return false;
    }
    if (!parse_seeds(text, &options->first_seed, &options->last_seed)) {
        usage_error(RUN, "--seeds needs a seed or a range of them, such as 17 or 1..100, not '%s'",
                    text);
        return false;
    }
    return true;
}

int sim_options_check(const struct run_options *options)
{
    const struct {
        const char *name;
        bool given;
    } rows[] = {
        {"--faults", options->has_faults},
        {"--trace", options->trace != NULL},
        {"--seeds", options->last_seed != 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0] && !options->sim; i++) {
        if (rows[i].given) {
            return usage_error(RUN, "%s is for simulations: it needs --sim", rows[i].name);
        }
    }
    if (options->last_seed != 0 && options->seed != 0) {
        return usage_error(RUN, "--seed and --seeds cannot be given together");
    }
    return 0;
}
