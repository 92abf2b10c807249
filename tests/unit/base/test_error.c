/* SPDX-License-Identifier: MIT */
/* Names, numbers and texts of errors, and the version. */
#include <limits.h>
#include <skua/error.h>
#include <skua/version.h>
#include <stdio.h>

#include "test.h"

/* Written out on purpose: programs are compiled with these numbers, so they must never change. */
static const struct {
    int error;
    const char *name;
} known[] = {
    {-5001, "SKUA_E_INVALID"},
    {-5002, "SKUA_E_NO_MEMORY"},
    {-5003, "SKUA_E_NO_PROCESS"},
    {-5004, "SKUA_E_FOREIGN_PID"},
    {-5005, "SKUA_E_PROCESS_LIMIT"},
    {-5006, "SKUA_E_MAILBOX_FULL"},
    {-5007, "SKUA_E_PAYLOAD_SIZE"},
    {-5008, "SKUA_E_UNKNOWN_METHOD"},
    {-5009, "SKUA_E_UNKNOWN_COMMAND"},
    {-5010, "SKUA_E_COMMAND_EXISTS"},
    {-5011, "SKUA_E_FROZEN"},
    {-5012, "SKUA_E_NOT_STARTED"},
    {-5013, "SKUA_E_STARTED"},
    {-5014, "SKUA_E_STOPPED"},
    {-5015, "SKUA_E_INSIDE_STEP"},
    {-5016, "SKUA_E_TIMEOUT"},
    {-5017, "SKUA_E_TERMINATED"},
    {-5018, "SKUA_E_LATE"},
    {-5019, "SKUA_E_THREAD"},
    {-5020, "SKUA_E_STUCK"},
    {-5021, "SKUA_E_BUSY"},
    {-5022, "SKUA_E_CANCELLED"},
    {-5023, "SKUA_E_DURATION"},
    {-5024, "SKUA_E_DESCRIPTOR"},
    {-5025, "SKUA_E_CLOSED"},
    {-5026, "SKUA_E_POLLER"},
    {-5027, "SKUA_E_UNKNOWN_POOL"},
    {-5028, "SKUA_E_POOL_EXISTS"},
    {-5029, "SKUA_E_POOL_FULL"},
    {-5030, "SKUA_E_NOT_SIMULATED"},
    {-5031, "SKUA_E_INJECTED"},
    {-5032, "SKUA_E_AT_REST"},
    {-5033, "SKUA_E_INSPECT"},
    {-5034, "SKUA_E_SIGNAL"},
    {-5035, "SKUA_E_DONE"},
    {-5036, "SKUA_E_CONTEXT"},
    {-5037, "SKUA_E_TAKEN"},
    {-5038, "SKUA_E_RESERVED"},
    {-5039, "SKUA_E_PAYLOAD_TYPE"},
    {-5040, "SKUA_E_NOT_SHARED"},
    {-5041, "SKUA_E_OWN_LIMIT"},
    {-5042, "SKUA_E_NAME"},
    {-5043, "SKUA_E_NAME_LENGTH"},
    {-5044, "SKUA_E_NAME_TAKEN"},
    {-5045, "SKUA_E_NAME_LIMIT"},
    {-5046, "SKUA_E_NOT_CALLABLE"},
    {-5047, "SKUA_E_PEER_ENDED"},
    {-5048, "SKUA_E_FORWARDED"},
    {-5049, "SKUA_E_NOT_TASK"},
    {-5050, "SKUA_E_STACK_LIMIT"},
    {-5051, "SKUA_E_SHADOW_STACK"},
    {-5052, "SKUA_E_SOCKET"},
    {-5053, "SKUA_E_SOCKET_BUSY"},
    {-5054, "SKUA_E_SOCKET_FULL"},
    {-5055, "SKUA_E_RESET"},
    {-5056, "SKUA_E_REFUSED"},
    {-5057, "SKUA_E_UNREACHABLE"},
    {-5058, "SKUA_E_ADDRESS"},
    {-5059, "SKUA_E_ADDRESS_IN_USE"},
    {-5060, "SKUA_E_PERMISSION"},
    {-5061, "SKUA_E_DESCRIPTORS"},
    {-5062, "SKUA_E_NETWORK"},
    {-5063, "SKUA_E_IDLE"},
    {-5064, "SKUA_E_NO_PROGRESS"},
    {-5065, "SKUA_E_TOO_LONG"},
    {-5066, "SKUA_E_SHUT_DOWN"},
    {-5067, "SKUA_E_RESTARTS"},
    {-5068, "SKUA_E_SPECIFICATION"},
    {-5069, "SKUA_E_NO_TEMPLATE"},
    {-5070, "SKUA_E_GROUP_LIMIT"},
    {-5071, "SKUA_E_NOT_MEMBER"},
    {-5072, "SKUA_E_OVERFLOW"},
    {-5073, "SKUA_E_NOT_URGENT"},
    {-5074, "SKUA_E_VERSION"},
    {-5076, "SKUA_E_MODULE"},
    {-5077, "SKUA_E_PROCESS_QUOTA"},
    {-5078, "SKUA_E_MESSAGE_QUOTA"},
    {-5079, "SKUA_E_MEMORY_QUOTA"},
};
#define KNOWN_COUNT COUNT_OF(known)

static const int not_skuas[] = {1, -1, -5000, SKUA_E_USER, SKUA_E_USER - 1, INT_MAX, INT_MIN};
#define NOT_SKUAS_COUNT COUNT_OF(not_skuas)

TEST(error_name_of_each_known_number_is_its_constant)
{
    for (size_t i = 0; i < KNOWN_COUNT; i++) {
        assert_string_equal(skua_error_name(known[i].error), known[i].name);
    }
}

TEST(error_map_has_no_error_beside_the_known_ones)
{
#define COUNT(name, value, text) +1
    assert_int_equal(SKUA_ERROR_MAP(COUNT), KNOWN_COUNT);
#undef COUNT
}

TEST(error_constants_are_above_the_users_range)
{
    for (size_t i = 0; i < KNOWN_COUNT; i++) {
        assert_true(known[i].error < 0);
        assert_true(known[i].error > SKUA_E_USER);
    }
}

TEST(error_text_is_one_sentence_without_full_stop)
{
    for (size_t i = 0; i < KNOWN_COUNT; i++) {
        const char *text = skua_error_text(known[i].error);
        assert_true(strlen(text) > 0);
        assert_null(strchr(text, '.'));
        assert_null(strchr(text, '\n'));
    }
}

TEST(error_text_differs_for_each_error)
{
    for (size_t i = 0; i < KNOWN_COUNT; i++) {
        for (size_t j = 0; j < i; j++) {
            assert_string_not_equal(skua_error_text(known[i].error),
                                    skua_error_text(known[j].error));
        }
    }
}

TEST(error_name_of_other_numbers_is_a_question_mark)
{
    for (size_t i = 0; i < NOT_SKUAS_COUNT; i++) {
        assert_string_equal(skua_error_name(not_skuas[i]), "SKUA_E_?");
        assert_string_equal(skua_error_text(not_skuas[i]), skua_error_text(not_skuas[0]));
        assert_string_not_equal(skua_error_text(not_skuas[i]), skua_error_text(0));
    }
}

TEST(error_zero_is_success)
{
    assert_string_equal(skua_error_name(0), "SKUA_OK");
    assert_string_equal(skua_error_text(0), "success");
}

TEST(version_is_that_of_the_headers)
{
    char expected[32];
    (void)snprintf(expected, sizeof expected, "%d.%d.%d", SKUA_VERSION_MAJOR, SKUA_VERSION_MINOR,
                   SKUA_VERSION_PATCH);
    assert_string_equal(skua_version(), expected);
}
