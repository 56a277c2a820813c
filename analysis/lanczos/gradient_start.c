/* Sums the gradient over the ranks and maps it to the operator's coordinates. */
#include "lanczos/gradient_start.h"

#include <math.h>
#include <stdlib.h>

#include <cblas.h>

#include "core/memory.h"
#include "operators/selection.h"

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

static void precondition(const struct ks_checkpoint *c, size_t n, double *g)
{
    for (size_t i = 0; i < n; i++)
        g[i] = c->adam_v && c->adam_v[i] > 0 ? g[i] / sqrt(ks_preconditioner(c, i)) : 0;
}

static ks_status sum_gradient(const struct ks_problem *problem, const struct ks_team *team,
                              size_t n, double *g)
{
    double loss, *scratch = NULL;
    ks_status status = ks_gradient(problem, NULL, &loss, g);

    if (status == KS_OK)
        status = ks_alloc(ks_team_scratch(team, n), sizeof *scratch, &scratch);
    status = ks_team_agree(team, status);
    if (status == KS_OK)
        ks_team_sum_vector(team, n, scratch, g);
    free(scratch);
    return status;
}

ks_status ks_gradient_start(const struct ks_problem *problem, const struct ks_team *team,
                            double **start)
{
    const struct ks_selection *selection = problem->selection;
    const struct ks_checkpoint *c = problem->checkpoint;
    double *g = NULL, *block = NULL, norm;
    ks_status status = KS_OK;

    *start = NULL;
    KS_GO(ks_team_agree(team, ks_alloc(selection->of, sizeof *g, &g)));
    KS_GO(ks_team_agree(team, ks_alloc(selection->n, sizeof *block, &block)));
    KS_GO(sum_gradient(problem, team, selection->of, g));
    if (problem->kind->spheres)
        project(&c->critic, g);
    if (problem->kind->moving)
        precondition(c, selection->of, g);
    ks_selection_gather(selection, g, block);
    norm = cblas_dnrm2((int)selection->n, block, 1);
    if (!isfinite(norm))
        status = ks_fail(KS_NUMBER, "the gradient holds a NaN or an infinity");
    else if (norm > 0)
        *start = block, block = NULL;
done:
    free(g);
    free(block);
    return status;
}
