/* SPDX-License-Identifier: MIT */
/* PIDs as text: 16 hexadecimal digits. By hand, because a crash report writes them in a signal
 * handler. */
#include <skua/error.h>
#include <skua/types.h>

#define DIGITS (SKUA_PID_TEXT_SIZE - 1)

const char *skua_pid_format(skua_pid pid, char *text)
{
    for (int i = 0; i < DIGITS; i++) {
        text[i] = "0123456789abcdef"[pid.bits >> (4 * (DIGITS - 1 - i)) & 15];
    }
    text[DIGITS] = '\0';
    return text;
}

/* The value of a hexadecimal digit, or -1. */
static int digit_value(char digit)
{
    if (digit >= '0' && digit <= '9') {
        return digit - '0';
    }
    const char lower = (char)(digit | 32);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

int skua_pid_parse(const char *text, skua_pid *pid)
{
    if (pid == NULL) {
        return SKUA_E_INVALID;
    }
    *pid = (skua_pid){0};
    if (text == NULL) {
        return SKUA_E_INVALID;
    }
    uint64_t bits = 0;
    int count = 0;
    for (; text[count] != '\0'; count++) {
        const int value = digit_value(text[count]);
        if (value < 0 || count == DIGITS) {
            return SKUA_E_INVALID;
        }
        bits = bits << 4 | (uint64_t)value;
    }
    if (count == 0) {
        return SKUA_E_INVALID;
    }
    *pid = (skua_pid){bits};
    return 0;
}
