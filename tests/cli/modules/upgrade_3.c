/* SPDX-License-Identifier: MIT */
/* Version 3 of the counter, which cannot take over the state of others. */
#define VERSION 3
#include "counted.h"
