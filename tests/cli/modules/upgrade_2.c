/* SPDX-License-Identifier: MIT */
/* Version 2 of the counter. */
#define VERSION 2
#include "counted.h"
