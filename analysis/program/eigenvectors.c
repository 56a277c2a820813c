#include "program/eigenvectors.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cblas.h>

#include "core/memory.h"
#include "core/say.h"
#include "lanczos/gradient_start.h"
#include "net/arch.h"
#include "program/stages.h"
#include "spectrum/provenance.h"
#include "statistics/extreme_bound.h"

/* The probability with which an eigenvalue of larger modulus is missed, for each sign. */
static const double FAILURE = 0.0025;

/* A Ritz value may have converged while an eigenvalue of larger modulus has not shown yet. So the
 * search goes on until the random start vector excludes a larger modulus. */
struct search {
    struct ks_analysis *analysis;
    double component; /* of the start vector along any eigenvector, at least, but for FAILURE */
};

/* --- the eigenvectors --- */

static void on_step(void *context, const struct ks_lanczos *l)
{
    const struct search *s = context;

    ks_monitor_step(&s->analysis->monitor, l);
}

/* Whether no eigenvalue has a modulus above that of the largest Ritz value by more than the
 * tolerance. */
static bool is_enough(void *context, const struct ks_lanczos *l, const double *ritz)
{
    const struct search *s = context;
    const double low = ritz[0], high = ritz[l->steps - 1];

    return fmax(high + ks_extreme_bound_excess(l->steps, ritz, l->beta, high, s->component),
                ks_extreme_bound_excess(l->steps, ritz, l->beta, low, s->component) - low) <=
           (1 + s->analysis->options->residual) * fmax(high, -low);
}

static ks_status iterate(struct ks_analysis *a, struct ks_eigenpairs *pairs)
{
    const struct ks_options *o = a->options;
    struct search search = {.analysis = a};
    const struct ks_eigenpairs_watch watch = {&search, on_step, is_enough};
    ks_status status = KS_OK;
    struct ks_lanczos *l = NULL;

    KS_GO(ks_team_agree(
        a->world, ks_lanczos_new(a->block->n, o->order, a->budget.single_basis, &a->team, &l)));
    l->single_products = o->single;
    search.component = ks_extreme_bound_component(l->n, FAILURE);
    ks_lanczos_start(l, o->seed, 0);
    KS_GO(ks_name_checkpoint(
        a, ks_eigenpairs_find(a->block, l, o->eigenvectors, o->residual, &watch, pairs)));
done:
    ks_monitor_end(&a->monitor);
    ks_lanczos_free(l);
    return status;
}

/* What rounding to float32 leaves of the residuals is measured, not estimated. */
static ks_status refine(struct ks_analysis *a, struct ks_eigenpairs *pairs)
{
    struct ks_operator *wide = NULL;
    ks_status status = KS_OK;

    ks_operator_free(a->block); /* in favour of the activations in float64 */
    ks_operator_free(a->full);
    a->block = a->full = NULL;
    KS_GO(ks_team_agree(a->world, ks_analyzed_wide(&a->analyzed, &a->team, a->budget.kept, &wide)));
    KS_GO(ks_team_agree(a->world, ks_eigenpairs_refine(wide, pairs)));
done:
    ks_operator_free(wide);
    return ks_name_checkpoint(a, status);
}

static ks_status share_gradient(struct ks_analysis *a, struct ks_eigenvectors *v)
{
    const struct ks_eigenpairs *p = &v->pairs;
    double *g = NULL, norm;
    ks_status status = KS_OK;

    KS_GO(ks_gradient_start(&a->analyzed, &a->team, &g));
    KS_GO(ks_alloc(p->count, sizeof *v->gradient, &v->gradient));
    norm = g ? cblas_dnrm2((int)p->n, g, 1) : 0;
    for (size_t i = 0; g && i < p->count; i++) {
        double cosine = cblas_ddot((int)p->n, g, 1, p->vector + i * p->n, 1) / norm;

        v->gradient[i] = cosine * cosine;
    }
done:
    free(g);
    return status;
}

/* The number of a layer among those with parameters, for each parameter of a critic. */
static ks_status list_layers(const struct KS(arch) *arch, struct ks_eigenvectors *v, size_t *number)
{
    KS_TRY(ks_alloc(arch->n_layers, sizeof *v->layer, &v->layer));
    for (size_t k = 0; k < arch->n_layers; k++) {
        const struct KS(layer) *l = &arch->layer[k];

        if (l->parameters == 0)
            continue;
        KS(arch_group)(l, v->layer[v->n_layers]);
        for (size_t i = 0; i < l->parameters; i++)
            number[l->offset + i] = v->n_layers;
        v->n_layers++;
    }
    return KS_OK;
}

static ks_status share_layers(const struct ks_analysis *a, struct ks_eigenvectors *v)
{
    const struct KS(arch) *arch = a->checkpoint->critic.arch;
    const size_t *index = a->analyzed.selection->index;
    const struct ks_eigenpairs *p = &v->pairs;
    ks_status status = KS_OK;
    size_t *number = NULL;

    KS_GO(ks_alloc(arch->parameters, sizeof *number, &number));
    KS_GO(list_layers(arch, v, number));
    KS_GO(ks_alloc(p->count * v->n_layers, sizeof *v->share, &v->share));
    for (size_t i = 0; i < p->count; i++)
        for (size_t j = 0; j < p->n; j++) {
            size_t parameter = (index ? index[j] : j) % arch->parameters;
            double y = p->vector[i * p->n + j];

            v->share[i * v->n_layers + number[parameter]] += y * y;
        }
done:
    free(number);
    return status;
}

/* Where float32 products were not accurate enough for the residual that was asked for. */
static void warn(const struct ks_analysis *a, const struct ks_eigenpairs *p)
{
    size_t above = 0;

    for (size_t i = 0; i < p->count; i++)
        above += !(p->residual[i] <= a->options->residual * fabs(p->value[i]));
    if (above > 0 && !a->quiet)
        ks_say("%s: %zu of %zu eigenvectors have a relative residual above %g by products in "
               "float64: use --precision f64",
               a->path, above, p->count, a->options->residual);
}

ks_status ks_eigenvectors_find(struct ks_analysis *a, struct ks_eigenvectors *v)
{
    *v = (struct ks_eigenvectors){.n_layers = 0};
    a->monitor.null_products = 0; /* the null space plays no part */
    a->monitor.products = a->options->order;
    KS_TRY(ks_team_agree(a->world, ks_name_checkpoint(a, ks_monitor_start(&a->monitor))));
    KS_TRY(iterate(a, &v->pairs));
    KS_TRY(refine(a, &v->pairs));
    KS_TRY(ks_team_agree(a->world, ks_name_checkpoint(a, share_gradient(a, v))));
    KS_TRY(ks_team_agree(a->world, ks_name_checkpoint(a, share_layers(a, v))));
    warn(a, &v->pairs);
    return KS_OK;
}

/* --- the file --- */

static ks_status list_attributes(const struct ks_analysis *a, const struct ks_eigenvectors *v,
                                 struct ks_attributes *list)
{
    char *names = NULL, *longer = NULL;
    ks_status status = KS_OK;

    KS_GO(ks_provenance_vectors(&a->analyzed, NULL, list));
    KS_GO(ks_attribute_add_integer(list, "steps", (int64_t)v->pairs.steps));
    KS_GO(ks_attribute_add_number(list, "tolerance", a->options->residual));
    KS_GO(ks_attribute_add_integer(list, "probe_seed", (int64_t)a->options->seed));
    for (size_t k = 0; k < v->n_layers; k++) {
        KS_GO(
            ks_print_string(&longer, "%s%s%s", names ? names : "", names ? " " : "", v->layer[k]));
        free(names);
        names = longer, longer = NULL;
    }
    KS_GO(ks_attribute_add_string(list, "layers", names ? names : ""));
done:
    free(names);
    return status;
}

static ks_status write_file(const struct ks_analysis *a, const struct ks_eigenvectors *v)
{
    const struct ks_selection *selection = a->analyzed.selection;
    const struct ks_eigenpairs *p = &v->pairs;
    const struct ks_vectors_table tables[] = {{"/eigenvalue", 0, p->value},
                                              {"/residual", 0, p->residual},
                                              {"/gradient_share", 0, v->gradient},
                                              {"/layer_share", v->n_layers, v->share},
                                              {NULL, 0, NULL}};
    struct ks_attributes list = {.n = 0};
    ks_status status = KS_OK;
    double *full = NULL;

    KS_GO(ks_alloc(p->count * selection->of, sizeof *full, &full));
    for (size_t i = 0; i < p->count; i++)
        ks_selection_scatter(selection, p->vector + i * p->n, full + i * selection->of);
    KS_GO(list_attributes(a, v, &list));
    KS_GO(ks_vectors_write_tables(
        a->options->output, &(struct ks_vectors){p->count, selection->of, full, &list, tables}));
done:
    free(full);
    ks_attributes_clear(&list);
    return status;
}

ks_status ks_eigenvectors_write(struct ks_analysis *a, const struct ks_eigenvectors *v)
{
    return ks_team_agree(a->world, ks_is_leader(a) ? write_file(a, v) : KS_OK);
}

void ks_eigenvectors_clear(struct ks_eigenvectors *v)
{
    ks_eigenpairs_clear(&v->pairs);
    free(v->layer);
    free(v->share);
    free(v->gradient);
    *v = (struct ks_eigenvectors){.n_layers = 0};
}
