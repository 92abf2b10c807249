/* SPDX-License-Identifier: MIT */
/* Version 5 of the counter, for new processes only. */
#define VERSION 5
#include "counted.h"
