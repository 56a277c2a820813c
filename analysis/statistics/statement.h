/* The statement: what is known of an operator's eigenvalues, in plain words. */
#ifndef KS_STATISTICS_STATEMENT_H
#define KS_STATISTICS_STATEMENT_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "io/spectrum.h"
#include "operators/operator.h"
#include "statistics/statistics.h"

/* What the statement needs beside the statistics. */
struct ks_statement_inputs {
    const struct ks_operator_kind *kind;
    int critic, layer;  /* the diagonal block; -1: all     */
    bool products_f32;  /* float32 products                */
    size_t minibatches; /* N: the loss is a mean over them */
    size_t normals;     /* how many null directions are normals of spheres, which are not directions
                         * of the manifold and do not make a condition number infinite */
    const struct ks_statistics_inputs *statistics; /* with which the statistics were computed */
};

/* One line for a reader, from a spectrum with its statistics. First what holds for every order and
 * start vector: how many directions have a curvature within a factor of 100 of the largest, the
 * bounds of the condition number, and the 99% quantile of the |eigenvalues|; the paper's kappa
 * comes last. *first: the length of the first sentence. KS_MEMORY. The caller frees *text. */
ks_status ks_statement(const struct ks_spectrum *spectrum, const struct ks_statement_inputs *inputs,
                       char **text, size_t *first);

#endif
