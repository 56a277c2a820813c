#include "program/apply.h"

#include <math.h>
#include <stdlib.h>

#include "core/memory.h"
#include "program/budget.h"
#include "program/provenance.h"

/* E P: of a vector in a file. */
static size_t whole_length(const struct ks_subject *subject)
{
    const struct ks_networks *critic = &subject->problem.checkpoint->critic;

    return critic->ensemble * critic->arch->parameters;
}

static ks_status require_finite(size_t n, const double *v, const char *what)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(v[i]))
            return ks_fail(KS_NUMBER, "%s holds a NaN or an infinity", what);
    return KS_OK;
}

/* The file's vectors on process 0, room for one on the others; *k on all. */
static ks_status read_vectors(const struct ks_team *team, const char *path, size_t n, size_t *k,
                              double **v)
{
    KS_TRY(ks_team_agree(team, ks_team_rank(team) == 0 ? ks_vectors_read(path, n, k, v)
                                                       : ks_alloc(n, sizeof **v, v)));
    ks_team_broadcast(team, 0, sizeof *k, k);
    return KS_OK;
}

ks_status ks_apply_count(const struct ks_options *analysis, const struct ks_team *team,
                         struct ks_subject *subject)
{
    bool reads = ks_team_rank(team) == 0;
    size_t k = 0;

    KS_TRY(ks_team_agree(team, reads ? ks_vectors_count(analysis->apply, whole_length(subject), &k)
                                     : KS_OK));
    ks_team_broadcast(team, 0, sizeof k, &k);
    subject->vectors = k;
    return KS_OK;
}

static ks_status write_vectors(const struct ks_options *analysis, const struct ks_subject *subject,
                               const char *path, size_t k, const double *v, const double *loss)
{
    struct ks_attributes list = {.n = 0};
    ks_status status = ks_provenance_vectors(analysis, subject, loss, &list);

    if (status == KS_OK)
        status = ks_vectors_write(path, k, whole_length(subject), v, &list);
    ks_attributes_clear(&list);
    return status;
}

ks_status ks_apply_file(const struct ks_options *analysis, const struct ks_subject *subject,
                        const struct ks_operator *a, const struct ks_selection *selection,
                        struct ks_monitor *watch)
{
    const bool leads = ks_team_rank(a->team) == 0;
    ks_status status = KS_OK;
    double *v = NULL, *pair = NULL;
    size_t k;

    KS_GO(read_vectors(a->team, analysis->apply, selection->of, &k, &v));
    watch->products = k;
    status = ks_alloc(2 * a->n, sizeof *pair, &pair);
    if (status == KS_OK)
        status = ks_monitor_start(watch);
    KS_GO(ks_team_agree(a->team, status));
    for (size_t i = 0; i < k; i++) {
        double *block = pair, *product = pair + a->n;
        double *whole = leads ? v + i * selection->of : v;

        ks_selection_gather(selection, whole, block);
        ks_team_broadcast(a->team, 0, a->n * sizeof *block, block);
        KS_GO(ks_operator_apply(a, block, product));
        KS_GO(require_finite(a->n, product, "a product"));
        ks_selection_scatter(selection, product, whole);
        ks_monitor_product(watch, i + 1);
    }
    status = leads ? write_vectors(analysis, subject, analysis->output, k, v, NULL) : KS_OK;
    KS_GO(ks_team_agree(a->team, status));
done:
    free(v);
    free(pair);
    return status;
}

/* Finds the gradient within `room` bytes in all, of which `fixed` are taken. */
static ks_status find_gradient(const struct ks_subject *subject, double room, size_t fixed,
                               double *loss, double *gradient)
{
    size_t left = room > (double)fixed ? (size_t)(room - (double)fixed) : 0, taken = left;
    ks_status status = ks_gradient(&subject->problem, &taken, loss, gradient);

    if (taken <= left)
        return status;
    return ks_fail(KS_MEMORY,
                   "%s: --memory: expected at least %.0fK, found %.0fK: checkpoint and gradient "
                   "take %.0fK, finding it %.0fK",
                   subject->path, ceil((double)(fixed + taken) / 1024), floor(room / 1024),
                   ceil((double)fixed / 1024), ceil((double)taken / 1024));
}

ks_status ks_gradient_file(const struct ks_options *analysis, const struct ks_subject *subject,
                           const struct ks_team *world, const struct ks_team *team, size_t start)
{
    size_t n = whole_length(subject), before = ks_alloc_total(), fixed;
    struct ks_subject own = *subject;
    ks_status status = KS_OK;
    double *vector = NULL, *room = NULL, loss;

    own.problem.scale = analysis->scale; /* the published 1/N is one of products */
    status = ks_alloc(n, sizeof *vector, &vector);
    if (status == KS_OK)
        status = ks_alloc(ks_team_room(team, n), sizeof *room, &room);
    fixed = ks_alloc_total() - start;
    if (status == KS_OK)
        status = find_gradient(&own, ks_budget_room(analysis, world, fixed), fixed, &loss, vector);
    KS_GO(ks_team_agree(team, status));
    ks_team_sum(team, 1, &loss);
    ks_team_sum_whole(team, n, room, vector);
    KS_GO(require_finite(1, &loss, "the loss"));
    KS_GO(require_finite(n, vector, "the gradient"));
    if (ks_team_rank(team) == 0)
        status = write_vectors(analysis, &own, analysis->gradient, 1, vector, &loss);
    KS_GO(ks_team_agree(team, status));
done:
    free(vector);
    free(room);
    ks_alloc_freed_since(before);
    return status;
}
