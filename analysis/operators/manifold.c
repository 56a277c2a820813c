/* The Riemannian Hessian on the product of unit spheres on which weight projection keeps the
 * columns w_j (Absil, Mahony & Sepulchre, "Optimization Algorithms on Matrix Manifolds", 2008,
 * section 5.5; for the sphere: Absil, Mahony & Trumpf 2013, the Weingarten map), g the gradient:
 *
 *   out_j = P_j ((H P v)_j - (w_j' g_j) v_j),   P_j = I - w_j w_j'
 *
 * for the projected columns, and out = H P v for all other parameters. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "net/arch.h"
#include "operators/operator.h"
#include "operators/primal.h"

static const double OFF_SPHERE = 1e-5; /* the largest |w'w - 1| that float32 explains */

/* The columns of a projected layer: a matrix [rows, columns] that starts at parameter `at`. */
struct sphere {
    size_t at, rows, columns;
    double *slope; /* [columns]: w_j' g_j */
};

struct manifold {
    const struct ks_operator *hessian;
    const double *w; /* [n], of the checkpoint */
    size_t n_spheres;
    struct sphere *sphere;
    double *v;           /* [n]: P v */
    struct ks_pool pool; /* of the spheres. Owned */
};

static void manifold_free(void *self)
{
    ks_pool_free(&((struct manifold *)self)->pool);
    free(self);
}

/* u_j' v_j for column j of a sphere. */
static double column_dot(const struct sphere *s, size_t j, const double *u, const double *v)
{
    double sum = 0;

    for (size_t i = 0; i < s->rows; i++)
        sum += u[s->at + i * s->columns + j] * v[s->at + i * s->columns + j];
    return sum;
}

/* out_j += c u_j */
static void column_add(const struct sphere *s, size_t j, double c, const double *u, double *out)
{
    for (size_t i = 0; i < s->rows; i++)
        out[s->at + i * s->columns + j] += c * u[s->at + i * s->columns + j];
}

/* v_j <- P_j v_j for all columns */
static void project(const struct manifold *m, double *v)
{
    for (size_t k = 0; k < m->n_spheres; k++) {
        const struct sphere *s = &m->sphere[k];

#pragma omp parallel for schedule(static)
        for (size_t j = 0; j < s->columns; j++)
            column_add(s, j, -column_dot(s, j, m->w, v), m->w, v);
    }
}

static ks_status manifold_apply(void *self, const double *v, double *out)
{
    struct manifold *m = self;

    memcpy(m->v, v, m->hessian->n * sizeof *v);
    project(m, m->v);
    KS_TRY(ks_operator_apply(m->hessian, m->v, out));
    for (size_t k = 0; k < m->n_spheres; k++)
        for (size_t j = 0; j < m->sphere[k].columns; j++)
            column_add(&m->sphere[k], j, -m->sphere[k].slope[j], v, out);
    project(m, out);
    return KS_OK;
}

static ks_status check_sphere(const struct manifold *m, const struct sphere *s, size_t layer,
                              size_t critic)
{
    for (size_t j = 0; j < s->columns; j++) {
        double square = column_dot(s, j, m->w, m->w);

        if (!(fabs(square - 1) <= OFF_SPHERE))
            return ks_fail(KS_FORMAT,
                           "the manifold operator needs projected columns of norm 1: column %zu of "
                           "layer %zu, critic %zu, has norm %.9g",
                           j, layer, critic, sqrt(square));
    }
    return KS_OK;
}

/* Lists the spheres of the problem's critics and computes the slopes w_j' g_j. */
static ks_status find_spheres(const struct ks_problem *problem, const double *gradient,
                              struct manifold *m)
{
    const struct KS(arch) *arch = problem->checkpoint->critic.arch;
    size_t first = ks_primal_first_critic(problem), critics = ks_primal_critics(problem);

    KS_TRY(ks_pool_alloc(&m->pool, critics * arch->n_layers, sizeof *m->sphere, &m->sphere));
    for (size_t e = first; e < first + critics; e++)
        for (size_t i = 0; i < arch->n_layers; i++) {
            const struct KS(layer) *l = &arch->layer[i];
            struct sphere *s = &m->sphere[m->n_spheres];

            if (l->sphere_rows == 0)
                continue;
            m->n_spheres++;
            s->at = e * arch->parameters + l->offset;
            s->rows = l->sphere_rows;
            s->columns = l->out;
            KS_TRY(check_sphere(m, s, l->number, e));
            KS_TRY(ks_pool_alloc(&m->pool, s->columns, sizeof *s->slope, &s->slope));
            for (size_t j = 0; j < s->columns; j++)
                s->slope[j] = column_dot(s, j, m->w, gradient);
        }
    if (m->n_spheres == 0)
        return ks_fail(KS_FORMAT, "the manifold operator needs a projected layer (project=unit or "
                                  "unit-kernel): the description has none");
    return KS_OK;
}

ks_status ks_manifold_new(const struct ks_problem *problem, bool products_f32,
                          struct ks_operator **out)
{
    static const struct ks_operator MANIFOLD = {.apply = manifold_apply, .free = manifold_free};
    const size_t n = ks_networks_parameters(&problem->checkpoint->critic);
    KS_OWNED_BY(ks_operator_free) struct ks_operator *a = NULL;
    struct manifold *m;
    double loss;

    *out = NULL;
    KS_TRY(ks_operator_new(&MANIFOLD, sizeof *m, &a));
    a->n = n;
    m = a->self;
    m->w = problem->checkpoint->critic.w;
    KS_TRY(ks_arena_numbers(&a->arena, n, &m->v));
    KS_TRY(ks_gradient(problem, &loss, m->v)); /* in the space of P v */
    if (!ks_counting())
        KS_TRY(find_spheres(problem, m->v, m));
    KS_TRY(ks_hessian_new(problem, products_f32, &a->of));
    m->hessian = a->of;
    *out = a, a = NULL;
    return KS_OK;
}
