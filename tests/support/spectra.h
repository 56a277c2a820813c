/* Operators with known eigenvalues, and spectra with known statistics and certificates. */
#ifndef KS_TEST_SPECTRA_H
#define KS_TEST_SPECTRA_H

#include <cblas.h>
#include <float.h>

#include "test.h"

#include "io/spectrum.h"
#include "lanczos/slq.h"
#include "operators/null_space.h"
#include "operators/operator.h"
#include "statistics/certificate.h"
#include "statistics/statistics.h"

/* A new operator that is ready for products and may keep all intermediate results. */
ks_status prepared_kind(const struct ks_operator_kind *kind, bool single,
                        const struct ks_problem *problem, struct ks_operator **a);
ks_status prepared(ks_status (*new)(const struct ks_problem *, struct ks_operator **),
                   const struct ks_problem *problem, struct ks_operator **a);

/* An operator, and a Lanczos recurrence, held until the test ends. */
struct ks_operator *hold_operator(struct ks_operator *a);
struct ks_operator *operator_of(ks_status (*new)(const struct ks_problem *, struct ks_operator **),
                                const struct ks_problem *problem);
struct ks_lanczos *lanczos_of(const struct ks_operator *a, size_t order, bool basis_f32);
/* A v, by a new operator of a problem; the matrix [n, n]; held until the test ends. The largest
 * |eigenvalue| of a symmetric matrix. */
double *product_of(ks_status (*new)(const struct ks_problem *, struct ks_operator **),
                   const struct ks_problem *problem, const double *v);
double *dense_of(const struct ks_operator *a);
/* Of a symmetric matrix, ascending; the largest modulus. */
double *eigenvalues(size_t n, const double *matrix);
double largest_eigenvalue(size_t n, const double *matrix);

/* diag(value). Product number `fail_at` fails and number `nan_at` gives a NaN (0: never). */
struct diagonal {
    size_t n;
    const double *value;
    size_t products, fail_at, nan_at;
};

struct ks_operator diagonal_operator(struct diagonal *d);
#define DIAGONAL(size, values) diagonal_operator(&(struct diagonal){.n = (size), .value = (values)})

/* A symmetric matrix [n, n]. */
struct dense {
    size_t n;
    const double *matrix;
};

struct ks_operator dense_operator(struct dense *a);
struct ks_operator laplacian_operator(size_t *n);
double laplacian_eigenvalue(size_t n, size_t k);

/* An empty spectrum; ks_spectrum_free frees it. */
struct ks_spectrum *spectrum_new(void);

/* Stochastic Lanczos quadrature of an operator, by the functions that the pipeline calls. */
struct slq {
    size_t order, probes;
    uint64_t seed;
    bool basis_f32, products_f32, published; /* as in struct ks_lanczos */
    bool complement;        /* one more, in the complement of the first and only random one   */
    const double *gradient; /* the start vector of one more probe; NULL: none */
    /* Called after each probe with a random start vector; may be NULL. */
    ks_status (*on_finished)(void *context, const struct ks_lanczos *lanczos);
    void *context;
};

ks_status slq_run(const struct ks_operator *a, const struct slq *slq, struct ks_spectrum *s);

/* An exact spectrum with these values and weights. */
struct ks_spectrum *exact_spectrum(size_t n, const double *ritz, const double *weight);
void compute_statistics(struct ks_spectrum *s, size_t n);

/* By Lanczos. `draft`: only the statistics of the full run (statistics.h), which is faster. */
struct ks_spectrum *estimate_with(const struct ks_operator *a, size_t order, size_t probes,
                                  uint64_t seed, bool draft);
struct ks_spectrum *estimate_spectrum(const struct ks_operator *a, size_t order, size_t probes);

/* The spectrum with all eigenvalues. */
struct ks_spectrum *exact_with(const struct ks_operator *a, const struct ks_null *null);
void check_statistic(const struct ks_spectrum *s, const char *name, double expected);
bool has_statistic(const struct ks_spectrum *s, const char *name);

struct certified {
    struct ks_null_basis *basis;
    struct ks_certificates certificates;
    struct ks_statistics_inputs inputs;
    struct ks_spectrum *s;
};

/* How Lanczos is run, and what is known of the operator. */
struct certified_run {
    size_t order, probes;
    uint64_t seed;
    const struct ks_null *null; /* NULL: no known null space       */
    size_t operator_rank;       /* a bound of it; 0: none is known  */
    bool certify;               /* forms the certificates' float64 products */
};

struct certified *estimate_certified(struct diagonal *d, const struct certified_run *how);
void certified_free(struct certified *e);

#endif
