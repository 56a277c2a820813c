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

/* Reads the numbers of the view in row-major order into a new *values, which the caller frees. */
static ks_status read_view(const struct ks_weights *batch, const struct ks_stored *s,
                           const struct ks_view *view, double **values)
{
    const size_t n = ks_stored_count(s);
    ks_status status = KS_OK;
    double *stored = NULL;

    KS_TRY(ks_weights_read(batch, s, &stored));
    KS_GO(ks_weights_expect_memory(batch, s->name, (double)n * sizeof **values));
    KS_GO(ks_alloc(n, sizeof **values, values));
    ks_view_copy(view, stored, *values);
done:
    free(stored);
    return status;
}

/* The same for a whole array. Sets *wide if it has the type float64. */
static ks_status read_ordered(const struct ks_weights *batch, const struct ks_stored *s,
                              double **values, bool *wide)
{
    const struct ks_view view = ks_view_of(s);

    *wide = *wide || s->real == KS_FLOAT64;
    return read_view(batch, s, &view, values);
}

/* The shape must be [N, B, T] or [N, B, E, T], or [N, B] where T = 1, with B <= R. */
static ks_status check_target(const struct ks_weights *batch, const struct ks_stored *s,
                              const struct ks_checkpoint *c)
{
    const size_t targets = c->critic.arch->loss.targets, critics = c->critic.ensemble;
    const bool fits = s->n_dims == 2 ? targets == 1
                      : s->n_dims == 3
                          ? s->dims[2] == targets
                          : s->n_dims == 4 && s->dims[2] == critics && s->dims[3] == targets;
    char words[KS_STORED_SHAPE];

    if (fits && s->dims[0] == c->minibatches && s->dims[1] <= c->rows)
        return KS_OK;
    return ks_fail(KS_FORMAT,
                   "%s: target: expected [%zu, rows, %zu]%s, or with the targets of each critic "
                   "[%zu, rows, %zu, %zu], with at most %zu rows, found %s",
                   batch->path, c->minibatches, targets,
                   targets == 1 ? " or without the last dimension" : "", c->minibatches, critics,
                   targets, c->rows, ks_stored_describe(s, words));
}

/* Reads the targets. Those of each critic are [N, E, B, T] in memory. */
static ks_status take_target(const struct ks_weights *batch, struct ks_checkpoint *c, bool *wide)
{
    const struct ks_stored *s = ks_weights_find(batch, "target");
    struct KS(loss) *loss = &c->critic.arch->loss;
    struct ks_view view = ks_view_of(s);

    if (loss->kind->any_targets && s->n_dims > 2)
        loss->targets = s->dims[s->n_dims - 1];
    KS_TRY(check_target(batch, s, c));
    c->loss_rows = s->dims[1];
    c->targets_differ = s->n_dims == 4;
    if (c->targets_differ)
        ks_view_swap(&view, 1, 2);
    *wide = *wide || s->real == KS_FLOAT64;
    KS_TRY(read_view(batch, s, &view, &c->target));
    return ks_checkpoint_check_targets(c, batch->path, "target", c->target);
}

/* Reads the optional weights of the rows, [N, B]. */
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

/* --- reference results (io/reference.h) --- */

/* Whether an array belongs to all minibatches, or to the first one. */
static bool fits(const struct ks_checkpoint *c, const struct ks_stored *s)
{
    return s->dims[0] == c->minibatches || s->dims[0] == 1;
}

static ks_status read_reference(const struct ks_weights *batch, const struct ks_stored *s,
                                struct ks_reference *reference)
{
    KS_TRY(read_ordered(batch, s, &reference->value, &reference->wide));
    reference->minibatches = s->dims[0];
    reference->rows = s->n_dims > 1 ? s->dims[1] : 1;
    return KS_OK;
}

/* Reads the optional outputs, [N, B, E, K] or [N, R, E, K], where N may be 1: the first minibatch.
 */
static ks_status take_output(const struct ks_weights *batch, struct ks_checkpoint *c)
{
    const struct ks_stored *s = ks_weights_find(batch, "output");
    const size_t critics = c->critic.ensemble, outputs = c->critic.arch->out;
    char words[KS_STORED_SHAPE];

    if (!s)
        return KS_OK;
    if (s->n_dims == 4 && fits(c, s) && (s->dims[1] == c->loss_rows || s->dims[1] == c->rows) &&
        s->dims[2] == critics && s->dims[3] == outputs)
        return read_reference(batch, s, &c->references.output);
    return ks_fail(KS_FORMAT,
                   "%s: output: expected %zu minibatches (or the first alone), %zu or %zu rows, "
                   "%zu critics and %zu outputs, found %s",
                   batch->path, c->minibatches, c->loss_rows, c->rows, critics, outputs,
                   ks_stored_describe(s, words));
}

/* Reads an optional reference result with one number for each of N minibatches, or for the first
 * one. */
static ks_status take_numbers(const struct ks_weights *batch, const char *name,
                              const struct ks_checkpoint *c, struct ks_reference *reference)
{
    const struct ks_stored *s = ks_weights_find(batch, name);
    char words[KS_STORED_SHAPE];

    if (!s)
        return KS_OK;
    if (s->n_dims == 1 && fits(c, s))
        return read_reference(batch, s, reference);
    return ks_fail(KS_FORMAT,
                   "%s: %s: expected a number for each of %zu minibatches (or the first "
                   "alone), found %s",
                   batch->path, name, c->minibatches, ks_stored_describe(s, words));
}

static ks_status take_references(const struct ks_weights *batch, struct ks_checkpoint *c)
{
    KS_TRY(take_output(batch, c));
    KS_TRY(take_numbers(batch, "loss", c, &c->references.loss));
    KS_TRY(take_numbers(batch, "gradient_norm", c, &c->references.gradient_norm));
    return ks_references_compare(c, batch->path, "", c->minibatches);
}

ks_status ks_batch_take(const struct ks_weights *batch, struct ks_checkpoint *c, bool *wide)
{
    const struct ks_stored *input = ks_weights_find(batch, "input");

    c->minibatches = input->dims[0];
    c->rows = input->dims[1];
    KS_TRY(read_ordered(batch, input, &c->input, wide));
    KS_TRY(take_target(batch, c, wide));
    KS_TRY(take_weight(batch, c, wide));
    return take_references(batch, c);
}
