/* Certificates: vectors whose products are computed once more, in float64, so that what is printed
 * as a bound holds whatever the rounding of the run was.
 *
 * Three vectors are formed from the Lanczos vectors of the probes:
 *
 *   y_1, y_2   the Ritz vectors of the largest and of the smallest Ritz value over the probes
 *   y_3        (I - P_Z) Q_m s of the probe with the smallest sigma (deflation.h), Z being an
 *              orthonormal basis of the known null directions (null_basis.h)
 *
 * For every vector y, y'Ay/y'y is at most lambda_max and at least lambda_min, |A y|/|y| is at most
 * lambda_abs_max, and off the null space the smallest |eigenvalue| is at most |A y_3|/|y_3|. */
#ifndef KS_STATISTICS_CERTIFICATE_H
#define KS_STATISTICS_CERTIFICATE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "lanczos/lanczos.h"
#include "operators/null_basis.h"
#include "operators/operator.h"
#include "operators/operator_kinds.h"
#include "operators/selection.h"
#include "operators/team.h"

/* A product_error above this is warned of. */
#define KS_WRONG_PRODUCT 1e-3

enum { KS_Y_LARGEST, KS_Y_SMALLEST, KS_Y_FLAT, KS_CERTIFICATES };

struct ks_certificate {
    bool formed;
    double rank;   /* the vector with the smallest rank over the probes is certified */
    double *y;     /* owned; a slice of the vector while probes run, then all of it */
    double *image; /* owned; A y as the run has it, from the Lanczos recurrence     */
    double run_quotient, run_size, run_residual; /* y'Ay/y'y, |Ay|/|y|, |Ay - y (y'Ay/y'y)|/|y| */
    double quotient, size, residual;             /* the same with the float64 product           */
    double error;   /* |A y as the run has it - A y in float64| / |y|                           */
    double data_se; /* standard error of the quotient over minibatches: the standard deviation
                     * (divisor N - 1) of the minibatches' quotients, divided by sqrt(N); NaN for
                     * N = 1 */
};

struct ks_certificates {
    size_t n;
    const struct ks_null_basis *basis; /* NULL: no null direction is known                     */
    struct ks_certificate vector[KS_CERTIFICATES];
    size_t probes, parts; /* sigma [probes, parts + 1]: from the first part, 2 part, ... steps,
                           * and at the end of each row from all */
    size_t part;
    double *sigma;
    double *length; /* likewise: |s| of the vector y = (I - P_Z) Q_m s of each sigma, |y| = 1. Where
                     * most of Q_m s is in Z, the rounding of A Q_m s counts that many times */
    double *null_weight; /* [probes + 1] |P_Z q_0|^2; 0 for the probe at the gradient */
    /* The start vector of the probe at the gradient, whole; NULL: there is none. Set before
     * ks_certify, not owned. Its quotient g'Ag/g'g in float64 is found along with the others. */
    const double *gradient;
    double gradient_curvature;
    bool certified; /* the float64 products were computed                               */
    bool refuted;   /* the float64 product found a direction of Z that is none            */
    double error;   /* the largest error of the vectors; 0: nothing was computed          */
    size_t worst;   /* the coordinate with the largest share in it                        */
};

/* What certificates are made for. */
struct ks_certificates_room {
    size_t n, length;     /* numbers of a vector; of these in this rank's slice               */
    size_t probes, order; /* of the run; `order` is the largest number of steps               */
    size_t part; /* sigma is also computed from the leading part, 2 part, ... steps below order */
    const struct ks_null_basis *basis; /* NULL: no null direction is known. Outlives them     */
};

/* Allocates what `room` asks for. The caller ends with ks_certificates_clear, also after a failure.
 * KS_MEMORY. */
ks_status ks_certificates_new(const struct ks_certificates_room *room, struct ks_certificates *c);
void ks_certificates_clear(struct ks_certificates *c);
/* The bytes that they take: six vectors, and as many to collect them. */
double ks_certificates_bytes(size_t n);

/* Forms the vectors of a probe that has finished, and keeps those that are the best so far. All
 * processes of the probe's team call it. KS_MEMORY, KS_NUMBER. */
ks_status ks_certificates_take(struct ks_certificates *c, const struct ks_lanczos *lanczos);
/* Gives every process of the world the best vectors of all groups. `groups` and `group` as in
 * slq.h. */
ks_status ks_certificates_collect(struct ks_certificates *c, const struct ks_team *world,
                                  const struct ks_team *team, size_t groups);

/* One float64 product with each vector, with the gradient if there is one, and one with a random
 * vector v that tests Z: since A is symmetric, Z'A v = 0 but for rounding, with probability 1 only
 * where A Z = 0. The products share one pass over the minibatches. `memory`: bytes that a thread
 * may keep of a minibatch's activations between the products. All processes of the team call it.
 * Fails as the operator does. */
ks_status ks_certify(struct ks_certificates *c, const struct ks_problem *problem,
                     const struct ks_operator_kind *kind, const struct ks_selection *selection,
                     const struct ks_team *team, size_t memory);
/* The same for an operator that is not a mean over minibatches: one product of `a`, in float64,
 * with each vector; data_se is NaN. For one process. Fails as the operator does. */
ks_status ks_certify_operator(struct ks_certificates *c, const struct ks_operator *a);

#endif
