/* SPDX-License-Identifier: MIT */
#include "abi.h"

int main(void)
{
    skua_sim_record *record = ABI_FENCED(skua_sim_record, 1);
    memset(record, 0, sizeof *record);
    record->type = SKUA_SIM_STEP;
    record->type_name = "talker";
    char text[200];
    CHECK_TAIL_REFUSED(record, skua_sim_record_format(record, text, sizeof text));
    const int length = skua_sim_record_format(record, text, sizeof text);
    CHECK(length > 0 && (size_t)length == strlen(text) && strstr(text, "talker") != NULL);
    return 0;
}
