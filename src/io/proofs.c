/* Reading and writing proofs. */
#include "io/proofs.h"

#include <stdio.h>
#include <stdlib.h>

#include "io/checkpoint.h"
#include "io/h5.h"

bool ks_proofs_exist(const struct ks_proofs *p)
{
    return p->output.value || p->loss.value || p->gradient_norm.value;
}

void ks_proofs_clear(struct ks_proofs *p)
{
    free(p->output.value);
    free(p->loss.value);
    free(p->gradient_norm.value);
    *p = (struct ks_proofs){.output = {.value = NULL}};
}

static ks_status wrong_output(const struct ks_h5 *h5, const struct ks_checkpoint *c,
                              const struct ks_h5_shape *found)
{
    char text[KS_H5_SHAPE_TEXT];

    ks_h5_print_shape(found, text);
    return ks_fail(KS_FORMAT,
                   "%s: /batch/output: expected [N, B, E, K] or [N, R, E, K] with N = %zu "
                   "minibatches (or 1: the first), B = %zu, R = %zu rows, E = %zu critics and "
                   "K = %zu outputs, found %s",
                   h5->path, c->minibatches, c->loss_rows, c->rows, c->critic.ensemble,
                   c->critic.arch->out, text);
}

/* Reads one proof of this shape. */
static ks_status read_proof(const struct ks_h5 *h5, const char *name,
                            const struct ks_h5_shape *shape, struct ks_proof *proof)
{
    enum ks_h5_stored stored;
    size_t n = 1;

    for (size_t i = 0; i < shape->n_dims; i++)
        n *= shape->dims[i];
    KS_TRY(ks_h5_expect_reals(h5, name, shape));
    KS_TRY(ks_h5_stored(h5, name, &stored));
    KS_TRY(ks_h5_read_new(h5, name, shape, &proof->value));
    KS_TRY(ks_h5_expect_finite(h5, name, n, proof->value));
    proof->minibatches = shape->dims[0];
    proof->rows = shape->n_dims > 1 ? shape->dims[1] : 1;
    proof->wide = stored == KS_H5_WIDE_REALS;
    return KS_OK;
}

static bool fits(const struct ks_checkpoint *c, size_t minibatches)
{
    return minibatches == c->minibatches || minibatches == 1;
}

static ks_status read_output(const struct ks_h5 *h5, struct ks_checkpoint *c)
{
    static const char name[] = "/batch/output";
    struct ks_h5_shape shape;
    bool found;

    KS_TRY(ks_h5_find_shape(h5, name, &found, &shape));
    if (!found)
        return KS_OK;
    if (shape.n_dims != 4 || !fits(c, shape.dims[0]) ||
        (shape.dims[1] != c->loss_rows && shape.dims[1] != c->rows) ||
        shape.dims[2] != c->critic.ensemble || shape.dims[3] != c->critic.arch->out)
        return wrong_output(h5, c, &shape);
    return read_proof(h5, name, &shape, &c->proofs.output);
}

/* Reads a proof that has a number for each minibatch. */
static ks_status read_numbers(const struct ks_h5 *h5, const char *name,
                              const struct ks_checkpoint *c, struct ks_proof *proof)
{
    char text[KS_H5_SHAPE_TEXT];
    struct ks_h5_shape shape;
    bool found;

    KS_TRY(ks_h5_find_shape(h5, name, &found, &shape));
    if (!found)
        return KS_OK;
    if (shape.n_dims == 1 && fits(c, shape.dims[0]))
        return read_proof(h5, name, &shape, proof);
    ks_h5_print_shape(&shape, text);
    return ks_fail(KS_FORMAT,
                   "%s: %s: expected [N] with N = %zu minibatches (or 1: the first), found %s",
                   h5->path, name, c->minibatches, text);
}

ks_status ks_proofs_read(const struct ks_h5 *h5, struct ks_checkpoint *c)
{
    KS_TRY(read_output(h5, c));
    KS_TRY(read_numbers(h5, "/batch/loss", c, &c->proofs.loss));
    return read_numbers(h5, "/batch/gradient_norm", c, &c->proofs.gradient_norm);
}

static ks_status write_proof(struct ks_h5 *h5, const char *name, const struct ks_h5_shape *shape,
                             const struct ks_proof *proof)
{
    if (!proof->value)
        return KS_OK;
    return ks_h5_write_finite(h5, name, proof->wide ? KS_H5_F64 : KS_H5_F32, shape, proof->value);
}

ks_status ks_proofs_write(struct ks_h5 *h5, const struct ks_checkpoint *c)
{
    const struct ks_proofs *p = &c->proofs;
    const struct ks_h5_shape output = {
        .n_dims = 4,
        .dims = {p->output.minibatches, p->output.rows, c->critic.ensemble, c->critic.arch->out}};
    const struct ks_h5_shape loss = {.n_dims = 1, .dims = {p->loss.minibatches}};
    const struct ks_h5_shape norm = {.n_dims = 1, .dims = {p->gradient_norm.minibatches}};

    KS_TRY(write_proof(h5, "/batch/output", &output, &p->output));
    KS_TRY(write_proof(h5, "/batch/loss", &loss, &p->loss));
    return write_proof(h5, "/batch/gradient_norm", &norm, &p->gradient_norm);
}
