/* SPDX-License-Identifier: MIT */
/* Version 4 of the counter. */
#define VERSION 4
#include "counted.h"
