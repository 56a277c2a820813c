#include "operators/ranks.h"

#include <string.h>

#include "core/memory.h"
#include "operators/team.h"

size_t ks_ranks_count(const struct ks_problem *q)
{
    return (size_t)ks_team_size(q->team);
}

size_t ks_ranks_number(const struct ks_problem *q)
{
    return (size_t)ks_team_rank(q->team);
}

ks_status ks_ranks_agree(const struct ks_problem *q, ks_status status)
{
    return ks_team_agree(q->team, status);
}

ks_status ks_ranks_copy(const struct ks_problem *q, size_t bytes, void *data)
{
    return ks_team_broadcast(q->team, bytes, data);
}

ks_status ks_ranks_sum(const struct ks_problem *q, size_t n, double *values)
{
    return ks_team_sum(q->team, n, values);
}

/* --- the checkpoint --- */

/* What the other ranks need before they can allocate: the numbers of the checkpoint, without what
 * it owns, and which arrays it has. */
struct header {
    struct ks_checkpoint numbers;
    size_t text, in, targets; /* text: its bytes */
    bool exists[KS_CHECKPOINT_ARRAYS];
};

static void fill_header(struct ks_checkpoint *c, struct header *h)
{
    struct ks_checkpoint_array list[KS_CHECKPOINT_ARRAYS];

    *h = (struct header){{.critic.ensemble = c->critic.ensemble,
                          .rows = c->rows,
                          .loss_rows = c->loss_rows,
                          .targets_differ = c->targets_differ,
                          .adam_step = c->adam_step,
                          .adam = c->adam},
                         .text = strlen(c->critic.text) + 1,
                         .in = c->critic.arch->in,
                         .targets = c->critic.arch->loss.targets};
    ks_checkpoint_arrays(c, list);
    for (size_t k = 0; k < KS_CHECKPOINT_ARRAYS; k++)
        h->exists[k] = *list[k].at != NULL;
}

/* Gives the ranks other than 0 a checkpoint with room for `own` minibatches and one more: other
 * ranks' minibatches are received there. */
static ks_status make_room(struct ks_team *team, size_t own, struct ks_checkpoint **checkpoint)
{
    struct ks_checkpoint_array list[KS_CHECKPOINT_ARRAYS];
    struct ks_checkpoint *c;
    struct header h = {.in = 0};

    if (team->rank == 0)
        fill_header(*checkpoint, &h);
    else
        KS_TRY(ks_alloc(1, sizeof **checkpoint, checkpoint));
    KS_TRY(ks_team_broadcast(team, sizeof h, &h));
    c = *checkpoint;
    if (team->rank > 0) {
        *c = h.numbers;
        KS_TRY(ks_alloc(h.text, 1, &c->critic.text));
    }
    KS_TRY(ks_team_broadcast(team, h.text, c->critic.text));
    if (team->rank == 0)
        return KS_OK;
    KS_TRY(ks_arch_parse_f64(c->critic.text, "/critic", h.in, &c->critic.arch));
    c->critic.arch->loss.targets = h.targets;
    ks_checkpoint_arrays(c, list);
    for (size_t k = 0; k < KS_CHECKPOINT_ARRAYS; k++)
        if (h.exists[k])
            KS_TRY(ks_alloc((list[k].of_minibatches ? own + 1 : 1) * list[k].size, sizeof(double),
                            list[k].at));
    return KS_OK;
}

/* Sends minibatch `number` of an array, of `size` numbers, from rank 0 to all ranks. A rank stores
 * its `own` ones in order, and the others in one slot behind them, where each replaces the one
 * before. Rank 0 has all minibatches and moves its own to the front. */
static ks_status send_minibatch(struct ks_team *team, size_t own, size_t number, size_t size,
                                double *array)
{
    const size_t ranks = (size_t)team->size;
    const bool mine = number % ranks == (size_t)team->rank;
    const size_t slot = mine ? number / ranks : own;
    double *minibatch = array + (team->rank == 0 ? number : slot) * size;

    KS_TRY(ks_team_broadcast(team, size * sizeof *minibatch, minibatch));
    if (team->rank == 0 && mine)
        memmove(array + slot * size, minibatch, size * sizeof *array);
    return KS_OK;
}

ks_status ks_ranks_distribute(struct ks_problem *q, size_t minibatches,
                              struct ks_checkpoint **checkpoint)
{
    const size_t ranks = ks_ranks_count(q), rank = ks_ranks_number(q);
    struct ks_checkpoint_array list[KS_CHECKPOINT_ARRAYS];

    q->minibatches = rank < minibatches ? (minibatches - rank - 1) / ranks + 1 : 0;
    q->other_minibatches = minibatches - q->minibatches;
    q->omits_decay = rank > 0;
    if (ranks == 1)
        return KS_OK;
    KS_TRY(make_room(q->team, q->minibatches, checkpoint));
    ks_checkpoint_arrays(*checkpoint, list);
    for (const struct ks_checkpoint_array *a = list; a < list + KS_CHECKPOINT_ARRAYS; a++)
        if (*a->at && !a->of_minibatches)
            KS_TRY(ks_team_broadcast(q->team, a->size * sizeof(double), *a->at));
        else if (*a->at)
            for (size_t i = 0; i < minibatches; i++)
                KS_TRY(send_minibatch(q->team, q->minibatches, i, a->size, *a->at));
    (*checkpoint)->minibatches = q->minibatches;
    return KS_OK;
}
