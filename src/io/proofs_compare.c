/* The proofs in a file against what is computed from it. */
#include "io/proofs.h"

#include <math.h>
#include <stdio.h>

#include "io/checkpoint.h"

/* Allowed differences, of the root mean square: float32 programs agree to about 1e-6, float64
 * programs to about 1e-15. */
static const double TOLERANCE = 1e-4, WIDE_TOLERANCE = 1e-9;

/* One dataset of proofs, and what is computed. */
struct comparison {
    const char *path, *name;
    const char *advice; /* what to look at if the values differ */
    const struct ks_proof *found, *computed;
    size_t critics, outputs; /* of a row; 0: a number for each minibatch */
};

static size_t values_of(const struct comparison *c, size_t minibatches)
{
    return minibatches * c->found->rows * (c->outputs > 0 ? c->critics * c->outputs : 1);
}

static double root_mean_square(size_t n, const double *x)
{
    double squares = 0;

    for (size_t i = 0; i < n; i++)
        squares += x[i] * x[i] / (double)n;
    return sqrt(squares);
}

/* "minibatch 2, row 3, critic 1, output 0" of value number `at`. */
static void print_place(const struct comparison *c, size_t at, size_t size, char *text)
{
    const size_t row = c->critics * c->outputs;

    if (c->outputs == 0)
        snprintf(text, size, "minibatch %zu", at);
    else
        snprintf(text, size, "minibatch %zu, row %zu, critic %zu, output %zu",
                 at / row / c->found->rows, at / row % c->found->rows, at / c->outputs % c->critics,
                 at % c->outputs);
}

static ks_status refuse(const struct comparison *c, size_t first, size_t wrong, double rms)
{
    const struct ks_proof *p = c->found;
    const size_t n = values_of(c, c->computed->minibatches);
    const double difference = fabs(p->value[first] - c->computed->value[first]);
    const int digits = p->wide ? 15 : 8;
    char place[128];

    print_place(c, first, sizeof place, place);
    return ks_fail(
        KS_FORMAT,
        "%s: %s: %s: expected the same as in the file, %.*g, found %.*g (%zu of %zu values differ "
        "by more than %g of their root mean square, %.3g): %s",
        c->path, c->name, place, digits, p->value[first], digits, c->computed->value[first], wrong,
        n, p->wide ? WIDE_TOLERANCE : TOLERANCE, rms,
        p->wide && difference <= TOLERANCE * rms ? "results of float32 belong in a float32 dataset"
                                                 : c->advice);
}

static ks_status compare(const struct comparison *c)
{
    const struct ks_proof *p = c->found;
    const size_t n = values_of(c, c->computed->minibatches);
    size_t first = 0, wrong = 0;
    double rms, allowed;

    if (!p->value)
        return KS_OK;
    rms = root_mean_square(values_of(c, p->minibatches), p->value);
    allowed = (p->wide ? WIDE_TOLERANCE : TOLERANCE) * rms;
    for (size_t i = n; i-- > 0;)
        if (!(fabs(p->value[i] - c->computed->value[i]) <= allowed)) {
            first = i;
            wrong++;
        }
    return wrong > 0 ? refuse(c, first, wrong, rms) : KS_OK;
}

/* In an order in which the first that differs says most: outputs depend on neither targets nor
 * loss, and the loss does not depend on how gradients flow. */
static ks_status compare_all(const struct ks_checkpoint *c, const char *path,
                             const struct ks_proofs *computed)
{
    const struct ks_proofs *p = &c->proofs;
    const bool output = p->output.value, loss = p->loss.value;
    struct comparison one = {.path = path, .critics = c->critic.ensemble};

    one.name = "/batch/output";
    one.advice = "check the layout [in, out] of kernels, the order of parameters, critics and "
                 "inputs, eps and activations, and that batchnorm is in training mode";
    one.found = &p->output, one.computed = &computed->output;
    one.outputs = c->critic.arch->out;
    KS_TRY(compare(&one));
    one.name = "/batch/loss";
    one.advice = output ? "as outputs agree, check the targets and the factors of the loss"
                        : "check the critic, the targets and the factors of the loss";
    one.found = &p->loss, one.computed = &computed->loss;
    one.outputs = 0;
    KS_TRY(compare(&one));
    one.name = "/batch/gradient_norm";
    one.advice = output && loss ? "as outputs and loss agree, check for detached batch statistics "
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

ks_status ks_proofs_compare(const struct ks_checkpoint *c, const char *path, size_t minibatches)
{
    const struct ks_proofs *p = &c->proofs;
    struct ks_proofs computed = {.output = part(&p->output, minibatches),
                                 .loss = part(&p->loss, minibatches),
                                 .gradient_norm = part(&p->gradient_norm, minibatches)};
    ks_status status;

    if (!ks_proofs_exist(p))
        return KS_OK;
    if (c->critic.arch->reads_state && !c->critic.state)
        return ks_fail(KS_FORMAT,
                       "%s: batchrenorm needs running statistics, and the checkpoint does not hold "
                       "those of all layers (/critic/NN_KIND/mean, var)",
                       path);
    KS_TRY(ks_proofs_compute(c, &computed));
    status = compare_all(c, path, &computed);
    ks_proofs_clear(&computed);
    return status;
}
