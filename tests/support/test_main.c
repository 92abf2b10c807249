/* SPDX-License-Identifier: MIT */
/* In a file of its own, so that programs with another main may use what calls test.h. */
#include "test.h"

int main(int argc, char **argv)
{
    return test_main(argc, argv);
}
