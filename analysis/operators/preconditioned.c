/* The Hessian preconditioned by Adam, whose largest eigenvalue decides whether Adam's steps are
 * stable (Cohen et al., Adaptive gradient methods at the edge of stability, arXiv 2207.14484,
 * 2022):
 *
 *   D^-1/2 H D^-1/2,   D = sqrt(vhat) + eps,   vhat = v / (1 - beta2^step)
 *
 * v is the optimizer's second moment in the checkpoint. A parameter with v = 0 never had a
 * gradient; its row and column are set to zero. */
#include <math.h>
#include <stdlib.h>

#include "operators/operator.h"

struct preconditioned {
    const struct ks_operator *hessian;
    double *root; /* [n]: D^-1/2, or 0            */
    double *v;    /* [n]: D^-1/2 v, behind `root` */
};

static void scale(size_t n, const double *root, const double *v, double *out)
{
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < n; i++)
        out[i] = root[i] * v[i];
}

static ks_status preconditioned_apply(void *self, const double *v, double *out)
{
    struct preconditioned *p = self;
    size_t n = p->hessian->n;

    scale(n, p->root, v, p->v);
    KS_TRY(ks_operator_apply(p->hessian, p->v, out));
    scale(n, p->root, out, out);
    return KS_OK;
}

ks_status ks_preconditioned_new(const struct ks_problem *problem, bool products_f32,
                                struct ks_operator **a)
{
    static const struct ks_operator PRECONDITIONED = {.apply = preconditioned_apply, .free = free};
    const struct ks_checkpoint *c = problem->checkpoint;
    struct ks_operator *hessian = NULL;
    struct preconditioned *p;
    double *vectors;

    *a = NULL;
    if (!ks_counting() && (!c->adam_v || c->adam_step < 1))
        return ks_fail(KS_FORMAT, "the preconditioned operator needs Adam's second moment, "
                                  "/optimizer/v, and the attribute step of /optimizer, at least "
                                  "1: the checkpoint holds none");
    KS_TRY(ks_hessian_new(problem, products_f32, &hessian));
    KS_TRY(ks_operator_around(&PRECONDITIONED, sizeof *p, hessian, &vectors, a));
    if (ks_counting())
        return KS_OK;
    p = (*a)->self;
    p->hessian = hessian;
    p->root = vectors;
    p->v = vectors + hessian->n;
    for (size_t i = 0; i < hessian->n; i++)
        if (c->adam_v[i] > 0)
            p->root[i] = 1 / sqrt(ks_preconditioner(c, i));
    return KS_OK;
}
