/* A single Lanczos recurrence, into the caller's arrays. */
#include <string.h>

#include "lanczos/jacobi.h"
#include "lanczos/lanczos.h"
#include "library/library.h"

enum { MOST_STEPS = 10000 };

static ks_status run(struct kappascope_operator *a, const struct kappascope_lanczos_options *o,
                     struct ks_lanczos *l)
{
    l->products_f32 = a->options.products_f32;
    if (o->start) {
        KS_TRY(ks_library_finite("start", a->p.a->n, o->start));
        KS_TRY(ks_lanczos_start_at(l, o->start));
    } else {
        ks_lanczos_start(l, o->seed, o->probe);
    }
    while (l->steps < l->order && !l->exhausted)
        KS_TRY(ks_lanczos_step(l, a->p.a));
    return KS_OK;
}

enum kappascope_status kappascope_lanczos(struct kappascope_operator *a,
                                          const struct kappascope_lanczos_options *options,
                                          struct kappascope_recurrence *result)
{
    struct ks_lanczos *l = NULL;
    ks_status status = KS_OK;
    size_t rows;

    KS_GIVEN(a);
    KS_GIVEN(options);
    KS_GIVEN(result);
    result->steps = 0;
    KS_GIVEN(result->alpha);
    KS_GIVEN(result->beta);
    KS_GO(ks_library_range("order", options->order, 1, MOST_STEPS));
    KS_GO(ks_library_range("seed", options->seed, 0, INT64_MAX));
    KS_GO(ks_library_range("probe", options->probe, 0, KS_PROBE_GRADIENT - 1));
    KS_GO(ks_library_fits("the Lanczos vectors",
                          ks_lanczos_bytes(a->p.a->n, options->order, false, NULL)));
    KS_GO(ks_lanczos_new(a->p.a->n, options->order, false, NULL, &l));
    KS_GO(run(a, options, l));
    memcpy(result->alpha, l->alpha, l->steps * sizeof *l->alpha);
    memcpy(result->beta, l->beta, l->steps * sizeof *l->beta);
    rows = l->steps + !l->exhausted;
    if (result->basis)
        memcpy(result->basis, l->basis, rows * l->n * sizeof *l->basis);
    result->steps = l->steps;
done:
    ks_lanczos_free(l);
    return (enum kappascope_status)status;
}

enum kappascope_status kappascope_ritz(size_t m, const double *alpha, const double *beta,
                                       const struct kappascope_rule *rule)
{
    const struct ks_jacobi t = {m, alpha, beta};

    KS_GIVEN(alpha);
    KS_GIVEN(beta);
    KS_GIVEN(rule);
    KS_GIVEN(rule->ritz);
    KS_GIVEN(rule->weight);
    KS_GIVEN(rule->residual);
    KS_PUBLIC(ks_library_range("m", m, 1, MOST_STEPS));
    KS_PUBLIC(ks_library_finite("alpha", m, alpha));
    KS_PUBLIC(ks_library_finite("beta", m, beta));
    return (enum kappascope_status)ks_jacobi_ritz(&t, rule->ritz, rule->weight, rule->residual);
}
