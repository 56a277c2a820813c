/* --eigenvectors: those of largest |eigenvalue|, in which layers they lie, and how much of the
 * gradient lies along them. */
#ifndef KS_PROGRAM_EIGENVECTORS_H
#define KS_PROGRAM_EIGENVECTORS_H

#include <stddef.h>

#include "core/error.h"
#include "lanczos/eigenpairs.h"
#include "program/analysis.h"

/* Names are those of the layers' groups in a checkpoint, "02_dense". */
struct ks_eigenvectors {
    struct ks_eigenpairs pairs;
    size_t n_layers;   /* layers with parameters                                           */
    char (*layer)[32]; /* [n_layers]; owned                                                */
    double *share;     /* [count, n_layers]: of an eigenvector's squares, in all critics; owned */
    double *gradient;  /* [count]: (g'y)^2 / |g|^2; 0 if g is zero; owned                  */
};

/* All ranks of the world call the first two functions together, and fail together. */

/* Lanczos steps until the residuals are within the tolerance; then a float64 product with each
 * vector. After ks_analysis_make_operator. KS_NUMBER if --order is too small; KS_MEMORY. */
ks_status ks_eigenvectors_find(struct ks_analysis *analysis, struct ks_eigenvectors *vectors);
/* Writes --output. */
ks_status ks_eigenvectors_write(struct ks_analysis *analysis,
                                const struct ks_eigenvectors *vectors);
void ks_eigenvectors_clear(struct ks_eigenvectors *vectors);

/* Prints a row for each eigenvector: lines of a table, with the three layers of largest share; rows
 * of CSV; or in JSON one object on a line. KS_FULL, KS_MEMORY. */
ks_status ks_eigenvectors_report(const struct ks_analysis *analysis,
                                 const struct ks_eigenvectors *vectors);

#endif
