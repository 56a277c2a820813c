#include "import/batch.h"

#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "import/view.h"

/* The first two are required. */
static const char *const known[] = {"input", "target", "weight", "output", "loss", "gradient_norm"};
enum { KNOWN = sizeof known / sizeof *known, MOST = 1 << 30 /* BLAS sizes are int */ };

static ks_status check_array(const struct ks_weights *batch, const struct ks_stored *s)
{
    bool found = false;

    for (size_t i = 0; i < KNOWN; i++)
        found = found || strcmp(s->name, known[i]) == 0;
    if (!found)
        return ks_fail(KS_FORMAT,
                       "%s: %s: expected no arrays but input, target, weight, output, loss and "
                       "gradient_norm",
                       batch->path, s->name);
    if (s->real == KS_NOT_REAL)
        return ks_fail(KS_FORMAT, "%s: %s: expected real numbers, found %s", batch->path, s->name,
                       s->type);
    for (size_t i = 0; i < s->n_dims; i++)
        if (s->dims[i] == 0 || s->dims[i] > MOST)
            return ks_fail(KS_FORMAT, "%s: %s: expected 1 to %d in each dimension, found %zu",
                           batch->path, s->name, MOST, s->dims[i]);
    return KS_OK;
}

ks_status ks_batch_check(const struct ks_weights *batch, size_t *in)
{
    const struct ks_stored *input = ks_weights_find(batch, "input");
    char words[KS_STORED_SHAPE];

    for (size_t i = 0; i < batch->n; i++)
        KS_TRY(check_array(batch, &batch->list[i]));
    for (size_t i = 0; i < 2; i++)
        if (!ks_weights_find(batch, known[i]))
            return ks_fail(KS_FORMAT, "%s: expected an array %s, found none", batch->path,
                           known[i]);
    if (input->n_dims != 3)
        return ks_fail(KS_FORMAT, "%s: input: expected [minibatches, rows, inputs], found %s",
                       batch->path, ks_stored_describe(input, words));
    *in = input->dims[2];
    return KS_OK;
}

/* Reads an array row-major into a new *values, which the caller frees. */
static ks_status read_ordered(const struct ks_weights *batch, const struct ks_stored *s,
                              double **values, bool *wide)
{
    const struct ks_view view = ks_view_of(s);
    ks_status status = KS_OK;
    double *stored = NULL;

    KS_TRY(ks_weights_read(batch, s, &stored));
    *wide = *wide || s->real == KS_FLOAT64;
    if (!s->first_fastest) {
        *values = stored;
        return KS_OK;
    }
    KS_GO(ks_alloc(ks_stored_count(s), sizeof **values, values));
    ks_view_copy(&view, stored, *values);
done:
    free(stored);
    return status;
}

/* [N, B, K], or [N, B] where K = 1; B <= R */
static ks_status check_target(const struct ks_weights *batch, const struct ks_stored *target,
                              const struct ks_checkpoint *c)
{
    const size_t k = c->critic.arch->loss.targets;
    const bool flat = target->n_dims == 2 && k == 1;
    char words[KS_STORED_SHAPE];

    if ((flat || (target->n_dims == 3 && target->dims[2] == k)) &&
        target->dims[0] == c->minibatches && target->dims[1] <= c->rows)
        return KS_OK;
    return ks_fail(KS_FORMAT,
                   "%s: target: expected [%zu, rows, %zu]%s with at most %zu rows, found %s",
                   batch->path, c->minibatches, k, k == 1 ? " or without the last dimension" : "",
                   c->rows, ks_stored_describe(target, words));
}

/* [N, B] */
static ks_status take_weight(const struct ks_weights *batch, struct ks_checkpoint *c, bool *wide)
{
    const struct ks_stored *s = ks_weights_find(batch, "weight");
    char words[KS_STORED_SHAPE];

    if (!s)
        return KS_OK;
    if (s->n_dims != 2 || s->dims[0] != c->minibatches || s->dims[1] != c->loss_rows)
        return ks_fail(KS_FORMAT, "%s: weight: expected [%zu, %zu], found %s", batch->path,
                       c->minibatches, c->loss_rows, ks_stored_describe(s, words));
    KS_TRY(read_ordered(batch, s, &c->weight, wide));
    return ks_checkpoint_check_weights(c, batch->path, "weight");
}

/* --- proofs (io/proofs.h) --- */

static bool fits(const struct ks_checkpoint *c, const struct ks_stored *s)
{
    return s->dims[0] == c->minibatches || s->dims[0] == 1;
}

static ks_status read_proof(const struct ks_weights *batch, const struct ks_stored *s,
                            struct ks_proof *proof)
{
    KS_TRY(read_ordered(batch, s, &proof->value, &proof->wide));
    proof->minibatches = s->dims[0];
    proof->rows = s->n_dims > 1 ? s->dims[1] : 1;
    return KS_OK;
}

/* [N, B, E, K] or [N, R, E, K]; also of the first minibatch alone */
static ks_status take_output(const struct ks_weights *batch, struct ks_checkpoint *c)
{
    const struct ks_stored *s = ks_weights_find(batch, "output");
    const size_t critics = c->critic.ensemble, outputs = c->critic.arch->out;
    char words[KS_STORED_SHAPE];

    if (!s)
        return KS_OK;
    if (s->n_dims == 4 && fits(c, s) && (s->dims[1] == c->loss_rows || s->dims[1] == c->rows) &&
        s->dims[2] == critics && s->dims[3] == outputs)
        return read_proof(batch, s, &c->proofs.output);
    return ks_fail(KS_FORMAT,
                   "%s: output: expected %zu minibatches (or the first alone), %zu or %zu rows, "
                   "%zu critics and %zu outputs, found %s",
                   batch->path, c->minibatches, c->loss_rows, c->rows, critics, outputs,
                   ks_stored_describe(s, words));
}

/* [N], or [1] */
static ks_status take_numbers(const struct ks_weights *batch, const char *name,
                              const struct ks_checkpoint *c, struct ks_proof *proof)
{
    const struct ks_stored *s = ks_weights_find(batch, name);
    char words[KS_STORED_SHAPE];

    if (!s)
        return KS_OK;
    if (s->n_dims == 1 && fits(c, s))
        return read_proof(batch, s, proof);
    return ks_fail(KS_FORMAT,
                   "%s: %s: expected a number for each of %zu minibatches (or the first "
                   "alone), found %s",
                   batch->path, name, c->minibatches, ks_stored_describe(s, words));
}

static ks_status take_proofs(const struct ks_weights *batch, struct ks_checkpoint *c)
{
    KS_TRY(take_output(batch, c));
    KS_TRY(take_numbers(batch, "loss", c, &c->proofs.loss));
    KS_TRY(take_numbers(batch, "gradient_norm", c, &c->proofs.gradient_norm));
    return ks_proofs_compare(c, batch->path, c->minibatches);
}

ks_status ks_batch_take(const struct ks_weights *batch, struct ks_checkpoint *c, bool *wide)
{
    const struct ks_stored *input = ks_weights_find(batch, "input");
    const struct ks_stored *target = ks_weights_find(batch, "target");

    c->minibatches = input->dims[0];
    c->rows = input->dims[1];
    KS_TRY(check_target(batch, target, c));
    c->loss_rows = target->dims[1];
    KS_TRY(read_ordered(batch, input, &c->input, wide));
    KS_TRY(read_ordered(batch, target, &c->target, wide));
    KS_TRY(ks_checkpoint_check_targets(c, batch->path, "target", c->target));
    KS_TRY(take_weight(batch, c, wide));
    return take_proofs(batch, c);
}
