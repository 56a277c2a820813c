/* From an operator to the nodes and weights of its spectral density: by stochastic Lanczos
 * quadrature, or from all eigenvalues of a small operator. Both fill the same fields of a spectrum.
 */
#ifndef KS_LANCZOS_SLQ_H
#define KS_LANCZOS_SLQ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "io/spectrum.h"
#include "lanczos/lanczos.h"
#include "operators/operator.h"

struct ks_slq {
    size_t order, probes; /* both at least 1 */
    uint64_t seed;
    bool single;          /* the Lanczos basis is stored in float32            */
    bool single_products; /* the operator's products are rounded to float32    */
    bool xqc;             /* the published code's iteration (lanczos_xqc.c); requires `single` */
    /* All ranks, `world`, form `groups` groups; the ranks of a group share the work of a probe.
     * `team` is this rank's group, number `group`, which runs the probes group, group + groups, ...
     * NULL and 0: a single rank runs all probes. */
    const struct ks_team *world, *team;
    size_t group, groups;
    /* If not NULL, one more probe follows the random ones; this is its complete start vector [n],
     * not zero. */
    const double *gradient;
    /* Called after each probe with a random start vector, while its Lanczos vectors are in memory;
     * may be NULL. */
    ks_status (*on_finished)(void *context, const struct ks_lanczos *lanczos);
    void *finished_context;
    /* Called after each step; may be NULL. */
    void (*on_step)(void *context, const struct ks_lanczos *lanczos);
    void *context;
};

/* The group of a rank; sizes of groups differ by at most one. */
size_t ks_slq_group(const struct ks_team *world, int rank, size_t groups);

/* The first rank of the group that runs this probe. */
int ks_slq_first(const struct ks_team *world, size_t probe, size_t groups);

/* Runs all probes. Fills probes, gradient, order, alpha, beta, steps, ritz, weight, residual and
 * start_norm2 of an empty spectrum, which owns them also after a failure. All ranks of the world
 * call it, get the same numbers, and fail together: with the operator's error, KS_NUMBER (Lanczos,
 * LAPACK), or KS_MEMORY. */
ks_status ks_slq(const struct ks_operator *a, const struct ks_slq *slq,
                 struct ks_spectrum *spectrum);

/* The parts of ks_slq, for probes whose steps and number are found on the way
 * (spectrum/adaptive.c). Room for `probes` probes of `order` steps in an empty spectrum. KS_MEMORY.
 */
ks_status ks_slq_room(struct ks_spectrum *spectrum, size_t probes, size_t order);
/* The steps of a probe and its Ritz values, as row `row` of the spectrum. KS_MEMORY, KS_NUMBER. */
ks_status ks_slq_store(const struct ks_lanczos *lanczos, size_t row, struct ks_spectrum *spectrum);

enum { KS_EXACT_LIMIT = 8000 }; /* a dense matrix of 512 MB, some minutes of LAPACK */

/* All eigenvalues, from n products and LAPACK: one probe of order n with weights 1/n and residuals
 * 0; alpha, beta and steps stay NULL. `on_product` (may be NULL) is called after each product.
 * KS_USAGE if n > KS_EXACT_LIMIT; KS_NUMBER, KS_MEMORY. */
ks_status ks_exact(const struct ks_operator *a, void (*on_product)(void *context, size_t products),
                   void *context, struct ks_spectrum *spectrum);

/* *error = a lower bound of |a - wide|, for the same operator in float32 and float64: the largest
 * |(a - wide) v| / |v| in twelve steps of the power iteration. Fails as the operators do. */
ks_status ks_exact_error(const struct ks_operator *a, const struct ks_operator *wide,
                         double *error);

#endif
