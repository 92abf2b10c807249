/* SPDX-License-Identifier: MIT */
/* Version 1 of two types. */
#define VERSION 1
#include "two_types.h"
