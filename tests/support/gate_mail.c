/* SPDX-License-Identifier: MIT */
#include "gate_mail.h"

#include "test.h"

/* The number of a letter: {sender:8 | urgent:1 | number:16}. */
static uint64_t letter_number(uint32_t sender, bool is_urgent, uint32_t number)
{
    return (uint64_t)sender << 17 | (uint64_t)is_urgent << 16 | number;
}

static int sender_init(void *self, skua_context *ctx, skua_payload *input, size_t count)
{
    (void)ctx;
    (void)count;
    *(struct letter_sender **)self = input[0].as.owned.data;
    return 0;
}

static void send_letter(struct letter_sender *sender, skua_context *ctx, bool is_urgent)
{
    const uint32_t number = sender->sent[is_urgent]++;
    const uint64_t value = letter_number(sender->number, is_urgent, number);
    const skua_pid to = sender->gate->pid;
    const int error = is_urgent ? skua_send_urgent(ctx, to, skua_payload_u64(GATE_PASS, value))
                                : skua_send(ctx, to, skua_payload_u64(GATE_LETTER, value));
    sender->was_accepted[is_urgent][number] = error == 0;
}

static int sender_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    struct letter_sender *sender = *(struct letter_sender **)self;
    (void)events;
    (void)count;
    for (uint64_t left = skua_random(ctx) % 12; left > 0; left--) {
        const bool is_urgent = skua_random(ctx) % 4 == 0;
        if (sender->sent[is_urgent] < LETTERS_EACH) {
            send_letter(sender, ctx, is_urgent);
        }
    }
    const uint64_t choice = skua_random(ctx) % 8;
    if (choice < 3) {
        static const uint32_t orders[] = {GATE_SHUT, GATE_OPEN_ONCE, GATE_OPEN};
        const skua_payload order = skua_payload_empty(orders[choice]);
        (void)(skua_random(ctx) % 2 == 0 ? skua_send(ctx, sender->gate->pid, order)
                                         : skua_send_urgent(ctx, sender->gate->pid, order));
    }
    return sender->sent[0] == LETTERS_EACH ? skua_done(ctx, skua_nothing()) : skua_continue(ctx);
}

static const skua_process_type sender_type = {.name = "sender",
                                              .state_size = sizeof(struct letter_sender *),
                                              .init = sender_init,
                                              .step = sender_step};

struct gate_mail *gate_mail_start(struct gate *gate)
{
    struct gate_mail *mail = test_alloc(sizeof *mail);
    mail->gate = gate;
    for (uint32_t i = 0; i < LETTER_SENDERS; i++) {
        mail->senders[i] = (struct letter_sender){.gate = gate, .number = i};
        const skua_payload sender = skua_payload_pointer(0, &mail->senders[i], NULL);
        assert_int_equal(skua_process_submit(world_runtime(), &sender_type, sender, NULL), 0);
    }
    return mail;
}

uint32_t gate_mail_accepted(const struct gate_mail *mail)
{
    uint32_t accepted = 0;
    for (size_t sender = 0; sender < LETTER_SENDERS; sender++) {
        for (size_t i = 0; i < LETTERS_EACH; i++) {
            accepted += mail->senders[sender].was_accepted[0][i];
            accepted += mail->senders[sender].was_accepted[1][i];
        }
    }
    return accepted;
}

void gate_mail_check(const struct gate_mail *mail, bool lives)
{
    const struct gate *gate = mail->gate;
    uint64_t next[LETTER_SENDERS][2] = {{0}};
    assert_true(gate->passed_count <= COUNT_OF(gate->passed));
    for (size_t i = 0; i < gate->passed_count; i++) {
        const uint32_t number = (uint32_t)(gate->passed[i] & 0xffff);
        const bool is_urgent = (gate->passed[i] >> 16 & 1) != 0;
        const uint64_t sender = gate->passed[i] >> 17;
        assert_in_range(sender, 0, LETTER_SENDERS - 1);
        assert_true(mail->senders[sender].was_accepted[is_urgent][number]);
        assert_true(number >= next[sender][is_urgent]);
        next[sender][is_urgent] = number + 1;
    }
    if (lives) {
        assert_int_equal(gate->passed_count, gate_mail_accepted(mail));
    }
}
