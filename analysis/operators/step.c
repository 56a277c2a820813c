#include "operators/step.h"

#include <math.h>
#include <string.h>

#include <cblas.h>

#include "core/memory.h"

bool ks_step_exists(const struct ks_problem *problem)
{
    return problem->checkpoint->adam_m && problem->checkpoint->adam_v;
}

/* The loss along the step. */
struct line {
    struct ks_problem problem;       /* at theta - eta u */
    struct ks_checkpoint checkpoint; /* of it            */
    const double *theta;
    double *u, *g, *w;     /* [of the selection]: u, the gradient, theta - eta u */
    double *block, *image; /* [n of the selection]: u, H u                       */
    double loss;           /* L(theta)                                           */
    struct ks_arena arena; /* the arrays. Owned                                  */
};

static void lay_out(struct ks_arena *arena, void *object)
{
    struct line *l = object;
    const struct ks_selection *selection = l->problem.selection;

    l->u = KS_TAKE(arena, selection->of, double);
    l->g = KS_TAKE(arena, selection->of, double);
    l->w = KS_TAKE(arena, selection->of, double);
    l->block = KS_TAKE(arena, selection->n, double);
    l->image = KS_TAKE(arena, selection->n, double);
}

static void find_direction(const struct ks_checkpoint *c, struct line *l)
{
    const struct ks_selection *selection = l->problem.selection;
    const double unbiased = 1 / (1 - pow(c->adam.beta1, (double)c->adam_step));

    for (size_t i = 0; i < selection->of; i++)
        l->u[i] = c->adam_v[i] > 0 ? unbiased * c->adam_m[i] / ks_preconditioner(c, i) : 0;
    ks_selection_gather(selection, l->u, l->block);
    ks_selection_scatter(selection, l->block, l->u);
}

static ks_status find_change(struct line *l, double eta, double *change)
{
    const size_t n = l->problem.selection->of;

    for (size_t i = 0; i < n; i++)
        l->w[i] = l->theta[i] - eta * l->u[i];
    KS_TRY(ks_gradient(&l->problem, change, NULL));
    *change -= l->loss;
    return KS_OK;
}

/* in [at, 2 at] or [at/2, at]: L has fallen at the lower end, and risen at the upper end. Both stay
 * NaN if no such interval is found. */
static ks_status bracket(struct line *l, double at, struct ks_interval *in)
{
    enum { FACTORS = 30 };
    double change;
    bool rises;

    KS_TRY(find_change(l, at, &change));
    rises = !(change <= 0); /* an infinite loss has risen, too */
    for (size_t i = 0; i < FACTORS; i++) {
        const double next = rises ? at / 2 : 2 * at;

        KS_TRY(find_change(l, next, &change));
        if (rises == (change <= 0)) {
            *in = (struct ks_interval){fmin(at, next), fmax(at, next)};
            return KS_OK;
        }
        at = next;
    }
    return KS_OK;
}

/* Halves the interval, on a logarithmic scale. */
static ks_status narrow(struct line *l, struct ks_interval *in)
{
    static const double WIDTH = 1.02;
    double change;

    while (in->upper / in->lower > WIDTH) {
        const double middle = sqrt(in->lower * in->upper);

        KS_TRY(find_change(l, middle, &change));
        if (change <= 0)
            in->lower = middle;
        else
            in->upper = middle;
    }
    return KS_OK;
}

/* `slope` = g'u; `bend` = u'Hu. */
static ks_status find_critical(struct line *l, double slope, double bend, struct ks_step *step)
{
    const int n = (int)l->problem.selection->of;
    struct ks_interval eta = {NAN, NAN};

    if (!(slope > 0))
        return KS_OK;
    KS_TRY(bracket(
        l, bend > 0 ? 2 * slope / bend : cblas_dnrm2(n, l->theta, 1) / cblas_dnrm2(n, l->u, 1),
        &eta));
    KS_TRY(narrow(l, &eta));
    step->critical = 2 / sqrt(eta.lower * eta.upper);
    step->in = (struct ks_interval){2 / eta.upper, 2 / eta.lower};
    return KS_OK;
}

/* image = H u. */
static ks_status multiply(const struct ks_problem *problem, struct line *l)
{
    KS_OWNED_BY(ks_operator_free) struct ks_operator *h = NULL;
    struct ks_problem of_loss = *problem;

    of_loss.kind = ks_operator_kind_find("hessian");
    KS_TRY(ks_problem_operator(&of_loss, false, 0, &h));
    return ks_counting() ? KS_OK : ks_operator_apply(h, l->block, l->image);
}

static ks_status measure(const struct ks_problem *problem, struct line *l, double eta,
                         struct ks_step *step)
{
    const struct ks_selection *selection = problem->selection;
    double slope, bend, square = 0;

    KS_TRY(ks_arena_make(&l->arena, lay_out, l));
    if (!ks_counting()) {
        find_direction(problem->checkpoint, l);
        square = cblas_ddot((int)selection->n, l->block, 1, l->block, 1);
        if (!(square > 0))
            return KS_OK;
    }
    KS_TRY(ks_gradient(problem, &l->loss, l->g ? l->g : &slope));
    KS_TRY(multiply(problem, l));
    if (ks_counting())
        return KS_OK;
    l->theta = problem->checkpoint->critic.w;
    l->checkpoint = *problem->checkpoint;
    l->checkpoint.critic.w = l->w;
    l->problem.checkpoint = &l->checkpoint;
    slope = cblas_ddot((int)selection->of, l->u, 1, l->g, 1);
    bend = cblas_ddot((int)selection->n, l->block, 1, l->image, 1);
    step->curvature = bend / square;
    if (!isnan(eta)) {
        step->quadratic = eta * (eta * bend / 2 - slope);
        KS_TRY(find_change(l, eta, &step->change));
    }
    return find_critical(l, slope, bend, step);
}

ks_status ks_step_measure(const struct ks_problem *problem, double eta, struct ks_step *step)
{
    const size_t before = ks_alloc_total();
    struct line l = {.problem = *problem};
    ks_status status;

    *step = (struct ks_step){NAN, NAN, NAN, NAN, {NAN, NAN}};
    status = measure(problem, &l, eta, step);
    ks_arena_free(&l.arena);
    ks_alloc_freed_since(before);
    return status;
}
