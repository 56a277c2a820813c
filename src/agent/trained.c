#include "agent/trained.h"

#include <stdlib.h>
#include <string.h>

#include "core/memory.h"

ks_status KS(reals)(size_t n, real **out)
{
    return ks_alloc(n, sizeof **out, out);
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

ks_status KS(trained_allocate)(const struct KS(net) *train, const struct KS(net) *eval,
                               const struct KS(net) *forward, struct KS(trained) *t)
{
    size_t n = train->arch->parameters, primal = larger(train->primal, eval->primal);

    KS_TRY(KS(reals)(n, &t->w));
    KS_TRY(KS(reals)(train->arch->states, &t->state));
    KS_TRY(KS(reals)(n, &t->m));
    KS_TRY(KS(reals)(n, &t->v));
    KS_TRY(KS(reals)(n, &t->g));
    KS_TRY(KS(reals)(larger(primal, forward->primal), &t->primal));
    KS_TRY(KS(reals)(larger(train->adjoint, eval->adjoint), &t->adjoint));
    return KS(reals)(KS(widest)(train->arch), &t->columns);
}

void KS(trained_free)(struct KS(trained) *t)
{
    real *block[] = {t->w,      t->state,  t->m,       t->v,      t->g,
                     t->target, t->primal, t->adjoint, t->columns};

    for (size_t i = 0; i < sizeof block / sizeof *block; i++)
        free(block[i]);
}

ks_status KS(trained_init)(const struct KS(arch) *arch, const struct ks_starts *starts,
                           struct ks_rng rng, struct KS(trained) *t)
{
    const size_t size = arch->parameters * sizeof *t->w;

    KS_TRY(KS(init_network)(arch, starts, &rng, t->w, t->state));
    KS(project)(arch, t->w, t->columns);
    if (t->target)
        memcpy(t->target, t->w, size);
    memset(t->m, 0, size);
    memset(t->v, 0, size);
    return KS_OK;
}
