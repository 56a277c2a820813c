/* Checks every statement about a spectrum against all eigenvalues.
 *
 * There are two kinds of statements. Deterministic ones hold for every start vector: bounds from
 * certificates, and counts or projections that use known null directions. The others hold with a
 * probability of at least 99%. A statement that is absent, unresolved (NaN) or trivial (a lower end
 * of 0, an infinite upper end) does not count as false. */
#ifndef KS_TEST_STATEMENTS_H
#define KS_TEST_STATEMENTS_H

#include <lapacke.h>

#include "spectra.h"

#include "core/memory.h"
#include "core/number.h"
#include "operators/gradient.h"
#include "pipeline/pipeline.h"
#include "statistics/beta_distribution.h"

struct truth {
    size_t n;
    double *value;    /* [n] all eigenvalues, ascending; owned */
    double *size;     /* [n] their absolute values, ascending; owned */
    double abs_max;   /* the largest absolute value */
    double tolerance; /* error bound of these eigenvalues; a deviation within it is not judged */
    double float32;   /* norm of the error of the products in float32 */
    double shift;     /* the eigenvalue on directions along which the loss is constant */
    /* The gradient's energy by eigenvalue, in the order of `value`, of sum 1. Owned; may be NULL */
    double *energy;
    double gradient_norm, gradient_curvature;
};

/* Takes ownership of `value`. `relative`: the tolerance as a fraction of the largest size. */
struct truth truth_new(size_t n, double *value, double relative);
void truth_clear(struct truth *t);

/* Every statement, its name, and whether it is deterministic; each has a row in a tally. */
#define EACH_STATEMENT(ROW)                                                                        \
    ROW(LAMBDA_MAX, "lambda_max", true)                                                            \
    ROW(LAMBDA_MIN, "lambda_min", true)                                                            \
    ROW(LAMBDA_MAX_UPPER, "lambda_max_upper", false)                                               \
    ROW(LAMBDA_MIN_LOWER, "lambda_min_lower", false)                                               \
    ROW(KAPPA_LOWER_BOUND, "kappa_lower_bound", true)                                              \
    ROW(KAPPA_EFFECTIVE, "kappa_effective_bound", true)                                            \
    ROW(DIRECTIONS_1E1, "directions_1e1", false)                                                   \
    ROW(DIRECTIONS_1E2, "directions_1e2", false)                                                   \
    ROW(DIRECTIONS_1E3, "directions_1e3", false)                                                   \
    ROW(DIRECTIONS_1E4, "directions_1e4", false)                                                   \
    ROW(KAPPA_Q99, "kappa_q99", false)                                                             \
    ROW(KAPPA_Q90, "kappa_q90", false)                                                             \
    ROW(KAPPA_Q50, "kappa_q50", false)                                                             \
    ROW(ZERO_MASS, "zero_mass", false)                                                             \
    ROW(NEGATIVE_MASS, "negative_mass", false)                                                     \
    ROW(NULL_DIMENSION, "null_dimension", true)                                                    \
    ROW(STABLE_RANK, "stable_rank", true)                                                          \
    ROW(OUTLIERS, "outliers", true)                                                                \
    ROW(GRADIENT_90, "kappa_gradient_90", false)                                                   \
    ROW(GRADIENT_50, "kappa_gradient_50", false)                                                   \
    ROW(GRADIENT_CURVATURE, "gradient_curvature", true)                                            \
    ROW(TRACE, "trace", false)

#define STATEMENT_ID(id, name, certain)  id,
#define STATEMENT_ROW(id, name, certain) {name, certain},

enum statement { EACH_STATEMENT(STATEMENT_ID) STATEMENTS };

static const struct {
    const char *name;
    bool certain; /* deterministic */
} statements[STATEMENTS] = {EACH_STATEMENT(STATEMENT_ROW)};

struct tally {
    size_t made[STATEMENTS], missed[STATEMENTS];
    char miss[1024]; /* the false statements, as text */
    /* Tightness of each statement: upper over lower end, or bound over true value; at least 1.
     * [made], owned by the caller; NULL if not wanted */
    double *tightness[STATEMENTS];
};

/* The spectrum and the truth that its statements are judged by. */
struct judge {
    const struct ks_spectrum *s;
    const struct truth *t;
    const char *suffix; /* "" or _m30, ... */
    size_t null;        /* number of known directions that are projected out */
    bool exact;
    struct tally *tally;
};

double said(const struct judge *j, const char *name, const char *end);

struct interval {
    double low, high;
};

/* Judges all statements about a spectrum, and with `prefixes` those about the prefixes of its
 * iterations. `null`: number of directions that are projected out. */
void judge_spectrum(const struct ks_spectrum *s, const struct truth *t, size_t null, bool prefixes,
                    struct tally *tally);

/* The most misses in `runs` runs that are consistent with a miss rate of `rate`, at the 1%
 * level. */
size_t most_misses(size_t runs, double rate);

struct analysis {
    const struct ks_operator_kind *kind;
    struct ks_problem problem;
    bool single, single_basis; /* products, Lanczos vectors in float32 */
    bool exact, gradient;      /* --exact; --start gradient */
    bool complement;           /* --complement, with one probe */
    size_t order, probes;
    uint64_t seed;
    /* The results; analysis_clear frees them. */
    struct ks_selection *selection;
    struct ks_null_space *space;
    struct ks_null null;
    struct ks_null_basis *basis;
    struct ks_certificates certificates;
    struct ks_spectrum *spectrum;
    double exact_error;
    double *start; /* the gradient; NULL if not wanted or zero */
};

/* The caller calls analysis_clear, also after a failure. */
ks_status analysis_run(struct analysis *o);
void analysis_clear(struct analysis *o);

/* The dimension of the known null space; 0 if the float64 products refuted one of its directions.
 */
size_t analysis_null(const struct analysis *o);

/* The matrix [n, n] of the operator in float64 or float32, symmetrized; the caller frees it.
 * *asymmetry: the largest |A_ij - A_ji| before that, which is due to rounding. */
ks_status analysis_matrix(struct analysis *o, bool single, double **matrix, double *asymmetry);

/* All eigenvalues. Rounding in float64 may have moved them by about 1e-9 of the error in float32.
 * If a probe starts at the gradient, also the gradient's energy on the eigenvectors. */
ks_status truth_find(struct analysis *o, struct truth *t);

#endif
