/* SPDX-License-Identifier: MIT */
/* Version 1 of the counter. */
#define VERSION 1
#include "counted.h"
