/* The figures of a spectrum: a table, one row per figure. */
#ifndef KS_STATISTICS_STATISTICS_H
#define KS_STATISTICS_STATISTICS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "io/spectrum.h"

struct ks_certificates;
struct ks_null;

enum { KS_STATISTICS_PART = 30 }; /* statistics are repeated at m = 30, 60, ... */

/* What the figures need beside the spectrum. */
struct ks_statistics_terms {
    size_t n;             /* dimension of the operator                                        */
    double epsilon;       /* of the arithmetic of its products                                */
    double basis_epsilon; /* of what is done with them: that of the Lanczos vectors, of LAPACK */
    double shift;         /* the operator's value on directions along which the loss does not */
                          /* change: what the weight decay adds                               */
    const struct ks_null *null; /* those directions; NULL: nobody looked                      */
    size_t rank; /* the rank of the operator is at most that; 0: no bound is known          */
    double
        exact_error; /* of an exact spectrum: the norm of the error of its products, 0 in float64 */
    bool gradient;   /* a probe at the gradient was asked for; there is none where that is zero */
    const struct ks_certificates *certificates; /* NULL: none were formed                       */
    /* The published code's Lanczos process: weights of leading parts are made alike, as those of
     * the whole must be already (ks_statistics_unweight), and figures that need weights or an
     * orthonormal basis are left out. */
    bool unweighted;
};

/* Fills spectrum->summary from ritz, weight, residual and, where there, alpha and beta: each figure
 * NAME; NAME_se, its standard error, with two or more probes; NAME_m30, NAME_m60, ... below the
 * order from the leading parts of the Jacobi matrices. */
ks_status ks_statistics(struct ks_spectrum *spectrum, const struct ks_statistics_terms *terms);

/* Gives all Ritz values of a probe the same weight. */
void ks_statistics_unweight(struct ks_spectrum *spectrum);

/* The value of a figure, NaN where it is absent. */
double ks_statistic(const struct ks_spectrum *spectrum, const char *name);

#endif
