/* The trace of A = sum_i A_i from random vectors, a vector of its own for each minibatch i.
 *
 * Let P = Q Q' be the projector on the Lanczos vectors Q that are there already. Then
 *
 *   tr A = sum_j alpha_j + sum_i E (w_i' A_i w_i),   w_i = (I - P) z_i,   z_i = +1 or -1 at random
 *
 * (Chen and Hallman, SIAM J. Matrix Anal. Appl. 44, 2023). The first sum has the largest
 * eigenvalues, so the products scatter little; and since the vectors of the minibatches are
 * independent, their errors average out, which they would not with one vector for all. */
#ifndef KS_SPECTRUM_TRACE_SAMPLES_H
#define KS_SPECTRUM_TRACE_SAMPLES_H

#include <stddef.h>

#include "core/error.h"
#include "io/spectrum.h"
#include "lanczos/lanczos.h"

struct ks_measurement;

struct ks_trace_samples {
    size_t rounds; /* vectors of each minibatch; 0: none were drawn           */
    double value;  /* the trace                                               */
    double se;     /* its standard error                                      */
    double error;  /* half of the 99% interval around `value`, by Student's t */
};

/* Draws vectors until the error is at most `tolerance` times |value|, but at most `most` >= 2 for
 * each minibatch. `lanczos` holds Lanczos vectors of the operator. For a measurement of a
 * checkpoint's operator on a single rank. Fails as the operator does; KS_NUMBER if a product is not
 * finite; KS_MEMORY. */
ks_status ks_trace_sample(const struct ks_measurement *m, const struct ks_lanczos *lanczos,
                          double tolerance, size_t most, struct ks_trace_samples *samples);

/* Replaces `trace`, `trace_lower`, `trace_upper` and, if it is there, `trace_se` in the statistics;
 * does nothing if no vectors were drawn. */
void ks_trace_store(const struct ks_trace_samples *samples, struct ks_spectrum *spectrum);

#endif
