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

#include "core/memory.h"
#include "operators/operator.h"

/* Makes the Hessian in float32 or in float64. */
typedef ks_status hessian_new(const struct ks_problem *problem, struct ks_operator **a);

struct preconditioned {
    struct ks_operator *hessian; /* owned */
    double *root;                /* [n]: D^-1/2, or 0; owned */
    double *v;                   /* [n]: D^-1/2 v; owned     */
};

static void preconditioned_free(void *self)
{
    struct preconditioned *p = self;

    ks_operator_free(p->hessian);
    free(p->root);
    free(p->v);
    free(p);
}

static void scale(size_t n, const double *root, const double *v, double *out)
{
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < n; i++)
        out[i] = root[i] * v[i];
}

static ks_status preconditioned_prepare(void *self, size_t memory)
{
    return ks_operator_prepare(((struct preconditioned *)self)->hessian, memory);
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

static ks_status build(const struct ks_problem *problem, hessian_new *hessian,
                       struct preconditioned *p)
{
    const struct ks_checkpoint *c = problem->checkpoint;

    if (!c->adam_v || c->adam_step < 1)
        return ks_fail(KS_FORMAT, "the preconditioned operator needs Adam's second moment, "
                                  "/optimizer/v, and the attribute step of /optimizer, at least "
                                  "1: the checkpoint holds none");
    KS_TRY(hessian(problem, &p->hessian));
    KS_TRY(ks_alloc(p->hessian->n, sizeof *p->root, &p->root));
    KS_TRY(ks_alloc(p->hessian->n, sizeof *p->v, &p->v));
    for (size_t i = 0; i < p->hessian->n; i++)
        if (c->adam_v[i] > 0)
            p->root[i] = 1 / sqrt(ks_preconditioner(c, i));
    return KS_OK;
}

static ks_status preconditioned_new(const struct ks_problem *problem, hessian_new *hessian,
                                    struct ks_operator **out)
{
    static const struct ks_operator PRECONDITIONED = {.prepare = preconditioned_prepare,
                                                      .apply = preconditioned_apply,
                                                      .free = preconditioned_free};
    ks_status status = KS_OK;
    struct ks_operator *a = NULL;

    *out = NULL;
    KS_GO(ks_operator_new(&PRECONDITIONED, sizeof(struct preconditioned), &a));
    KS_GO(build(problem, hessian, a->self));
    a->n = ks_networks_parameters(&problem->checkpoint->critic);
    *out = a, a = NULL;
done:
    ks_operator_free(a);
    return status;
}

ks_status ks_preconditioned_new_f32(const struct ks_problem *problem, struct ks_operator **a)
{
    return preconditioned_new(problem, ks_hessian_new_f32, a);
}

ks_status ks_preconditioned_new_f64(const struct ks_problem *problem, struct ks_operator **a)
{
    return preconditioned_new(problem, ks_hessian_new_f64, a);
}
