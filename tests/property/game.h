/* SPDX-License-Identifier: MIT */
/* Random processes that call, watch, link and name each other and write to groups, and what must
 * hold for them whatever they do. A seed stands for a game of some players, in the simulator or on
 * threads.
 *
 *   game_players.c       the players: what they do, and what they see
 *   game_names.c         the same for names
 *   game_groups.c        the same for groups
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
#define NOBODY       PLAYERS_MAX /* in place of a player */
#define GAME_NAMES   4
#define GAME_GROUPS  3
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
    bool has_names;      /* players use names */
    bool has_groups;     /* and groups */
    uint32_t name_limit; /* 0: there is room for all */
    uint64_t moment_ns;
    uint64_t step_ns;
    skua_sim_faults faults;
};

/* Those up to YIELD_CALL_FOR are calls. */
enum yield_kind {
    YIELD_CALL,
    YIELD_CALL_NAME,
    YIELD_CALL_FOR,
    YIELD_MONITOR,
    YIELD_JOIN,
    YIELD_SPAWNED,
    YIELD_NAME,
    YIELD_PUBLISH,
};

/* A yield; the tag is its index. */
struct yield_note {
    enum yield_kind kind;
    uint32_t target; /* NOBODY: not known, or there is none */
    bool was_alive;  /* when it was asked for; only in the simulator one knows */
    bool is_cancelled;
    bool has_timeout;
    /* Of calls: written by the servers, one after the other. */
    atomic_u32 debtor;     /* who owes the answer, as far as it is known */
    atomic_u32 deliveries; /* to steps */
    atomic_u32 answers;
    atomic_u32 answered_by;
    atomic_u64 deadline; /* as the last server saw it */
    /* Of calls on behalf of a request: which yield of whom that is. */
    uint32_t parent_player;
    uint32_t parent_yield;
    uint32_t parent_request; /* of the player itself */
    /* Of waits for a name, and calls to one. */
    uint32_t name;
    uint32_t name_times;  /* that it had been given to somebody when the wait began */
    bool has_holder;      /* somebody had it then */
    bool is_beyond_limit; /* and there were many others */
    uint32_t publication; /* of a publish: which of the player's */
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
    bool selects; /* a task that does not receive in order of arrival */
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
    bool has_name[GAME_NAMES];
    uint32_t first_name;  /* on threads: it was started with this one, plus 1; 0: with none */
    atomic_u32 is_robbed; /* another has got a name that was its own */
};

extern struct game game;
extern struct player players[PLAYERS_MAX + 1]; /* the last stands for NOBODY */
extern atomic_u32 game_plans_over;             /* players at the end of their plans, or gone */

/* ---- game_players.c     ---- */

/* It is about to be started, with this name, if that is one. */
void player_expect_name(struct player *player, uint32_t name);
void player_prepare(uint32_t number, uint64_t *random);
skua_payload player_input(uint32_t number);
#define SLEEP_TAG UINT64_C(1000000)

/* The note of its next yield, and the payload of a call: whose yield it is. */
struct yield_note *player_new_yield(struct player *player, enum yield_kind kind, uint32_t target);
skua_payload player_call_payload(const struct player *player);

/* ---- game_names.c     ---- */

void game_names_begin(void);
const char *game_name_text(uint32_t name);

/* What players do. */
void game_name_register(struct player *player, skua_context *ctx, uint32_t target);
void game_name_unregister(struct player *player, skua_context *ctx, uint32_t target);
void game_name_find(struct player *player, skua_context *ctx, uint32_t target);
void game_name_send(struct player *player, skua_context *ctx, uint32_t target);
void game_name_call(struct player *player, skua_context *ctx, uint32_t target);
void game_name_await(struct player *player, skua_context *ctx, uint32_t target);

/* A player is about to be given a name; has got it; `player` could not give it. */
void game_name_try(struct player *player, uint32_t name);
void game_name_given(skua_context *ctx, const struct player *by, struct player *player,
                     uint32_t name);
void game_name_refused(skua_context *ctx, const struct player *player, uint32_t name, int error,
                       skua_pid holder);

/* What players see. The first says whether it was sent to a name. */
bool game_name_took_message(const struct player *player, const skua_event *event);
void game_name_took_call(const struct player *player, struct yield_note *yield);
void game_name_completion(const struct player *player, const struct yield_note *yield,
                          const skua_event *event);

/* That a name does not lead to one that has ended, or is about to. */
void game_name_check_free(skua_context *ctx, const struct player *player,
                          const struct player *ended, uint32_t name);

/* At the begin and the end of a step, whose yields count from `first` on; in close; and of a wait
 * that is still open when the game is at rest. */
void game_names_check_step(const struct player *player);
void game_names_end_step(struct player *player, skua_context *ctx, uint32_t first);
void game_names_close(struct player *player, skua_context *ctx);
void game_names_check_rest(const struct player *player, const struct yield_note *yield);

/* On threads: sees to it that every name has a holder. Returns whether all who wait for one have
 * heard of it, which must be so after a while. */
bool game_names_hear_all(skua_runtime *runtime);

/* ---- game_groups.c     ---- */

void game_groups_begin(void);
void game_groups_begin_step(void);

/* What players do. */
void game_group_join(struct player *player, skua_context *ctx, uint32_t target);
void game_group_leave(struct player *player, skua_context *ctx, uint32_t target);
void game_group_publish(struct player *player, skua_context *ctx, uint32_t target);
void game_group_list(struct player *player, skua_context *ctx, uint32_t target);

/* What they see. The first says whether it was published. */
bool game_group_took_message(struct player *player, const skua_event *event);
void game_group_completion(const struct player *player, const struct yield_note *yield,
                           const skua_event *event);

/* That one who has ended is in no group. */
void game_group_check_left(skua_context *ctx, const struct player *player,
                           const struct player *ended);
void game_groups_on_dead_letter(void *arg, const skua_dead_letter *letter);
void game_groups_check_ends(void);

/* ---- game_books.c     ---- */

/* Notes that a property does not hold. Any thread. */
void game_violated(const char *property, uint32_t player, uint64_t detail);
uint32_t game_violations(void);
void books_begin(void);

/* The player with this PID, or null. */
const struct player *books_player_of(skua_pid pid);

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
    HAPPENED_NAME,
    HAPPENED_NAME_TAKEN,
    HAPPENED_NAME_FOUND,
    HAPPENED_NAME_SENT,
    HAPPENED_NAME_AWAITED,
    HAPPENED_NAME_LIMIT,
    HAPPENED_GROUP_JOIN,
    HAPPENED_GROUP_MESSAGE,
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
void books_check_rest(skua_runtime *runtime);
void books_check_ends(void);
void books_on_exit(void *arg, skua_exit *exit);

#endif
