/* SPDX-License-Identifier: MIT */
/* Processes that send a gate mail, ordinary and urgent ones, and open and shut it, as their
 * random numbers say; and what must hold of what the gate has let through:
 *  - the ordinary letters of a sender come in order, and so do its urgent ones;
 *  - each that was accepted comes once, and none that was refused, if the gate lives. */
#ifndef SKUA_TESTS_GATE_MAIL_H
#define SKUA_TESTS_GATE_MAIL_H

#include "gate.h"

#define LETTER_SENDERS 3
#define LETTERS_EACH   60

struct letter_sender {
    struct gate *gate;
    uint32_t number;
    uint32_t sent[2]; /* ordinary and urgent ones */
    bool was_accepted[2][LETTERS_EACH];
};

struct gate_mail {
    struct gate *gate;
    struct letter_sender senders[LETTER_SENDERS];
};

/* Starts the senders of a gate that was started. Only for gates of up to LETTERS_EACH times
 * LETTER_SENDERS letters of each kind. */
struct gate_mail *gate_mail_start(struct gate *gate);

/* How many were accepted, once the senders have ended. */
uint32_t gate_mail_accepted(const struct gate_mail *mail);

/* Checks the above, once the senders have ended. `lives`: so does the gate, and it is open. */
void gate_mail_check(const struct gate_mail *mail, bool lives);

#endif
