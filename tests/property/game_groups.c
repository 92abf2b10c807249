/* SPDX-License-Identifier: MIT */
/* Groups in games. Whatever is published reaches each member once and in order, or is counted as
 * refused, or is reported as a dead letter because the member ended first. */
#include "game.h"

#define PUBLICATIONS_MAX 64
#define GROUP_PAYLOAD    2000 /* and the number of who published it: the type of the payload */

/* Of one player, in the order in which it published them. */
struct publication {
    uint32_t group;
    uint32_t moment; /* in the simulator: of the step that asked for it */
    bool is_known;   /* it is over, and this was said of it: */
    uint64_t accepted;
    atomic_u32 received;
    atomic_u32 dead;
};

/* What a player knows of groups; its own, but for the last. */
struct membership {
    uint32_t joins[GAME_GROUPS];
    bool has_joined[GAME_GROUPS];    /* at some time */
    uint32_t left_at[GAME_GROUPS];   /* in the simulator: a moment */
    uint32_t last_from[PLAYERS_MAX]; /* the number of the last publication of each, plus 1 */
    uint32_t count;                  /* of publications */
    struct publication publications[PUBLICATIONS_MAX];
};

static struct membership memberships[PLAYERS_MAX];

/* Steps so far. Only in the simulator. */
static uint32_t moment;

static const char *const group_names[GAME_GROUPS] = {"reds", "greens", "blues"};

static struct membership *membership_of(const struct player *player)
{
    return &memberships[player->number];
}

void game_groups_begin(void)
{
    moment = 0;
    for (uint32_t i = 0; i < PLAYERS_MAX; i++) {
        memberships[i] = (struct membership){0};
    }
}

void game_groups_begin_step(void)
{
    if (game.is_simulated) {
        moment++;
    }
}

static bool may_lack_memory(int error)
{
    return error == SKUA_E_NO_MEMORY && game.faults.no_memory > 0;
}

/* ---- what players do ---- */

void game_group_join(struct player *player, skua_context *ctx, uint32_t target)
{
    const uint32_t group = target % GAME_GROUPS;
    struct membership *own = membership_of(player);
    const int error = skua_group_join(ctx, group_names[group]);
    if (error == 0) {
        own->joins[group]++;
        own->has_joined[group] = true;
        books_happened(HAPPENED_GROUP_JOIN);
    } else if (!may_lack_memory(error)) {
        game_violated("37: a process can join a group", player->number, (uint64_t)-error);
    }
}

void game_group_leave(struct player *player, skua_context *ctx, uint32_t target)
{
    const uint32_t group = target % GAME_GROUPS;
    struct membership *own = membership_of(player);
    const int error = skua_group_leave(ctx, group_names[group]);
    if (error != (own->joins[group] > 0 ? 0 : SKUA_E_NOT_MEMBER)) {
        game_violated("37: a member can leave, and nobody else", player->number, (uint64_t)-error);
    }
    if (error == 0) {
        own->joins[group]--;
        own->left_at[group] = moment;
    }
}

void game_group_publish(struct player *player, skua_context *ctx, uint32_t target)
{
    struct membership *own = membership_of(player);
    if (own->count == PUBLICATIONS_MAX) {
        return;
    }
    struct publication *publication = &own->publications[own->count];
    publication->group = target % GAME_GROUPS;
    publication->moment = moment;
    struct yield_note *yield = player_new_yield(player, YIELD_PUBLISH, NOBODY);
    yield->publication = own->count;
    const skua_payload payload = skua_payload_u64(GROUP_PAYLOAD + player->number, own->count);
    const int error =
        skua_yield_publish(ctx, player->yield_count, group_names[publication->group], payload);
    if (error == 0) {
        player->yield_count++;
        own->count++;
    } else if (!may_lack_memory(error)) {
        game_violated("37: a process can publish", player->number, (uint64_t)-error);
    }
}

/* In the simulator nobody else runs meanwhile. */
static void check_member(const struct player *player, uint32_t group, skua_pid pid)
{
    const struct player *member = books_player_of(pid);
    if (member == NULL ||
        (game.is_simulated && (membership_of(member)->joins[group] == 0 ||
                               load_relaxed(&member->closes) > 0))) { /* one thread */
        game_violated("37: who is listed is a member", player->number, group);
    }
}

void game_group_list(struct player *player, skua_context *ctx, uint32_t target)
{
    const uint32_t group = target % GAME_GROUPS;
    skua_pid pids[PLAYERS_MAX];
    uint32_t selves = 0;
    const int count =
        skua_group_members(skua_runtime_of(ctx), group_names[group], pids, PLAYERS_MAX);
    for (int i = 0; i < count && i < PLAYERS_MAX; i++) {
        check_member(player, group, pids[i]);
        selves += skua_pid_equal(pids[i], skua_self(ctx));
    }
    if (count < 0 || selves != (membership_of(player)->joins[group] > 0)) {
        game_violated("37: a member is listed once", player->number, group);
    }
}

/* ---- what they see ---- */

static struct publication *publication_of(const skua_payload *payload)
{
    const uint32_t from = payload->type - GROUP_PAYLOAD;
    const uint64_t number = skua_payload_to_u64(payload);
    if (payload->type < GROUP_PAYLOAD || from >= PLAYERS_MAX || number >= PUBLICATIONS_MAX) {
        return NULL;
    }
    return &memberships[from].publications[number];
}

static void check_publication(struct player *player, const struct publication *publication)
{
    const struct membership *own = membership_of(player);
    const uint32_t group = publication->group;
    if (!own->has_joined[group] || (game.is_simulated && own->joins[group] == 0 &&
                                    own->left_at[group] < publication->moment)) {
        game_violated("37: only members get what is published", player->number, group);
    }
}

bool game_group_took_message(struct player *player, const skua_event *event)
{
    struct publication *publication = publication_of(&event->payload);
    if (publication == NULL) {
        return false;
    }
    const uint32_t from = event->payload.type - GROUP_PAYLOAD;
    const uint32_t number = (uint32_t)skua_payload_to_u64(&event->payload);
    uint32_t *last = &membership_of(player)->last_from[from];
    check_publication(player, publication);
    if (number + 1 <= *last && !player->selects) {
        game_violated("37: what is published comes once and in order", player->number, from);
    }
    *last = number + 1;
    (void)fetch_add_relaxed(&publication->received, 1); /* counter */
    books_happened(HAPPENED_GROUP_MESSAGE);
    return true;
}

void game_group_completion(const struct player *player, const struct yield_note *yield,
                           const skua_event *event)
{
    struct publication *publication = &membership_of(player)->publications[yield->publication];
    const skua_published published = skua_published_get(&event->payload);
    if (event->error == 0) {
        publication->is_known = true;
        publication->accepted = published.accepted;
        if (published.accepted + published.refused > game.players) {
            game_violated("37: there are not that many members", player->number, event->tag);
        }
    } else if (!(event->error == SKUA_E_CANCELLED && yield->is_cancelled) &&
               !may_lack_memory(event->error)) {
        game_violated("37: publishing ends well", player->number, event->tag);
    }
}

void game_group_check_left(skua_context *ctx, const struct player *player,
                           const struct player *ended)
{
    skua_pid pids[PLAYERS_MAX];
    for (uint32_t group = 0; group < GAME_GROUPS; group++) {
        const int count =
            skua_group_members(skua_runtime_of(ctx), group_names[group], pids, PLAYERS_MAX);
        for (int i = 0; i < count && i < PLAYERS_MAX; i++) {
            if (pids[i].bits == load_relaxed(&ended->pid)) { /* does not change */
                game_violated("37: who has ended is in no group", player->number, ended->number);
            }
        }
    }
}

void game_groups_on_dead_letter(void *arg, const skua_dead_letter *letter)
{
    struct publication *publication = publication_of(letter->payload);
    (void)arg;
    if (publication != NULL) {
        (void)fetch_add_relaxed(&publication->dead, 1); /* counter */
    }
}

/* ---- the end ---- */

void game_groups_check_ends(void)
{
    for (uint32_t i = 0; i < game.players; i++) {
        for (uint32_t n = 0; n < memberships[i].count; n++) {
            struct publication *publication = &memberships[i].publications[n];
            const uint32_t ends = load_relaxed(&publication->received) + /* all is over */
                                  load_relaxed(&publication->dead);
            if (publication->is_known ? ends != publication->accepted : ends > game.players) {
                game_violated("37: who has accepted a publication gets it, or it is reported", i,
                              n);
            }
        }
    }
}
