/* What can be claimed of an operator's eigenvalues, in plain words. */
#ifndef KS_STATISTICS_CLAIM_H
#define KS_STATISTICS_CLAIM_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "io/spectrum.h"
#include "operators/operator_kinds.h"
#include "statistics/statistics.h"

/* What the claim is about, beside the figures. */
struct ks_claim_terms {
    const struct ks_operator_kind *kind;
    int critic, layer;  /* the diagonal block; -1: all                              */
    bool single;        /* float32 products                                         */
    size_t minibatches; /* that the loss is a mean over                             */
    size_t normals;     /* of the null directions, normals of spheres: they are no directions of the
                         * manifold and make no condition number infinite */
    const struct ks_statistics_terms *summary; /* those of the spectrum's figures */
};

/* A line for a person, from a spectrum that has its figures. It leads with what holds for every
 * order and start vector: how many directions have a curvature within a factor of 100 of the
 * largest, the bounds of the condition number, and the 99% quantile of the sizes; kappa comes last.
 * The caller frees *text. */
ks_status ks_claim(const struct ks_spectrum *spectrum, const struct ks_claim_terms *terms,
                   char **text);

#endif
