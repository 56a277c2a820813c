/* Reference results: reading, writing, and comparing them with what is computed from the file. */
#include "io/reference.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "io/checkpoint.h"
#include "io/h5.h"

/* The datasets, in the order of struct ks_references. */
enum { OUTPUT = 0 };
static const char *const names[KS_REFERENCES] = {"/batch/output", "/batch/loss",
                                                 "/batch/gradient_norm"};

bool ks_references_exist(const struct ks_references *p)
{
    return p->output.value || p->loss.value || p->gradient_norm.value;
}

void ks_references_clear(struct ks_references *p)
{
    for (size_t k = 0; k < KS_REFERENCES; k++)
        free(p->all[k].value);
    *p = (struct ks_references){.output = {.value = NULL}};
}

static ks_status wrong_shape(const struct ks_h5 *h5, const struct ks_checkpoint *c, size_t k,
                             const struct ks_h5_shape *found)
{
    char text[KS_H5_SHAPE_TEXT];

    ks_h5_print_shape(found, text);
    if (k != OUTPUT)
        return ks_fail(KS_FORMAT,
                       "%s: %s: expected [N] with N = %zu minibatches (or 1: the first), found %s",
                       h5->path, names[k], c->minibatches, text);
    return ks_fail(KS_FORMAT,
                   "%s: /batch/output: expected [N, B, E, K] or [N, R, E, K] with N = %zu "
                   "minibatches (or 1: the first), B = %zu, R = %zu rows, E = %zu critics and "
                   "K = %zu outputs, found %s",
                   h5->path, c->minibatches, c->loss_rows, c->rows, c->critic.ensemble,
                   c->critic.arch->out, text);
}

static bool fits(const struct ks_checkpoint *c, size_t k, const struct ks_h5_shape *shape)
{
    const size_t *dims = shape->dims;

    if (shape->n_dims != (k == OUTPUT ? 4 : 1) || (dims[0] != c->minibatches && dims[0] != 1))
        return false;
    return k != OUTPUT || ((dims[1] == c->loss_rows || dims[1] == c->rows) &&
                           dims[2] == c->critic.ensemble && dims[3] == c->critic.arch->out);
}

ks_status ks_references_read(const struct ks_h5 *h5, struct ks_checkpoint *c)
{
    for (size_t k = 0; k < KS_REFERENCES; k++) {
        struct ks_reference *reference = &c->references.all[k];
        struct ks_h5_shape shape;
        bool found;

        KS_TRY(ks_h5_find_shape(h5, names[k], &found, &shape));
        if (!found)
            continue;
        if (!fits(c, k, &shape))
            return wrong_shape(h5, c, k, &shape);
        KS_TRY(ks_h5_read_finite(h5, names[k], &shape, &reference->value));
        reference->minibatches = shape.dims[0];
        reference->rows = k == OUTPUT ? shape.dims[1] : 1;
        reference->wide = shape.stored == KS_H5_WIDE_REALS;
    }
    return KS_OK;
}

void ks_references_write(struct ks_h5 *h5, const struct ks_checkpoint *c)
{
    for (size_t k = 0; k < KS_REFERENCES; k++) {
        const struct ks_reference *p = &c->references.all[k];
        const struct ks_h5_shape shape = {
            .n_dims = k == OUTPUT ? 4 : 1,
            .dims = {p->minibatches, p->rows, c->critic.ensemble, c->critic.arch->out}};

        if (p->value)
            ks_h5_write_finite(h5, names[k], p->wide ? KS_H5_F64 : KS_H5_F32, &shape, p->value);
    }
}

/* --- comparing --- */

/* Allowed differences, relative to the root mean square. Programs in float32 agree to about 1e-6,
 * programs in float64 to about 1e-15. Products in TF32 or bfloat16, the default of some libraries
 * on some GPUs, cause differences of up to about ROUGH. */
static const double TOLERANCE = 1e-4, WIDE_TOLERANCE = 1e-9, ROUGH = 1e-2;

/* One dataset of reference results, and what is computed for it. */
struct comparison {
    const char *path, *name;
    const char *advice; /* what to check if the values differ */
    const struct ks_reference *found, *computed;
    bool has_rows;
    size_t critics, outputs; /* of a row. Both are 1 for a dataset with a number per minibatch. */
};

/* What was found to differ. */
struct differences {
    size_t wrong, first; /* how many values, and the place of the first one in the dataset */
    double rms;          /* root mean square of the values of the first one's critic       */
    bool narrow, rough;  /* all differences are within TOLERANCE, within ROUGH             */
};

static double tolerance_of(const struct comparison *c)
{
    return c->found->wide ? WIDE_TOLERANCE : TOLERANCE;
}

/* The place of output k of critic e in row i, where i counts through all minibatches. */
static size_t place_of(const struct comparison *c, size_t i, size_t e, size_t k)
{
    return (i * c->critics + e) * c->outputs + k;
}

/* The root mean square of all values of critic e in the file. */
static double root_mean_square(const struct comparison *c, size_t e)
{
    const size_t rows = c->found->minibatches * c->found->rows;
    double squares = 0;

    for (size_t i = 0; i < rows; i++)
        for (size_t k = 0; k < c->outputs; k++) {
            const double x = c->found->value[place_of(c, i, e, k)];

            squares += x * x / (double)(rows * c->outputs);
        }
    return sqrt(squares);
}

/* Each critic has a scale of its own, so that large outputs of one critic cannot hide that another
 * critic is wrong. */
static void compare_critic(const struct comparison *c, size_t e, struct differences *d)
{
    const size_t rows = c->computed->minibatches * c->found->rows;
    const double rms = root_mean_square(c, e);

    for (size_t i = 0; i < rows; i++)
        for (size_t k = 0; k < c->outputs; k++) {
            const size_t at = place_of(c, i, e, k);
            const double error = fabs(c->found->value[at] - c->computed->value[at]);

            if (error <= tolerance_of(c) * rms)
                continue;
            d->narrow = d->narrow && error <= TOLERANCE * rms;
            d->rough = d->rough && error <= ROUGH * rms;
            if (d->wrong++ == 0 || at < d->first) {
                d->first = at;
                d->rms = rms;
            }
        }
}

/* Prints "minibatch 2, row 3, critic 1, output 0". */
static void print_place(const struct comparison *c, size_t at, size_t size, char *text)
{
    const size_t row = at / (c->critics * c->outputs);

    if (!c->has_rows)
        snprintf(text, size, "minibatch %zu", row);
    else
        snprintf(text, size, "minibatch %zu, row %zu, critic %zu, output %zu", row / c->found->rows,
                 row % c->found->rows, at / c->outputs % c->critics, at % c->outputs);
}

static ks_status refuse(const struct comparison *c, const struct differences *d)
{
    const size_t rows = c->computed->minibatches * c->found->rows;
    const int digits = c->found->wide ? 15 : 8;
    const char *rounding = "";
    char place[128];

    assert(c->found->value && c->computed->value);
    if (d->narrow)
        rounding = "results of float32 belong in a float32 dataset. Otherwise ";
    else if (d->rough)
        rounding = "results of products in TF32 or bfloat16 are too inaccurate, so compute them in "
                   "float32 or float64. Otherwise ";
    print_place(c, d->first, sizeof place, place);
    return ks_fail(KS_FORMAT,
                   "%s: %s: %s: expected the same as in the file, %.*g, found %.*g (%zu of %zu "
                   "values differ by more than %g of their root mean square%s, %.3g): %s%s",
                   c->path, c->name, place, digits, c->found->value[d->first], digits,
                   c->computed->value[d->first], d->wrong, rows * c->critics * c->outputs,
                   tolerance_of(c), c->critics > 1 ? " in this critic" : "", d->rms, rounding,
                   c->advice);
}

/* Compares outputs first, because they depend on neither targets nor loss, and the gradient last,
 * because the loss does not depend on how gradients flow. So the first dataset that differs says
 * most about the reason. */
static ks_status compare_all(const struct ks_checkpoint *c, const char *path,
                             const struct ks_references *computed)
{
    const struct ks_references *p = &c->references;
    const bool output = p->output.value, loss = p->loss.value;
    const char *const advice[KS_REFERENCES] = {
        "check the layout [in, out] of kernels, the order of parameters, critics and inputs, eps "
        "and activations, and that batchnorm is in training mode",
        output ? "outputs agree, so check the targets and the factors of the loss"
               : "check the critic, the targets and the factors of the loss",
        output && loss
            ? "outputs and loss agree, so check for detached batch statistics and frozen parameters"
            : "check the critic, the loss, and for detached batch statistics and frozen parameters",
    };

    for (size_t k = 0; k < KS_REFERENCES; k++) {
        const bool rows = k == OUTPUT;
        const struct comparison one = {path,
                                       names[k],
                                       advice[k],
                                       &p->all[k],
                                       &computed->all[k],
                                       rows,
                                       rows ? c->critic.ensemble : 1,
                                       rows ? c->critic.arch->out : 1};
        struct differences d = {.narrow = true, .rough = true};

        for (size_t e = 0; one.found->value && e < one.critics; e++)
            compare_critic(&one, e, &d);
        if (d.wrong > 0)
            return refuse(&one, &d);
    }
    return KS_OK;
}

ks_status ks_references_compare(const struct ks_checkpoint *c, const char *path, size_t minibatches)
{
    KS_CLEARED_BY(ks_references_clear) struct ks_references computed = {.output = {.value = NULL}};

    if (!ks_references_exist(&c->references))
        return KS_OK;
    KS_TRY(ks_networks_check_state(&c->critic, path));
    computed = c->references;
    for (size_t k = 0; k < KS_REFERENCES; k++) {
        size_t *n = &computed.all[k].minibatches;

        computed.all[k].value = NULL;
        *n = *n < minibatches ? *n : minibatches;
    }
    KS_TRY(ks_references_compute(c, &computed));
    return compare_all(c, path, &computed);
}
