#include "ks/operator.h"

#include <stdlib.h>

ks_status ks_operator_prepare(const struct ks_operator *a, size_t memory)
{
    return a->prepare ? a->prepare(a->self, memory) : KS_OK;
}

ks_status ks_operator_apply(const struct ks_operator *a, const double *v, double *out)
{
    return a->apply(a->self, v, out);
}

void ks_operator_free(struct ks_operator *a)
{
    if (!a)
        return;
    if (a->free)
        a->free(a->self);
    free(a);
}
