/* Allocation and dispatch of operators; the operators themselves are in products/. */
#include "operators/operator.h"

#include <stdlib.h>

#include "core/memory.h"

ks_status ks_operator_new(const struct ks_operator *prototype, size_t size, struct ks_operator **a)
{
    ks_status status;

    KS_TRY(ks_alloc(1, sizeof **a, a));
    **a = *prototype;
    status = ks_alloc(1, size, &(*a)->self);
    if (status != KS_OK) {
        free(*a);
        *a = NULL;
    }
    return status;
}

ks_status ks_operator_prepare(const struct ks_operator *a, size_t memory)
{
    return a->prepare ? a->prepare(a->self, memory) : KS_OK;
}

ks_status ks_operator_apply(const struct ks_operator *a, const double *v, double *out)
{
    return a->apply(a->self, v, out);
}

struct shared {
    const struct ks_operator *a;
};

static ks_status shared_prepare(void *self, size_t memory)
{
    return ks_operator_prepare(((struct shared *)self)->a, memory);
}

static ks_status shared_apply(void *self, const double *v, double *out)
{
    return ks_operator_apply(((struct shared *)self)->a, v, out);
}

ks_status ks_operator_share(const struct ks_operator *a, struct ks_operator **shared)
{
    static const struct ks_operator SHARED = {
        .prepare = shared_prepare, .apply = shared_apply, .free = free};

    KS_TRY(ks_operator_new(&SHARED, sizeof(struct shared), shared));
    ((struct shared *)(*shared)->self)->a = a;
    (*shared)->n = a->n;
    return KS_OK;
}

void ks_operator_free(struct ks_operator *a)
{
    if (!a)
        return;
    if (a->free)
        a->free(a->self);
    free(a);
}
