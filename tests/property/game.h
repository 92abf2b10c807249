/* SPDX-License-Identifier: MIT */
/* Random processes that call, watch and link each other, and what must hold for them whatever they
 * do. A seed stands for a game of some players, in the simulator or on threads.
 *
 *   game_players.c       the players: what they do, and what they see
 *   game_books.c         the books: what was asked and what came of it, and whether both agree
 *   property_relations.c  runs games
 *
 * Properties are numbered as in docs/testing.md. Books are kept by whoever acts; fields that others
 * read are atomic and relaxed, as in property.h. */
#ifndef SKUA_TESTS_PROPERTY_GAME_H
#define SKUA_TESTS_PROPERTY_GAME_H

#include <skua/sim.h>
#include <skua/skua.h>

#include "base/atomic.h"
#include "base/random.h"

#define PLAYERS_MAX  16
#define YIELDS_MAX   256 /* of one player */
#define LINKS_MAX    64
#define REQUESTS_MAX 512

/* Errors of steps that fail: the number of the player counts down from here. Reasons of cancels. */
#define GAME_FAILS   (SKUA_E_USER - 100)
#define GAME_CANCELS (SKUA_E_USER - 200)

struct game {
    uint64_t seed;
    bool is_simulated;
    bool trace;
    uint32_t players;
    uint32_t plan; /* rounds in which a player acts */
    uint32_t workers;
    uint64_t moment_ns;
    uint64_t step_ns;
    skua_sim_faults faults;
};

enum yield_kind { YIELD_CALL, YIELD_CALL_FOR, YIELD_MONITOR, YIELD_JOIN, YIELD_SPAWNED };

/* A yield; the tag is its index. */
struct yield_note {
    enum yield_kind kind;
    uint32_t target;
    bool was_alive; /* when it was asked for; only in the simulator one knows */
    bool is_cancelled;
    bool has_timeout;
    /* Of calls: written by the servers, one after the other. */
    atomic_u32 debtor;     /* who owes the answer */
    atomic_u32 deliveries; /* to steps */
    atomic_u32 answers;
    atomic_u32 answered_by;
    atomic_u64 deadline; /* as the last server saw it */
    /* Of calls on behalf of a request: which yield of whom that is. */
    uint32_t parent_player;
    uint32_t parent_yield;
    uint32_t parent_request; /* of the player itself */
    atomic_u32 ends;
};

struct link_note {
    uint32_t target;
    uint32_t flags;
    skua_link_id id;
    bool is_unlinked;
    uint32_t told;
};

/* A request that a player has got. */
struct request_note {
    skua_request token;
    uint32_t caller;
    uint32_t yield;
    bool is_settled; /* answered, forwarded, or known to be late */
    bool is_late;    /* the last: it may, or may not, still hear that nobody waits */
    uint32_t abandons;
};

struct player {
    uint32_t number;
    bool is_lingering; /* rests at the end of its plan */
    bool calls;
    bool abandons;
    skua_process_type type;
    atomic_u64 pid;
    atomic_u32 inits;
    atomic_u32 closes;
    atomic_u32 exits;
    atomic_u32 terminated; /* somebody was told that it is */
    atomic_u32 cancelled;
    atomic_u32 sent[PLAYERS_MAX];
    int exit_error; /* written in close */
    skua_pid exit_cause;
    bool is_done;
    bool has_failed;
    uint32_t received[PLAYERS_MAX];
    uint32_t rounds;
    bool sleeps;
    struct yield_note yields[YIELDS_MAX];
    uint32_t yield_count;
    struct link_note links[LINKS_MAX];
    uint32_t link_count;
    struct request_note requests[REQUESTS_MAX];
    uint32_t request_count;
};

extern struct game game;
extern struct player players[PLAYERS_MAX];
extern atomic_u32 game_plans_over; /* players at the end of their plans, or gone */

/* ---- game_players.c     ---- */

void player_prepare(uint32_t number, uint64_t *random);
skua_payload player_input(uint32_t number);
#define SLEEP_TAG UINT64_C(1000000)

/* ---- game_books.c     ---- */

/* Notes that a property does not hold. Any thread. */
void game_violated(const char *property, uint32_t player, uint64_t detail);
uint32_t game_violations(void);
void books_begin(void);

/* What has happened in all games: a property about nothing is worth nothing. */
enum happening {
    HAPPENED_ANSWER,
    HAPPENED_FORWARD,
    HAPPENED_CALL_FOR,
    HAPPENED_PEER_END,
    HAPPENED_CALL_TIMEOUT,
    HAPPENED_CALL_CANCEL,
    HAPPENED_ABANDON,
    HAPPENED_NOTICE,
    HAPPENED_EXIT_EVENT,
    HAPPENED_CASCADE,
    HAPPENINGS,
};
void books_happened(enum happening happening);

/* Prints how often; false if something never happened. */
bool books_cover_all(void);

/* The player, in its step, has got the notice that another has ended with this error. */
void books_heard(skua_context *ctx, struct player *player, uint32_t ended, int error);

void books_completion(skua_context *ctx, struct player *player, const skua_event *event);
void books_exit_event(skua_context *ctx, struct player *player, const skua_event *event);
void books_request(skua_context *ctx, struct player *player, const skua_event *event);
void books_abandon(struct player *player, const skua_event *event);

/* In the simulator, when nothing moves any more; and when all have ended. */
void books_check_rest(void);
void books_check_ends(void);
void books_on_exit(void *arg, skua_exit *exit);

#endif
