/* SPDX-License-Identifier: MIT */
#include <skua/error.h>
#include <skua/version.h>

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
