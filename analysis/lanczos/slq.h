/* From an operator to the nodes and weights of its spectrum: by stochastic Lanczos quadrature, or
 * exactly for small ones. Both fill the same fields of a spectrum. */
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
    bool single;          /* the Lanczos basis in float32                               */
    bool single_products; /* the operator's products are float32                    */
    bool xqc;             /* the published code's process (lanczos_xqc.c); needs `single`       */
    const char *keep;     /* the stem and the key of basis.h, which keeps the steps; or NULL */
    const char *key;
    /* Where several processes work together: all of them, and the team that shares a probe's work.
     * It is group `group` of `groups` and takes probes group, group + groups, ... NULL, 0: one
     * process does everything. */
    const struct ks_team *world, *team;
    size_t group, groups;
    /* The start vector of one more probe, the last (NULL: there is none): the whole vector [n], not
     * zero. */
    const double *gradient;
    /* Called with each finished probe with a random start vector, whose Lanczos vectors are still
     * there; may be NULL. */
    ks_status (*on_finished)(void *context, const struct ks_lanczos *lanczos);
    void *finished_context;
    /* Called where a probe goes on from steps on disk, and after each step; may be NULL. */
    void (*on_resume)(void *context, const struct ks_lanczos *lanczos);
    void (*on_step)(void *context, const struct ks_lanczos *lanczos);
    void *context;
};

/* The group of a process; sizes of groups differ by one at most. */
size_t ks_slq_group(const struct ks_team *world, int rank, size_t groups);

/* The first process of the group that takes this probe. */
int ks_slq_first(const struct ks_team *world, size_t probe, size_t groups);

/* Fills probes, gradient, order, alpha, beta, steps, ritz, weight, residual and start_norm2 of an
 * empty spectrum, which owns them also after a failure; on every process of the world, which fail
 * together. */
ks_status ks_slq(const struct ks_operator *a, const struct ks_slq *slq,
                 struct ks_spectrum *spectrum);

enum { KS_EXACT_LIMIT = 8000 }; /* a dense matrix of 512 MB, some minutes of LAPACK */

/* All eigenvalues, from n products and LAPACK: one probe of order n with weights 1/n, residuals 0
 * and no alpha, beta and steps. KS_USAGE beyond KS_EXACT_LIMIT. `on_product` (may be NULL) is called
 * after each product. */
ks_status ks_exact(const struct ks_operator *a, void (*on_product)(void *context, size_t products),
                   void *context, struct ks_spectrum *spectrum);

/* The norm of `a` - `wide`, the same operator in float32 and in float64, from below: the largest
 * |(a - wide) v| / |v| in twelve steps of the power iteration. */
ks_status ks_exact_error(const struct ks_operator *a, const struct ks_operator *wide,
                         double *error);

#endif
