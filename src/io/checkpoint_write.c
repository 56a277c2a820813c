/* Writing a checkpoint: the file appears complete or not at all. */
#include "io/checkpoint.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "io/h5.h"
#include "io/networks.h"

/* Writes targets [N, B, T], or [N, E, B, T] as [N, B, E, T]. */
static ks_status write_target(struct ks_h5 *h5, const struct ks_checkpoint *c, const char *object,
                              enum ks_h5_type type, const double *target)
{
    size_t k = c->critic.arch->loss.targets, ensemble = c->critic.ensemble, rows = c->loss_rows;
    struct ks_h5_shape shape = {3, {c->minibatches, rows, k}};
    double *sorted = NULL;
    ks_status status;

    if (!c->targets_differ)
        return ks_h5_write_finite(h5, object, type, &shape, target);
    shape = (struct ks_h5_shape){4, {c->minibatches, rows, ensemble, k}};
    KS_TRY(ks_alloc(c->minibatches * ks_checkpoint_target_size(c), sizeof *sorted, &sorted));
    for (size_t n = 0; n < c->minibatches; n++)
        for (size_t e = 0; e < ensemble; e++)
            for (size_t i = 0; i < rows; i++)
                memcpy(sorted + ((n * rows + i) * ensemble + e) * k,
                       target + ((n * ensemble + e) * rows + i) * k, k * sizeof *sorted);
    status = ks_h5_write_finite(h5, object, type, &shape, sorted);
    free(sorted);
    return status;
}

static ks_status write_batch(struct ks_h5 *h5, const struct ks_checkpoint *c, bool single)
{
    enum ks_h5_type type = single ? KS_H5_F32 : KS_H5_F64;
    struct ks_h5_shape input = {3, {c->minibatches, c->rows, c->critic.arch->in}};

    struct ks_h5_shape weight = {2, {c->minibatches, c->loss_rows}};

    KS_TRY(ks_h5_group(h5, "/batch"));
    KS_TRY(ks_h5_write_finite(h5, "/batch/input", type, &input, c->input));
    KS_TRY(write_target(h5, c, "/batch/target", type, c->target));
    if (c->weight)
        KS_TRY(ks_h5_write_finite(h5, "/batch/weight", type, &weight, c->weight));
    if (c->target_raw)
        KS_TRY(write_target(h5, c, "/batch/target_raw", type, c->target_raw));
    return ks_references_write(h5, c);
}

static ks_status write_optimizer(struct ks_h5 *h5, const struct ks_checkpoint *c, bool single)
{
    if (!c->adam_m && !c->adam_v)
        return KS_OK;
    KS_TRY(ks_h5_group(h5, "/optimizer"));
    KS_TRY(ks_h5_write_integer(h5, "/optimizer", "step", c->adam_step));
    KS_TRY(ks_h5_write_number(h5, "/optimizer", "beta1", c->adam.beta1));
    KS_TRY(ks_h5_write_number(h5, "/optimizer", "beta2", c->adam.beta2));
    KS_TRY(ks_h5_write_number(h5, "/optimizer", "eps", c->adam.eps));
    if (c->adam_m)
        KS_TRY(ks_parameters_write(h5, "/optimizer/m", &c->critic, c->adam_m, single));
    if (c->adam_v)
        KS_TRY(ks_parameters_write(h5, "/optimizer/v", &c->critic, c->adam_v, single));
    return KS_OK;
}

/* The attribute `in` is the width of an observation, the only size that a description omits. */
static ks_status write_actor(struct ks_h5 *h5, const struct ks_networks *actor, bool single)
{
    KS_TRY(ks_networks_write(h5, "/actor", actor, single));
    return ks_h5_write_integer(h5, "/actor", "in", (int64_t)actor->arch->in);
}

/* A group that holds only attributes. */
static ks_status write_list(struct ks_h5 *h5, const char *group,
                            const struct ks_attributes *attributes)
{
    if (attributes->n == 0)
        return KS_OK;
    KS_TRY(ks_h5_group(h5, group));
    return ks_h5_write_attributes(h5, group, attributes);
}

static ks_status write_all(struct ks_h5 *h5, const struct ks_checkpoint *c, bool single)
{
    KS_TRY(ks_h5_write_attributes(h5, "/", &c->attributes));
    KS_TRY(ks_networks_write(h5, "/critic", &c->critic, single));
    KS_TRY(write_batch(h5, c, single));
    if (c->target_critic.text)
        KS_TRY(ks_networks_write(h5, "/target", &c->target_critic, single));
    if (c->actor.text)
        KS_TRY(write_actor(h5, &c->actor, single));
    KS_TRY(write_optimizer(h5, c, single));
    KS_TRY(write_list(h5, "/metrics", &c->metrics));
    return write_list(h5, "/settings", &c->settings);
}

ks_status ks_checkpoint_write(const char *path, const struct ks_checkpoint *c, bool single)
{
    ks_status status = KS_OK;
    struct ks_h5 *h5 = NULL;

    assert(c->critic.text && c->critic.w && c->input && c->target);
    assert(c->loss_rows >= 1 && c->loss_rows <= c->rows);
    KS_GO(ks_h5_create_version(path, "kappascope-checkpoint", c->weight ? 2 : 1, &h5));
    KS_GO(write_all(h5, c, single));
    KS_GO(ks_h5_commit(h5));
done:
    ks_h5_close(h5);
    return status;
}
