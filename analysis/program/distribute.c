#include "program/distribute.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"

static size_t divide_up(size_t a, size_t b)
{
    return (a + b - 1) / b;
}

size_t ks_distribute_groups(size_t ranks, size_t probes, size_t minibatches)
{
    size_t best = 1, least = SIZE_MAX;

    for (size_t groups = 1; groups <= ranks && groups <= probes; groups++) {
        size_t smallest = ranks / groups;
        size_t time = divide_up(probes, groups) * divide_up(minibatches, smallest);

        if (time <= least) {
            least = time;
            best = groups;
        }
    }
    return best;
}

/* What the other ranks need before they can allocate. */
struct sizes {
    size_t in, ensemble, rows, loss_rows, targets;
    int64_t adam_step;
    struct ks_adam_constants adam_constants;
    bool state, adam, weight, targets_differ;
};

static struct sizes sizes_of(const struct ks_checkpoint *c)
{
    return (struct sizes){.in = c->critic.arch->in,
                          .ensemble = c->critic.ensemble,
                          .rows = c->rows,
                          .loss_rows = c->loss_rows,
                          .targets = c->critic.arch->loss.targets,
                          .targets_differ = c->targets_differ,
                          .adam_step = c->adam_step,
                          .adam_constants = c->adam,
                          .state = c->critic.state != NULL,
                          .adam = c->adam_v != NULL,
                          .weight = c->weight != NULL};
}

static size_t parameters(const struct ks_checkpoint *c)
{
    return ks_networks_parameters(&c->critic);
}

static size_t input_size(const struct ks_checkpoint *c)
{
    return c->rows * c->critic.arch->in;
}

static size_t target_size(const struct ks_checkpoint *c)
{
    return ks_checkpoint_target_size(c);
}

/* Allocates all but the description's text, which the rank has. The arrays of minibatches are one
 * longer than `own`: other ranks' minibatches are received there. */
static ks_status allocate(const struct sizes *s, size_t own, struct ks_checkpoint *c)
{
    struct ks_networks *critic = &c->critic;

    KS_TRY(ks_arch_parse_f64(critic->text, "/critic", s->in, &critic->arch));
    critic->ensemble = s->ensemble;
    critic->arch->loss.targets = s->targets;
    c->targets_differ = s->targets_differ;
    c->rows = s->rows;
    c->loss_rows = s->loss_rows;
    c->adam_step = s->adam_step;
    c->adam = s->adam_constants;
    KS_TRY(ks_alloc(parameters(c), sizeof *critic->w, &critic->w));
    if (critic->arch->frozen > 0)
        KS_TRY(
            ks_alloc(s->ensemble * critic->arch->frozen, sizeof *critic->frozen, &critic->frozen));
    if (s->state)
        KS_TRY(ks_alloc(s->ensemble * critic->arch->states, sizeof *critic->state, &critic->state));
    if (s->adam)
        KS_TRY(ks_alloc(parameters(c), sizeof *c->adam_v, &c->adam_v));
    if (s->weight)
        KS_TRY(ks_alloc((own + 1) * c->loss_rows, sizeof *c->weight, &c->weight));
    KS_TRY(ks_alloc((own + 1) * input_size(c), sizeof *c->input, &c->input));
    return ks_alloc((own + 1) * target_size(c), sizeof *c->target, &c->target);
}

static void send_array(const struct ks_team *world, size_t n, double *array)
{
    if (array)
        ks_team_broadcast(world, 0, n * sizeof *array, array);
}

/* The minibatches of this rank: numbers rank, rank + ranks, ..., `own` in all, by its rank in a
 * group of `ranks`. */
struct part {
    size_t rank, ranks, own;
};

/* Sends minibatch `number` of an array, of `size` numbers, from rank 0 to all ranks. A rank stores
 * its own ones in order, and the others in one slot behind them, where each replaces the one
 * before. Rank 0 has all minibatches and moves its own to the front. */
static void send_minibatch(const struct ks_team *world, const struct part *part, size_t number,
                           size_t size, double *array)
{
    bool mine = number % part->ranks == part->rank;
    size_t slot = mine ? number / part->ranks : part->own;
    double *minibatch = array + (world->rank == 0 ? number : slot) * size;

    send_array(world, size, minibatch);
    if (world->rank == 0 && mine)
        memmove(array + slot * size, minibatch, size * sizeof *array);
}

static ks_status receive(const struct ks_team *world, size_t own, struct ks_checkpoint **checkpoint)
{
    struct sizes sizes = {.in = 0};
    struct ks_checkpoint *c = *checkpoint;
    ks_status status = KS_OK;

    if (world->rank == 0)
        sizes = sizes_of(c);
    else
        status = ks_alloc(1, sizeof *c, checkpoint);
    KS_TRY(ks_team_agree(world, status));
    c = *checkpoint;
    ks_team_broadcast(world, 0, sizeof sizes, &sizes);
    KS_TRY(ks_team_broadcast_string(world, &c->critic.text));
    return ks_team_agree(world, world->rank == 0 ? KS_OK : allocate(&sizes, own, c));
}

ks_status ks_distribute_checkpoint(const struct ks_team *world, const struct ks_team *group,
                                   size_t minibatches, struct ks_checkpoint **checkpoint)
{
    struct part part = {.rank = (size_t)ks_team_rank(group), .ranks = (size_t)ks_team_size(group)};
    struct ks_checkpoint *c;

    if (ks_team_size(world) == 1)
        return KS_OK;
    part.own = part.rank < minibatches ? divide_up(minibatches - part.rank, part.ranks) : 0;
    KS_TRY(receive(world, part.own, checkpoint));
    c = *checkpoint;
    send_array(world, parameters(c), c->critic.w);
    send_array(world, c->critic.ensemble * c->critic.arch->frozen, c->critic.frozen);
    send_array(world, c->critic.ensemble * c->critic.arch->states, c->critic.state);
    send_array(world, parameters(c), c->adam_v);
    for (size_t i = 0; i < minibatches; i++) {
        send_minibatch(world, &part, i, input_size(c), c->input);
        send_minibatch(world, &part, i, target_size(c), c->target);
        if (c->weight)
            send_minibatch(world, &part, i, c->loss_rows, c->weight);
    }
    c->minibatches = part.own;
    return KS_OK;
}
