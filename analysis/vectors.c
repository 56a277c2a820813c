#include <math.h>
#include <stdlib.h>

#include "ks/analysis.h"
#include "ks/memory.h"

static ks_status require_finite(size_t n, const double *v, const char *what)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(v[i]))
            return ks_fail(KS_NUMBER, "%s holds a NaN or an infinity", what);
    return KS_OK;
}

ks_status ks_apply_file(const struct ks_operator *a, const char *in, const char *out,
                        struct ks_watch *watch)
{
    ks_status status = KS_OK;
    double *v = NULL, *products = NULL;
    size_t k;

    KS_GO(ks_vectors_read(in, a->n, &k, &v));
    KS_GO(ks_alloc(k * a->n, sizeof *products, &products));
    watch->products = k;
    KS_GO(ks_watch_start(watch));
    for (size_t i = 0; i < k; i++) {
        double *product = products + i * a->n;

        KS_GO(ks_operator_apply(a, v + i * a->n, product));
        KS_GO(require_finite(a->n, product, "a product"));
        ks_watch_product(watch, i + 1);
    }
    KS_GO(ks_vectors_write(out, k, a->n, products, NULL));
done:
    free(v);
    free(products);
    return status;
}

ks_status ks_gradient_file(const struct ks_problem *problem, const char *out)
{
    const struct ks_networks *critic = &problem->checkpoint->critic;
    size_t n = critic->ensemble * critic->arch->parameters;
    ks_status status = KS_OK;
    double *vector = NULL, loss;

    KS_GO(ks_alloc(n, sizeof *vector, &vector));
    KS_GO(ks_gradient(problem, &loss, vector));
    KS_GO(require_finite(1, &loss, "the loss"));
    KS_GO(require_finite(n, vector, "the gradient"));
    KS_GO(ks_vectors_write(out, 1, n, vector, &loss));
done:
    free(vector);
    return status;
}
