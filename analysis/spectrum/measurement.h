/* From an operator to its spectrum: null space, probes, certificates, statistics. The analyzer and
 * the library call these functions in this order. */
#ifndef KS_SPECTRUM_MEASUREMENT_H
#define KS_SPECTRUM_MEASUREMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "io/spectrum.h"
#include "lanczos/lanczos.h"
#include "operators/analyzed.h"
#include "operators/null_basis.h"
#include "operators/null_space.h"
#include "spectrum/data_error.h"
#include "spectrum/trace_samples.h"
#include "statistics/certificate.h"
#include "statistics/statistics.h"
#include "statistics/tolerance.h"

/* The caller sets the fields up to `context` and owns what they point to. The others are zero at
 * first; ks_measurement_clear frees them. */
struct ks_measurement {
    const struct ks_analyzed *analyzed;
    const struct ks_operator *a; /* the analyzed operator; not used by ks_measure_certificates
                                  * unless `exact` or for a matrix of the library's caller */
    size_t n;                    /* dimension of the operator                                   */
    size_t memory;               /* bytes of activations that operators in float64 may keep     */
    size_t spare; /* bytes of activations beside those of the operator                         */
    size_t order, probes; /* Lanczos steps; random start vectors                         */
    const struct ks_tolerances *tolerances; /* then `order` and `probes` are limits (adaptive.h).
                                             * NULL: none                                       */
    size_t fresh;  /* with tolerances: minibatches behind those of the run (certificate.h)      */
    size_t spent;  /* with tolerances: products with single minibatches before this measurement */
    bool growing;  /* with tolerances: more minibatches can be had, so look early whether these are
                    * enough                                                                    */
    uint64_t seed; /* seed of the start vectors                                   */
    bool exact;    /* all eigenvalues, from the dense matrix                      */
    bool single_basis;    /* Lanczos vectors are stored in float32                       */
    bool gradient_probe;  /* one more probe, which starts at the gradient                */
    bool uncertified;     /* leave out the float64 products                              */
    double learning_rate; /* used by sharpness_ratio; NaN: the checkpoint's              */
    /* As in slq.h: all ranks; those that share a product; into how many such groups the ranks are
     * divided. NULL, NULL and 0: a single rank. */
    const struct ks_team *world, *team;
    size_t groups;
    /* Callbacks, which may be NULL: after each step; after each other product, of which `products`
     * were computed so far; and after random vectors for the trace, of which `vectors` were
     * multiplied by a minibatch so far. */
    void (*on_step)(void *context, const struct ks_lanczos *lanczos);
    void (*on_product)(void *context, size_t products);
    void (*on_sample)(void *context, size_t vectors);
    void *context;

    struct ks_null null;           /* what products say of the null space                         */
    struct ks_null_basis *basis;   /* a basis of the null space; NULL: none is known              */
    double *gradient;              /* start vector of the last probe; NULL: none                  */
    struct ks_trace_samples trace; /* with a tolerance for the trace                            */
    struct ks_data_error look;     /* if `growing`                                              */
    struct ks_certificates certificates;
    double exact_error; /* norm of the error of float32 products, if `exact` (statistics.h)    */
    struct ks_spectrum *spectrum;
};

/* All ranks of `world` call the following functions together, and fail together. */

/* Tests the null directions by products, which also find dead coordinates. KS_NUMBER if a product
 * is not finite, KS_MEMORY. */
ks_status ks_measure_null_space(struct ks_measurement *m);
/* Lanczos from every start vector, or LAPACK if `exact`: makes the spectrum with its nodes, weights
 * and residuals. Ends early, without a spectrum, if ks_measurement_is_short. Fails as ks_slq,
 * ks_exact and ks_gradient_start do. */
ks_status ks_measure_probes(struct ks_measurement *m);
/* Float64 products of the vectors behind the bounds; if `exact`, the error of float32 products.
 * Fails as the operator does. */
ks_status ks_measure_certificates(struct ks_measurement *m);

/* The following functions need only this rank. */

/* Whether the early look has found too few minibatches for the tolerances. */
bool ks_measurement_is_short(const struct ks_measurement *m);
/* Whether vectors are formed to be certified: only Lanczos vectors that are orthonormal can give
 * certificates, and those of the published code are not. */
bool ks_measurement_has_certificates(const struct ks_measurement *m);
/* What the statistics need besides the spectrum; it points into `m`. */
struct ks_statistics_terms ks_measurement_terms(const struct ks_measurement *m);
/* Makes an empty spectrum and, for probes of `order` steps, certificates. KS_MEMORY. */
ks_status ks_measurement_allocate(struct ks_measurement *m, size_t order);
/* Adds the statistics to the spectrum. KS_MEMORY, KS_NUMBER. */
ks_status ks_measure_statistics(struct ks_measurement *m);
/* Adds statistics, density and all attributes: the spectrum is as it is stored. Fails as above. */
ks_status ks_measure_all(struct ks_measurement *m);

void ks_measurement_clear(struct ks_measurement *m);

#endif
