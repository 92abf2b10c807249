/* SPDX-License-Identifier: MIT */
#include <skua/error.h>
#include <skua/version.h>

#include "base/os_error.h"

#define STRING(x)    STRING_OF(x)
#define STRING_OF(x) #x

const char *skua_version(void)
{
    return STRING(SKUA_VERSION_MAJOR) "." STRING(SKUA_VERSION_MINOR) "." STRING(SKUA_VERSION_PATCH);
}

const char *skua_error_name(int error)
{
    switch (error) {
#define NAME(name, value, text)                                                                    \
    case value:                                                                                    \
        return "SKUA_E_" #name;
        SKUA_ERROR_MAP(NAME)
#undef NAME
    case 0:
        return "SKUA_OK";
    default:
        return "SKUA_E_?";
    }
}

const char *skua_error_text(int error)
{
    switch (error) {
#define TEXT(name, value, text)                                                                    \
    case value:                                                                                    \
        return text;
        SKUA_ERROR_MAP(TEXT)
#undef TEXT
    case 0:
        return "success";
    default:
        return "an error that is not Skua's own";
    }
}

static _Thread_local int last_os_error;

int os_error_keep(int system_error, int error)
{
    last_os_error = system_error;
    return error;
}

int skua_error_os(void)
{
    return last_os_error;
}
