/* SPDX-License-Identifier: MIT */
/* A shared object that is no module. */
int bare_function(void);

int bare_function(void)
{
    return 0;
}
