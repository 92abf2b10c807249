/* SPDX-License-Identifier: MIT */
/* Version 2 of two types. */
#define VERSION 2
#include "two_types.h"
