/* The statistics of a spectrum (kappa, lambda_max, kurtosis, ...), from the Ritz values and the
 * Jacobi matrices of its probes. Their definitions are in analysis/README.md. */
#ifndef KS_STATISTICS_STATISTICS_H
#define KS_STATISTICS_STATISTICS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "document/document.h"
#include "io/spectrum.h"
#include "operators/operator.h"
#include "statistics/catalogue.h"
#include "statistics/operator_bounds.h"

enum { KS_STATISTICS_PREFIX = 30 }; /* statistics are repeated at m = 30, 60, ... */

/* Fills the empty spectrum->statistics from ritz, weight, residual and, unless the spectrum is
 * exact, alpha and beta: for each statistic its NAME; NAME_se, the standard error over two or more
 * probes; NAME_m30, NAME_m60, ... below the order, from the leading blocks of the Jacobi matrices.
 * Fills the band of the cumulative distribution (shares.h) as well. KS_MEMORY; KS_NUMBER if an
 * eigenvalue problem does not converge. */
ks_status ks_statistics(struct ks_spectrum *spectrum, const struct ks_statistics_inputs *inputs);

/* Gives all Ritz values of a probe the same weight. */
void ks_statistics_unweight(struct ks_spectrum *spectrum);

/* Whether the spectrum has the statistic, or one of its ends. */
bool ks_statistic_present(const struct ks_spectrum *spectrum, enum ks_statistic_id id);
/* Prints a statistic with what it is: "at least 422.4" for a bound, rounded so that it stays one;
 * "6083 [2818, 9086]" for an estimate with its interval, "[7.56, 11.2]" for an interval without
 * one; "infinite"; "not resolved" where nothing is known; "no learning rate" for a sharpness_ratio
 * without one. */
enum { KS_STATISTIC_TEXT = 96 };
void ks_statistic_text(const struct ks_spectrum *spectrum, enum ks_statistic_id id,
                       char text[KS_STATISTIC_TEXT]);
/* The same as a cell; "-" if the spectrum does not have the statistic. */
struct ks_cell ks_statistic_cell(const struct ks_spectrum *spectrum, enum ks_statistic_id id);
/* Adds the table of the statistics that are shown to readers: name, value, meaning. */
void ks_statistics_describe(const struct ks_spectrum *spectrum, struct ks_document *document);

/* --- The statement: what is known of an operator's eigenvalues, in plain words. --- */

/* What the statement needs beside the statistics. */
struct ks_statement_inputs {
    const struct ks_operator_kind *kind; /* NULL: a matrix of the library's caller */
    int critic, layer;                   /* the diagonal block; -1: all     */
    const char *arrays;                  /* of these arrays; NULL: all      */
    bool products_f32;                   /* float32 products                */
    size_t minibatches;                  /* N: the loss is a mean over them; 0: it is not */
    size_t normals; /* how many null directions are normals of spheres, which are not directions
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
