#include "program/budget.h"

#include <math.h>

#include <omp.h>

#include "core/memory.h"
#include "lanczos/lanczos.h"
#include "statistics/certificate.h"

/* The vectors in memory beside the operator: the Lanczos basis; the dense matrix; or on rank 0 all
 * vectors of --apply and the file of their products, which is built in memory, and on every rank a
 * factor and its product. Eigenvectors, and on rank 0 their file, come beside the basis; for
 * tolerances of the trace or of lambda_max, a vector and its product for every thread, and one
 * vector more. */
static double held_bytes(const struct ks_options *o, const struct ks_team *team,
                         const struct ks_analyzed *analyzed, const struct ks_budget *b)
{
    const struct ks_networks *critic = &analyzed->problem.checkpoint->critic;
    const double full = (double)ks_networks_parameters(critic);
    const size_t n = b->dimension;

    if (o->apply)
        return ((ks_team_rank(team) == 0 ? 2 * (double)b->vectors : 1) * full + 2 * (double)n) *
               sizeof(double);
    if (o->eigenvectors > 0)
        return ks_lanczos_bytes(n, o->order, b->single_basis, team) +
               (double)o->eigenvectors * ((double)n + (ks_team_rank(team) == 0 ? 2 * full : 0)) *
                   sizeof(double) +
               3 * full * sizeof(double);
    if (o->exact)
        return (double)n * (ks_team_rank(team) == 0 ? (double)n : 1) * sizeof(double);
    return ks_lanczos_bytes(n, o->order, b->single_basis, team) +
           (o->compat ? 0 : ks_certificates_bytes(n)) +
           (o->tolerances.n > 0
                ? (2 * (double)omp_get_max_threads() + 1) * (double)n * sizeof(double)
                : 0) +
           (o->gradient_probe ? 2 * full * sizeof(double) : 0);
}

/* --memory, but not more than is free; without it half of what was free before `fixed` bytes were
 * allocated. The ranks on one machine share its free memory. */
double ks_budget_limit(const struct ks_options *o, const struct ks_team *world, size_t fixed)
{
    double left = (double)ks_memory_available("", world ? (size_t)world->local_size : 1);

    if (o->memory == 0)
        return ((double)fixed + left) / 2;
    return left > 0 ? fmin((double)o->memory, (double)fixed + left) : (double)o->memory;
}

ks_status ks_budget_check(const struct ks_options *o, const struct ks_team *world, const char *path,
                          double bytes)
{
    const double limit = ks_budget_limit(o, world, 0);

    if (bytes <= limit)
        return KS_OK;
    return ks_fail(KS_MEMORY,
                   "%s: --memory: expected at least %.0fK, found %.0fK: the checkpoint's arrays "
                   "alone take %.0fK",
                   path, ceil(bytes / 1024), floor(limit / 1024), ceil(bytes / 1024));
}

/* The file that a refusal names: the file of --apply if a single vector of it would fit, else the
 * checkpoint. */
static const char *too_large(const struct ks_options *o, const struct ks_analyzed *analyzed,
                             const struct ks_budget *b, double limit, double held)
{
    const struct ks_networks *critic = &analyzed->problem.checkpoint->critic;
    const double vector = (double)ks_networks_parameters(critic) * sizeof(double);

    return o->apply && held - 2 * ((double)b->vectors - 1) * vector <= limit ? o->apply
                                                                             : analyzed->path;
}

static ks_status divide(const struct ks_options *o, const struct ks_analyzed *analyzed, double all,
                        double held, struct ks_budget *b)
{
    const double fixed = (double)b->fixed;

    if (fixed + held > all)
        return ks_fail(KS_MEMORY,
                       "%s: --memory: expected at least %.0fK, found %.0fK: checkpoint and "
                       "operator take %.0fK, %s in %zu dimensions %.0fK",
                       too_large(o, analyzed, b, all - fixed, held), ceil((fixed + held) / 1024),
                       floor(all / 1024), ceil(fixed / 1024),
                       o->exact   ? "the dense matrix with columns"
                       : o->apply ? "vectors and products"
                                  : "the Lanczos vectors in float32",
                       b->dimension, ceil(held / 1024));
    b->held = (size_t)held;
    b->kept = (size_t)(all - fixed - held);
    return KS_OK;
}

ks_status ks_budget_divide(const struct ks_options *o, const struct ks_team *world,
                           const struct ks_team *team, const struct ks_analyzed *analyzed,
                           struct ks_budget *b)
{
    const double all = ks_budget_limit(o, world, b->fixed);
    const bool basis = !o->exact && !o->apply;
    double held;
    bool fits;

    b->single_basis = false;
    held = held_bytes(o, team, analyzed, b);
    fits = ks_team_least(world, (double)b->fixed + held <= all) == 1;
    b->squeezed = basis && !o->compat && !fits;
    b->single_basis = basis && (o->compat || !fits);
    if (b->single_basis)
        held = held_bytes(o, team, analyzed, b);
    return ks_team_agree(world, divide(o, analyzed, all, held, b));
}
