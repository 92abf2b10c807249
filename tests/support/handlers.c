/* SPDX-License-Identifier: MIT */
#include "handlers.h"

int complete_at_once(void *arg, skua_command *command, skua_payload *result)
{
    (void)arg;
    (void)command;
    (void)result;
    return 0;
}

int never_complete(void *arg, skua_command *command, skua_payload *result)
{
    (void)arg;
    (void)command;
    (void)result;
    return SKUA_PENDING;
}

int never_called(void *arg, skua_command *command, skua_payload *result)
{
    (void)arg;
    (void)command;
    (void)result;
    return SKUA_E_USER;
}

int return_at_once(skua_payload *input, skua_payload *result)
{
    (void)input;
    (void)result;
    return 0;
}
