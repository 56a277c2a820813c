/* Simulated runs of the analyzer on known spectra, for the tests of the statements about them: N
 * eigenvalues, ORDER iterations, one or more probes. */
#ifndef KS_TEST_TRIALS_H
#define KS_TEST_TRIALS_H

#include <cblas.h>

#include "test.h"

#include "core/rng.h"
#include "statistics/probe.h"
#include "statistics/share_bounds.h"
#include "statistics/shares.h"

struct lanczos_run {
    size_t n, most;      /* dimension; the largest number of iterations                      */
    const double *value; /* [n]: eigenvalues                                                 */
    const double *start; /* [n], of any norm                                                 */
    double breakdown;    /* stops if beta is below this fraction of the largest one          */
    double noise;        /* standard deviation of the error added to each entry of a product */
    struct ks_rng rng;   /* for the noise                                                    */
};

/* Lanczos with full reorthogonalization: returns the number of iterations; alpha and beta [most];
 * *ended: an invariant subspace was found. */
size_t run_lanczos(struct lanczos_run *run, double *alpha, double *beta, bool *ended);

enum { N = 1200, ORDER = 40, MOST_PROBES = 3, SPECTRA = 6 };

/* The first `null` eigenvalues are known to be zero; at least `least_nullity` of all are zero. */
struct spectrum {
    double value[N];
    size_t null, least_nullity;
};

extern const struct spectra {
    const char *name;
    void (*fill)(struct spectrum *s);
} spectra[SPECTRA];

/* All its zeros are known. */
void fill_all_zeros_known(struct spectrum *s);

/* The results of one simulated run. */
struct trial {
    struct ks_share_probe probe[MOST_PROBES];
    double alpha[MOST_PROBES][ORDER], beta[MOST_PROBES][ORDER];
    struct ks_shares_input in;
};

/* Runs Lanczos from `probes` start vectors; `noise` as in struct lanczos_run. */
void make_trial(const struct spectrum *s, size_t probes, uint64_t seed, double noise,
                struct trial *t);
int by_size(const void *a, const void *b);

/* The true values for a spectrum, with the resolution h. */
struct ks_shares truth_of(const struct spectrum *s, double h, double count_above);

#endif
