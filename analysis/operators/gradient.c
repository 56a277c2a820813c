#include "operators/gradient.h"

#include <math.h>
#include <string.h>

#include <cblas.h>

#include "core/memory.h"
#include "net/arch.h"
#include "operators/primal.h"

/* --- coordinates --- */

/* g_j -= (w_j' g_j) / (w_j' w_j) w_j for every projected column w_j of every critic. */
static void project(const struct ks_networks *critics, double *g)
{
    const struct KS(arch) *arch = critics->arch;

    for (size_t e = 0; e < critics->ensemble; e++)
        for (size_t i = 0; i < arch->n_layers; i++) {
            const struct KS(layer) *l = &arch->layer[i];
            size_t at = e * arch->parameters + l->offset;

            for (size_t j = 0; l->sphere_rows > 0 && j < l->out; j++) {
                int rows = (int)l->sphere_rows, stride = (int)l->out;
                const double *w = critics->w + at + j;
                double square = cblas_ddot(rows, w, stride, w, stride);
                double dot = cblas_ddot(rows, w, stride, g + at + j, stride);

                cblas_daxpy(rows, -dot / square, w, stride, g + at + j, stride);
            }
        }
}

void ks_gradient_coordinates(const struct ks_problem *problem, double *g, double *block)
{
    const struct ks_checkpoint *c = problem->checkpoint;

    if (problem->kind->spheres)
        project(&c->critic, g);
    if (problem->kind->moving)
        for (size_t i = 0; i < problem->selection->of; i++)
            g[i] = c->adam_v && c->adam_v[i] > 0 ? g[i] / sqrt(ks_preconditioner(c, i)) : 0;
    ks_selection_gather(problem->selection, g, block);
}

/* --- the gradient of the loss --- */

ks_status ks_gradient_start(const struct ks_problem *problem, double **start)
{
    const struct ks_selection *selection = problem->selection;
    KS_CLEARED_BY(ks_arena_free) struct ks_arena arena = {.bytes = 0};
    KS_OWNED double *block = NULL;
    double *g, loss, norm;

    *start = NULL;
    KS_TRY(ks_arena_numbers(&arena, selection->of, &g));
    KS_TRY(ks_gradient(problem, &loss, g));
    if (ks_counting())
        return KS_OK;
    KS_TRY(ks_alloc(selection->n, sizeof *block, &block));
    ks_gradient_coordinates(problem, g, block);
    norm = cblas_dnrm2((int)selection->n, block, 1);
    if (!isfinite(norm))
        return ks_fail(KS_NUMBER, "the gradient holds a NaN or an infinity");
    if (norm > 0)
        *start = block, block = NULL;
    return KS_OK;
}

/* --- the gradients of minibatches --- */

struct gradients {
    struct ks_primal_workers workers; /* with the gradients [E P]                     */
    size_t held;
    double *held_ones;     /* [held, n]                                            */
    double *others;        /* [workers, n]; none if all gradients are held         */
    struct ks_arena arena; /* the arrays. Owned                                    */
};

static void lay_out(struct ks_arena *arena, void *object)
{
    struct gradients *g = object;
    const struct ks_problem *q = g->workers.primal->problem;
    const size_t n = q->selection->n;

    ks_primal_lay_out_workers(arena, &g->workers);
    g->held_ones = KS_TAKE(arena, g->held * n, double);
    g->others = KS_TAKE(arena, g->held < q->minibatches ? g->workers.n * n : 0, double);
}

/* out [n] = the gradient of minibatch i. */
static void find_gradient(const struct ks_primal *primal, size_t i,
                          const struct ks_primal_worker *w, double *out)
{
    const struct ks_problem *q = primal->problem;
    const struct ks_networks *critics = &q->checkpoint->critic;
    const size_t first = ks_primal_first_critic(q), n = critics->arch->parameters;
    const size_t end = first + ks_primal_critics(q);
    const double decay = q->omits_decay ? 0 : q->weight_decay;
    const double all = (double)ks_problem_minibatches(q);

    for (size_t e = first; e < end; e++) {
        memset(w->folded, 0, primal->fold->arch->parameters * sizeof *w->folded);
        for (size_t k = 0; k < primal->microbatches; k++)
            ks_primal_compute(primal, e, ks_microbatch(primal, i * primal->microbatches + k),
                              w->block, w->folded);
        ks_fold_adjoint(primal->fold, &(struct ks_fold_adjoint){.w = critics->w + e * n,
                                                                .bar_dot = w->folded,
                                                                .out = w->gradient + e * n});
    }
    for (size_t k = first * n; k < end * n; k++) /* other critics' are 0 */
        w->gradient[k] = q->scale * (all * primal->unit * w->gradient[k] + decay * critics->w[k]);
    ks_gradient_coordinates(q, w->gradient, out);
}

/* out [end - begin, n] = the gradients of the minibatches [begin, end). */
static void find_gradients(const struct gradients *g, size_t begin, size_t end, double *out)
{
    const struct ks_primal_workers *w = &g->workers;
    const size_t n = w->primal->problem->selection->n;

#pragma omp parallel for num_threads((int)w->n) schedule(static, 1)
    for (size_t k = 0; k < w->n; k++)
        for (size_t i = begin + k; i < end; i += w->n)
            find_gradient(w->primal, i, &w->worker[k], out + (i - begin) * n);
}

/* The part of gram [all, all] that is on the diagonal or above it. */
static void multiply(const struct gradients *g, double *gram)
{
    const struct ks_problem *q = g->workers.primal->problem;
    const size_t all = q->minibatches, workers = g->workers.n;
    const int n = (int)q->selection->n;

    for (size_t begin = 0; begin < all; begin += g->held) {
        const size_t end = begin + g->held < all ? begin + g->held : all;
        const int rows = (int)(end - begin);

        find_gradients(g, begin, end, g->held_ones);
        cblas_dsyrk(CblasRowMajor, CblasUpper, CblasNoTrans, rows, n, 1, g->held_ones, n, 0,
                    gram + begin * all + begin, (int)all);
        for (size_t next = end; next < all; next += workers) {
            const size_t last = next + workers < all ? next + workers : all;

            find_gradients(g, next, last, g->others);
            cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, rows, (int)(last - next), n, 1,
                        g->held_ones, n, g->others, n, 0, gram + begin * all + next, (int)all);
        }
    }
}

ks_status ks_gradient_gram(const struct ks_problem *problem, size_t held, double *gram)
{
    const size_t all = problem->minibatches, before = ks_alloc_total();
    KS_OWNED_BY(ks_primal_free) struct ks_primal *primal = NULL;
    struct gradients g = {
        .held = held < all ? held : all,
        .workers = {.n = ks_primal_threads(problem), .parameters = problem->selection->of}};

    KS_TRY(ks_primal_new(problem, false, &primal));
    g.workers.primal = primal;
    KS_TRY(ks_arena_make(&g.arena, lay_out, &g));
    if (!ks_counting())
        multiply(&g, gram);
    ks_arena_free(&g.arena);
    ks_alloc_freed_since(before);
    for (size_t i = 0; !ks_counting() && i < all; i++)
        for (size_t j = 0; j < i; j++)
            gram[i * all + j] = gram[j * all + i];
    return KS_OK;
}
