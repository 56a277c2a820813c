/* The proofs in a file against what is computed from the file. */
#include "io/proofs.h"

#include <math.h>
#include <stdio.h>

#include "io/checkpoint.h"

/* Allowed differences, relative to the root mean square. Programs in float32 agree to about 1e-6,
 * programs in float64 to about 1e-15. Products in TF32 or bfloat16, the default of some libraries
 * on some GPUs, cause differences of up to about ROUGH. */
static const double TOLERANCE = 1e-4, WIDE_TOLERANCE = 1e-9, ROUGH = 1e-2;

/* One dataset of proofs, and what is computed for it. */
struct comparison {
    const char *path, *group, *name;
    const char *advice; /* what to check if the values differ */
    const struct ks_proof *found, *computed;
    size_t critics, outputs; /* of a row. Both are 1 for a dataset with a number per minibatch. */
    bool has_rows;
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

    if (d->narrow)
        rounding = "results of float32 belong in a float32 dataset. Otherwise ";
    else if (d->rough)
        rounding = "results of products in TF32 or bfloat16 are too inaccurate, so compute them in "
                   "float32 or float64. Otherwise ";
    print_place(c, d->first, sizeof place, place);
    return ks_fail(KS_FORMAT,
                   "%s: %s%s: %s: expected the same as in the file, %.*g, found %.*g (%zu of %zu "
                   "values differ by more than %g of their root mean square%s, %.3g): %s%s",
                   c->path, c->group, c->name, place, digits, c->found->value[d->first], digits,
                   c->computed->value[d->first], d->wrong, rows * c->critics * c->outputs,
                   tolerance_of(c), c->critics > 1 ? " in this critic" : "", d->rms, rounding,
                   c->advice);
}

static ks_status compare(const struct comparison *c)
{
    struct differences d = {.narrow = true, .rough = true};

    if (!c->found->value)
        return KS_OK;
    for (size_t e = 0; e < c->critics; e++)
        compare_critic(c, e, &d);
    return d.wrong > 0 ? refuse(c, &d) : KS_OK;
}

/* Compares outputs first, because they depend on neither targets nor loss, and the gradient last,
 * because the loss does not depend on how gradients flow. So the first dataset that differs says
 * most about the reason. */
static ks_status compare_all(const struct ks_checkpoint *c, struct comparison start,
                             const struct ks_proofs *computed)
{
    const struct ks_proofs *p = &c->proofs;
    const bool output = p->output.value, loss = p->loss.value;
    struct comparison one = start;

    one.name = "output";
    one.advice = "check the layout [in, out] of kernels, the order of parameters, critics and "
                 "inputs, eps and activations, and that batchnorm is in training mode";
    one.found = &p->output, one.computed = &computed->output;
    one.critics = c->critic.ensemble, one.outputs = c->critic.arch->out;
    one.has_rows = true;
    KS_TRY(compare(&one));
    one = start;
    one.name = "loss";
    one.advice = output ? "outputs agree, so check the targets and the factors of the loss"
                        : "check the critic, the targets and the factors of the loss";
    one.found = &p->loss, one.computed = &computed->loss;
    KS_TRY(compare(&one));
    one.name = "gradient_norm";
    one.advice = output && loss ? "outputs and loss agree, so check for detached batch statistics "
                                  "and frozen parameters"
                                : "check the critic, the loss, and for detached batch statistics "
                                  "and frozen parameters";
    one.found = &p->gradient_norm, one.computed = &computed->gradient_norm;
    return compare(&one);
}

/* As much of a proof as belongs to the first `minibatches` minibatches. */
static struct ks_proof part(const struct ks_proof *p, size_t minibatches)
{
    return (struct ks_proof){.minibatches = p->minibatches < minibatches ? p->minibatches
                                                                         : minibatches,
                             .rows = p->rows};
}

ks_status ks_proofs_compare(const struct ks_checkpoint *c, const char *path, const char *group,
                            size_t minibatches)
{
    const struct comparison start = {.path = path, .group = group, .critics = 1, .outputs = 1};
    const struct ks_proofs *p = &c->proofs;
    struct ks_proofs computed = {.output = part(&p->output, minibatches),
                                 .loss = part(&p->loss, minibatches),
                                 .gradient_norm = part(&p->gradient_norm, minibatches)};
    ks_status status;

    if (!ks_proofs_exist(p))
        return KS_OK;
    KS_TRY(ks_networks_check_state(&c->critic, path));
    KS_TRY(ks_proofs_compute(c, &computed));
    status = compare_all(c, start, &computed);
    ks_proofs_clear(&computed);
    return status;
}
