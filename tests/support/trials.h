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
    double *basis;       /* [kept + most + 1, n]: its first rows are kept, in whose complement the
                          * iteration is run; NULL: there are none, and it is not wanted     */
    size_t kept;
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
    struct ks_share_probe probe[MOST_PROBES + 1]; /* the last one in the complement */
    double alpha[MOST_PROBES + 1][ORDER], beta[MOST_PROBES + 1][ORDER];
    struct ks_shares_input in;
};

/* Runs Lanczos from `probes` start vectors; `noise` as in struct lanczos_run. */
void make_trial(const struct spectrum *s, size_t probes, uint64_t seed, double noise,
                struct trial *t);
/* The same, with a run of as many steps in the complement of the first one. */
void make_trial_with_complement(const struct spectrum *s, size_t probes, uint64_t seed,
                                double noise, struct trial *t);
/* What is known of a null space of d dimensions beside m vectors, whose parts in it [d] are
 * `vectors`, `stride` numbers apart: *touched, its dimensions along singular values above
 * KS_NULL_TOUCHED; and the squared norm of `next` [d] along all others. */
double null_weight_beside(size_t d, size_t m, size_t stride, const double *vectors,
                          const double *next, size_t *touched, double *last);
int by_size(const void *a, const void *b);

/* The true values for a spectrum, with the resolution h. */
struct ks_shares truth_of(const struct spectrum *s, double h, double count_above);

#endif
