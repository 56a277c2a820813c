/* A look at the error from few minibatches, early in the first probe. */
#ifndef KS_SPECTRUM_DATA_ERROR_H
#define KS_SPECTRUM_DATA_ERROR_H

#include "core/error.h"
#include "lanczos/lanczos.h"

struct ks_measurement;

struct ks_data_error {
    size_t steps;    /* Lanczos steps before the look; 0: there was none */
    size_t products; /* with all minibatches, of the look               */
    double excess;   /* the largest error in units of its tolerance     */
};

/* Let A = (A_1 + ... + A_N)/N and y the Ritz vector of lambda_max, or of lambda_min, as far as the
 * Lanczos steps have got. The error is the standard error of the N quotients y'A_i y/y'y, in units
 * of the largest absolute Ritz value, as lambda_max_data_se is for the final vector. It is computed
 * for each end that m->tolerances name. For a measurement of a checkpoint's operator on a single
 * rank, N > 1. Fails as the operator does; KS_MEMORY, KS_NUMBER. */
ks_status ks_data_error(const struct ks_measurement *m, const struct ks_lanczos *lanczos,
                        struct ks_data_error *error);

#endif
