/* Certificates: vectors whose products are computed again in float64, so that the printed bounds
 * hold however large the rounding errors of the run were.
 *
 * Three vectors are formed from the Lanczos vectors of the probes:
 *
 *   y_1, y_2   the Ritz vectors of the largest and of the smallest Ritz value over the probes
 *   y_3        (I - P_Z) Q_m s of the probe with the smallest sigma (jacobi.h), Z being an
 *              orthonormal basis of the known null directions (null_space.h)
 *
 * For every vector y, y'Ay/y'y is at most lambda_max and at least lambda_min, |A y|/|y| is at most
 * lambda_abs_max, and off the null space the smallest |eigenvalue| is at most |A y_3|/|y_3|. */
#ifndef KS_STATISTICS_CERTIFICATE_H
#define KS_STATISTICS_CERTIFICATE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "core/memory.h"
#include "lanczos/lanczos.h"
#include "operators/null_space.h"
#include "operators/operator.h"

/* A product_error above this causes a warning. */
#define KS_WRONG_PRODUCT 1e-3

/* A probe has touched a null direction if more than this part of it is in its Krylov space. */
#define KS_NULL_TOUCHED 1e-5

enum { KS_LEAST_HELD_OUT = 4 }; /* fewer minibatches say too little about others */
enum { KS_Y_LARGEST, KS_Y_SMALLEST, KS_Y_FLAT, KS_CERTIFICATES };

struct ks_certificate {
    bool formed;
    double criterion; /* the vector of the probe with the smallest criterion is certified */
    double *y;        /* [n] */
    double *image;    /* A y as computed by the run, from the Lanczos recurrence */
    /* y'Ay/y'y, |Ay|/|y| and |Ay - y (y'Ay/y'y)|/|y|: with the run's products, and in float64. */
    double run_quotient, run_size, run_residual;
    double quotient, size, residual;
    double error;   /* |image - A y in float64| / |y|                                           */
    double data_se; /* standard error of the quotient over minibatches: the standard deviation
                     * (divisor N - 1) of the minibatches' quotients, divided by sqrt(N); NaN for
                     * N = 1 */
    /* Of y_1 and y_2: the mean quotient, and its standard error, over minibatches that the run has
     * not seen (`held_out`); NaN for y_3, and if there were fewer than KS_LEAST_HELD_OUT. */
    double held_out_quotient, held_out_se;
};

struct ks_certificates {
    size_t n;                          /* the length of a vector                               */
    const struct ks_null_basis *basis; /* NULL: no null direction is known                     */
    struct ks_certificate vector[KS_CERTIFICATES];
    size_t probes, prefixes; /* sigma [probes, prefixes + 1]: from the first prefix, 2 prefix, ...
                              * steps, and in the last column from all steps */
    size_t prefix;           /* sigma is also computed from fewer steps: multiples of this number */
    double *sigma;
    double *length; /* [probes, prefixes + 1]: |s| for the vector y = (I - P_Z) Q_m s of each sigma,
                     * |y| = 1: the factor by which rounding errors of A Q_m s are amplified */
    double *null_weight; /* [probes + 2] |P_Z q_0|^2; 0 for the probe at the gradient; for the one
                          * beside the first probe, number 1, in the directions of Z that the
                          * first probe has not touched (share_bounds.h) */
    /* Set with the probe beside the first one: how many directions of Z the first probe has
     * touched, and the largest |v'z| of its last vector v with another one z, |z| = 1. */
    size_t null_touched;
    double null_last;
    /* The complete start vector g [n] of the probe at the gradient, or NULL; set by the caller
     * before ks_certify, not owned. ks_certify also computes gradient_curvature = g'Ag/g'g. */
    const double *gradient;
    double gradient_curvature;
    /* The minibatches of the checkpoint that follow the run's and are not among them. Set by
     * the caller before ks_certify; 0: none are used. */
    size_t held_out;
    bool certified;        /* the float64 products were computed                               */
    bool refuted;          /* the float64 products show that Z holds a vector that is not null    */
    double error;          /* the largest error of the vectors; 0: not computed                  */
    size_t worst;          /* the coordinate with the largest error                              */
    struct ks_arena arena; /* the arrays. Owned                                            */
};

/* Allocates certificates for probes of at most `order` steps. The caller has set n, probes, prefix
 * and basis, which outlives them, and ends with ks_certificates_clear, also after a failure.
 * KS_MEMORY. */
ks_status ks_certificates_new(size_t order, struct ks_certificates *c);
void ks_certificates_clear(struct ks_certificates *c);
/* Forms the vectors of a finished probe and keeps each that is the best so far; of a probe beside
 * the first one only its null weight. KS_MEMORY, KS_NUMBER. */
ks_status ks_certificates_take(struct ks_certificates *c, const struct ks_lanczos *lanczos);
/* Computes one float64 product of the analyzed operator with each vector, with the gradient if it
 * is set, and with a random vector v that tests Z: as A is symmetric, Z'A v = 0 with positive
 * probability only if A Z = 0. The products share one pass over the minibatches. `memory`: the
 * bytes of a minibatch's activations that a thread may keep between the products. Fails
 * as the operator does. */
ks_status ks_certify(struct ks_certificates *c, const struct ks_problem *problem, size_t memory);
/* ks_certify for an operator that is not a mean over minibatches: one product of `a`, in float64,
 * with each vector; data_se is NaN. Fails as the operator does. */
ks_status ks_certify_operator(struct ks_certificates *c, const struct ks_operator *a);

#endif
