/* SPDX-License-Identifier: MIT */
/* Rows for a table of models in which MAY_REST, which the model defines, is the same for all. */
#ifndef SKUA_MODEL_TABLES_H
#define SKUA_MODEL_TABLES_H

#include "explore.h"

#define MODEL(name_, mode_, bound_, setup_, finish_, ...)                                          \
    {                                                                                              \
        .name = name_, .mode = mode_, .bound = bound_, .setup = setup_, .threads = {__VA_ARGS__},  \
        .may_rest = MAY_REST, .finish = finish_,                                                   \
    }
#define ALL(name_, setup_, finish_, ...) MODEL(name_, EXPLORE_ALL, 0, setup_, finish_, __VA_ARGS__)
/* The same, and one load may be stale. */
#define WEAK(name_, setup_, finish_, ...)                                                          \
    {                                                                                              \
        .name = name_, .mode = EXPLORE_ALL, .stale = 1, .setup = setup_, .threads = {__VA_ARGS__}, \
        .may_rest = MAY_REST, .finish = finish_,                                                   \
    }
#define BOUNDED(name_, bound_, setup_, finish_, ...)                                               \
    MODEL(name_, EXPLORE_PREEMPTIONS, bound_, setup_, finish_, __VA_ARGS__)
#define RANDOM(name_, setup_, finish_, ...)                                                        \
    MODEL(name_, EXPLORE_RANDOM, 50000, setup_, finish_, __VA_ARGS__)

#endif
