/* SPDX-License-Identifier: MIT */
/* Payloads of all forms. Each carries a letter that says what it belongs to. Some are parcels:
 * memory of this file that counts how often it is dropped, and is never used again. */
#include <string.h>

#include "property.h"

#define LETTER_TYPE 7

/* Too long to lie inside a payload. */
struct long_letter {
    struct letter letter;
    unsigned char rest[40];
};

struct parcel {
    struct long_letter text;
    atomic_u32 drops;
};

static struct parcel parcels[PARCELS_MAX];
static atomic_u32 parcel_count;

void letters_begin(void)
{
    store_relaxed(&parcel_count, 0);
}

static uint64_t check_of(enum letter_kind kind, uint32_t number)
{
    const uint64_t name = (uint64_t)kind << 32 | number;
    return random_mix(world.program.seed ^ random_mix(name));
}

static void drop_parcel(void *data, size_t size)
{
    struct parcel *parcel = data;
    const struct letter *letter = &parcel->text.letter;
    if (fetch_add_relaxed(&parcel->drops, 1) > 0) {
        fault("a payload of kind %u, number %u, is dropped again", letter->kind, letter->number);
        return;
    }
    if (size != 0 && size != sizeof parcel->text) {
        fault("a payload is dropped with size %zu", size);
    }
    if (letter->kind == LETTER_MESSAGE) {
        message_dropped(letter->number);
    }
    parcel->text.letter.check = 0; /* whoever reads it now finds no letter */
}

static struct parcel *take_parcel(const struct letter *letter)
{
    const uint32_t number = fetch_add_relaxed(&parcel_count, 1);
    if (number >= PARCELS_MAX) {
        return NULL;
    }
    struct parcel *parcel = &parcels[number];
    parcel->text = (struct long_letter){.letter = *letter};
    store_relaxed(&parcel->drops, 0);
    return parcel;
}

static bool lacks_memory(int error)
{
    return error == SKUA_E_NO_MEMORY && world.program.faults.no_memory > 0;
}

static skua_payload copy(const void *data, size_t size)
{
    skua_payload payload;
    const int error = skua_payload_copy(world.runtime, LETTER_TYPE, data, size, &payload);
    if (lacks_memory(error)) {
        return copy(data, sizeof(struct letter)); /* so much always fits inside */
    }
    if (error != 0) {
        fault("copying a payload: %s", skua_error_name(error));
    }
    return payload;
}

/* With a second owner for a moment: whichever is dropped first, the other has it all. */
static skua_payload share(const struct long_letter *text, bool keeps_second)
{
    skua_payload first;
    skua_payload second;
    const int error = skua_payload_shared(world.runtime, LETTER_TYPE, text, sizeof *text, &first);
    if (lacks_memory(error)) {
        return copy(text, sizeof text->letter);
    }
    const int ref_error = skua_payload_ref(&first, &second);
    if (error != 0 || ref_error != 0) {
        fault("sharing a payload: %s, %s", skua_error_name(error), skua_error_name(ref_error));
    }
    skua_payload_drop(keeps_second ? &first : &second);
    return keeps_second ? second : first;
}

static struct long_letter write_letter(enum letter_kind kind, uint32_t number, uint64_t *random)
{
    return (struct long_letter){.letter = {.kind = kind,
                                           .number = number,
                                           .check = check_of(kind, number),
                                           .noise = random_next(random)}};
}

skua_payload letter_wrap(enum letter_kind kind, uint32_t number, uint64_t *random)
{
    const struct long_letter text = write_letter(kind, number, random);
    const uint32_t form = draw(random, 9);
    if (form == 0) {
        return copy(&text, sizeof text);
    }
    if (form == 1 || form == 2) {
        return share(&text, form == 2);
    }
    struct parcel *parcel = form <= 6 ? take_parcel(&text.letter) : NULL;
    if (parcel == NULL) {
        return copy(&text, sizeof text.letter);
    }
    if (form == 3) {
        store_relaxed(&parcel->drops, 1); /* nobody drops it */
        return skua_payload_static(LETTER_TYPE, &parcel->text, sizeof parcel->text);
    }
    return form == 4 ? skua_payload_pointer(LETTER_TYPE, parcel, drop_parcel)
                     : skua_payload_owned(LETTER_TYPE, parcel, sizeof parcel->text, drop_parcel);
}

skua_payload letter_alloc(skua_context *ctx, enum letter_kind kind, uint32_t number,
                          uint64_t *random)
{
    const struct long_letter text = write_letter(kind, number, random);
    const size_t size = chance(random, 50) ? sizeof text : sizeof text.letter;
    skua_payload payload;
    void *data;
    const int error = skua_payload_alloc(ctx, LETTER_TYPE, size, &data, &payload);
    if (lacks_memory(error)) {
        return copy(&text, sizeof text.letter);
    }
    if (error != 0) {
        fault("allocating a payload: %s", skua_error_name(error));
        return payload;
    }
    memcpy(data, &text, size);
    return payload;
}

static void drop_nothing(void *data, size_t size)
{
    (void)data;
    (void)size;
}

skua_payload letter_too_large(uint64_t *random)
{
    static unsigned char bytes[PAYLOAD_LIMIT + 64];
    const size_t size = PAYLOAD_LIMIT + 1 + draw(random, 64);
    return skua_payload_owned(LETTER_TYPE, bytes, size, drop_nothing);
}

bool letter_read(const skua_payload *payload, enum letter_kind kind, struct letter *letter)
{
    const void *data = skua_payload_data(payload);
    if (data == NULL) {
        return false;
    }
    memcpy(letter, data, sizeof *letter);
    const bool is_whole = payload->type == LETTER_TYPE && letter->kind == kind &&
                          letter->check == check_of(kind, letter->number);
    if (!is_whole) {
        fault("a payload of kind %d is not what it was: kind %u, number %u", (int)kind,
              letter->kind, letter->number);
    }
    return is_whole;
}

void letters_check(void)
{
    const uint32_t taken = load_relaxed(&parcel_count);
    for (uint32_t i = 0; i < taken && i < PARCELS_MAX; i++) {
        const struct letter *letter = &parcels[i].text.letter;
        if (load_relaxed(&parcels[i].drops) == 0) {
            fault("a payload of kind %u, number %u, was never dropped", letter->kind,
                  letter->number);
        }
    }
}
