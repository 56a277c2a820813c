/* The eigenvectors of largest |eigenvalue| or of smallest eigenvalue, in which layers they lie, and
 * how much of the gradient lies along them. */
#include "pipeline/pipeline.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <cblas.h>

#include "core/memory.h"
#include "io/spectrum.h"
#include "lanczos/jacobi.h"
#include "net/arch.h"
#include "operators/gradient.h"
#include "statistics/probe.h"

/* The probability with which an eigenvalue beyond those that were found is missed, for each sign.
 */
static const double FAILURE = 0.0025;

/* The Ritz values are computed after each further thirty-second of the steps. */
enum { OFTEN = 32 };

/* The eigenpairs of the Jacobi matrix, by descending key: the modulus, or minus the value. */
struct ritz {
    size_t m;
    struct ritz_value {
        double value, residual, key;
        size_t index;      /* of its vector */
    } * sorted;            /* [m]            */
    double *value;         /* [m], ascending */
    double *vector;        /* [m, m]         */
    struct ks_arena arena; /* the arrays. Owned */
};

static void lay_out_ritz(struct ks_arena *arena, void *object)
{
    struct ritz *r = object;

    r->sorted = KS_TAKE(arena, r->m, struct ritz_value);
    r->value = KS_TAKE(arena, r->m, double);
    r->vector = KS_TAKE(arena, r->m * r->m, double);
}

static int compare(const void *a, const void *b)
{
    const struct ritz_value *x = a, *y = b;
    const double p = x->key, q = y->key;

    return p != q ? (p < q) - (p > q) : (x->index > y->index) - (x->index < y->index);
}

static ks_status find_ritz(const struct ks_lanczos *l, bool smallest, struct ritz *r)
{
    const struct ks_jacobi t = {l->steps, l->alpha, l->beta};

    ks_arena_free(&r->arena);
    r->m = l->steps;
    KS_TRY(ks_arena_make(&r->arena, lay_out_ritz, r));
    if (ks_counting())
        return KS_OK;
    KS_TRY(ks_jacobi_vectors(&t, r->value, r->vector));
    for (size_t i = 0; i < r->m; i++)
        r->sorted[i] = (struct ritz_value){.value = r->value[i],
                                           .residual = l->beta[r->m - 1] *
                                                       fabs(r->vector[i * r->m + r->m - 1]),
                                           .key = smallest ? -r->value[i] : fabs(r->value[i]),
                                           .index = i};
    qsort(r->sorted, r->m, sizeof *r->sorted, compare);
    return KS_OK;
}

/* The first `count` eigenvectors y = Q s of the operator from those of the Jacobi matrix. */
static void form(const struct ks_lanczos *l, const struct ritz *r, size_t count,
                 struct ks_eigenpairs *p)
{
    for (size_t i = 0; i < count; i++) {
        double *y = p->vector + i * p->n, norm;

        p->value[i] = r->sorted[i].value;
        p->residual[i] = r->sorted[i].residual;
        ks_lanczos_combine(l, r->m, r->vector + r->sorted[i].index * r->m, y);
        norm = cblas_dnrm2((int)p->n, y, 1); /* 1 up to the rounding of a basis in float32 */
        cblas_dscal((int)p->n, 1 / norm, y, 1);
    }
}

/* What is missing, into v->shortfall. */
static void describe_shortfall(const struct ks_lanczos *l, const struct ritz *r,
                               const struct ks_spectrum_options *o, size_t converged,
                               struct ks_eigenvectors *v)
{
    const size_t count = o->eigenvectors;
    char negative[64] = "";
    size_t n = 0;

    while (n < r->m && r->value[n] < 0)
        n++;
    if (o->smallest)
        snprintf(negative, sizeof negative, " (%zu Ritz values are negative)", n);
    if (l->exhausted && l->steps < count)
        snprintf(v->shortfall, sizeof v->shortfall,
                 "expected at most %zu, found %zu: the Krylov space ends after %zu Lanczos steps",
                 l->steps, count, l->steps);
    else if (converged == count)
        snprintf(v->shortfall, sizeof v->shortfall,
                 "an eigenvalue %s by more than %g of it cannot be excluded after %zu Lanczos "
                 "steps: expected a larger order or tolerance",
                 o->smallest ? "below the smallest" : "of larger modulus than the largest",
                 o->residual, l->steps);
    else
        snprintf(v->shortfall, sizeof v->shortfall,
                 "%zu of %zu have a relative residual of at most %g after %zu Lanczos steps%s: "
                 "expected a larger order or tolerance, or fewer eigenvectors",
                 converged, count, o->residual, l->steps, negative);
}

/* A Ritz value may have converged while an eigenvalue of larger modulus has not shown yet. So the
 * search goes on until the random start vector, whose component along any eigenvector is at least
 * `component` but for FAILURE, excludes a modulus that is larger by more than the tolerance; of the
 * smallest eigenvalues, one that is smaller by more than the tolerance. */
static bool is_complete(const struct ks_lanczos *l, const double *ritz, double component,
                        const struct ks_spectrum_options *o)
{
    const double low = ritz[0], high = ritz[l->steps - 1], tolerance = o->residual;

    if (o->smallest)
        return ks_extreme_bound_excess(l->steps, ritz, l->beta, low, component) <=
               tolerance * fabs(low);
    return fmax(high + ks_extreme_bound_excess(l->steps, ritz, l->beta, high, component),
                ks_extreme_bound_excess(l->steps, ritz, l->beta, low, component) - low) <=
           (1 + tolerance) * fmax(high, -low);
}

/* Takes Lanczos steps until the residual bounds of the wanted Ritz values are within the tolerance
 * and no eigenvalue is missed, or until there are no more steps; then forms the vectors. */
static ks_status search(struct ks_pipeline *p, struct ks_lanczos *l, struct ks_eigenpairs *pairs)
{
    const struct ks_spectrum_options *o = p->options;
    const size_t count = o->eigenvectors;
    const double component = ks_extreme_bound_component(l->n, FAILURE);
    struct ritz r = {.m = 0};
    ks_status status = KS_OK;
    size_t next = count, converged = 0;
    bool found = false;

    if (ks_counting()) {
        l->steps = l->order;
        status = find_ritz(l, o->smallest, &r);
        goto done;
    }
    while (!l->exhausted && l->steps < l->order && !found) {
        KS_GO(ks_lanczos_step(l));
        KS_GO(ks_monitor_step(p, l));
        if (l->steps < next && l->steps < l->order && !l->exhausted)
            continue;
        KS_GO(find_ritz(l, o->smallest, &r));
        converged = 0;
        for (size_t i = 0; i < count && i < r.m; i++)
            converged += r.sorted[i].residual <= o->residual * fabs(r.sorted[i].value);
        found = converged == count && is_complete(l, r.value, component, o);
        next = l->steps + 1 + l->steps / OFTEN;
    }
    pairs->steps = l->steps;
    if (!found)
        describe_shortfall(l, &r, o, converged, &p->vectors);
    pairs->count = count < r.m ? count : r.m;
    form(l, &r, pairs->count, pairs);
done:
    ks_arena_free(&r.arena);
    return status;
}

static void lay_out(struct ks_arena *arena, void *object)
{
    struct ks_eigenvectors *v = object;
    const size_t count = v->pairs.count;

    v->pairs.value = KS_TAKE(arena, count, double);
    v->pairs.residual = KS_TAKE(arena, count, double);
    v->pairs.vector = KS_TAKE(arena, count * v->pairs.n, double);
    v->gradient = KS_TAKE(arena, count, double);
    v->share = KS_TAKE(arena, count * v->n_layers, double);
    v->layer = (char(*)[32])KS_TAKE(arena, v->n_layers * sizeof *v->layer, char);
}

static void set_sizes(const struct ks_pipeline *p, struct ks_eigenvectors *v)
{
    const struct KS(arch) *arch = p->checkpoint->critic.arch;

    v->pairs = (struct ks_eigenpairs){.n = p->budget.dimension, .count = p->options->eigenvectors};
    v->n_layers = 0;
    for (size_t k = 0; k < arch->n_layers; k++)
        v->n_layers += arch->layer[k].parameters > 0;
}

static ks_status iterate(struct ks_pipeline *p, struct ks_eigenpairs *pairs)
{
    const struct ks_spectrum_options *o = p->options;
    ks_status status = KS_OK;
    struct ks_lanczos *l = NULL;

    KS_GO(ks_lanczos_new(p->a, o->order, p->budget.basis_f32, &l));
    set_sizes(p, &p->vectors);
    KS_GO(ks_arena_make(&p->vectors.arena, lay_out, &p->vectors));
    l->products_f32 = o->products_f32;
    if (!ks_counting())
        ks_lanczos_start(l, o->seed, 0);
    KS_GO(search(p, l, pairs));
done:
    ks_monitor_end(p);
    ks_lanczos_free(l);
    return status;
}

/* Replaces values by Rayleigh quotients and residuals by |A y - value y| / |y|, from a product in
 * float64 with each vector. */
static ks_status multiply(const struct ks_operator *a, struct ks_eigenpairs *p)
{
    const int n = (int)p->n;
    KS_CLEARED_BY(ks_arena_free) struct ks_arena arena = {.bytes = 0};
    double *image;

    KS_TRY(ks_arena_numbers(&arena, p->n, &image));
    if (ks_counting())
        return KS_OK;
    for (size_t i = 0; i < p->count; i++) {
        const double *y = p->vector + i * p->n;
        double square = cblas_ddot(n, y, 1, y, 1);

        KS_TRY(ks_operator_apply(a, y, image));
        p->value[i] = cblas_ddot(n, y, 1, image, 1) / square;
        cblas_daxpy(n, -p->value[i], y, 1, image, 1);
        p->residual[i] = cblas_dnrm2(n, image, 1) / sqrt(square);
        if (!isfinite(p->residual[i]))
            KS_TRY(ks_fail(KS_NUMBER, "the product with eigenvector %zu holds a NaN or an infinity",
                           i));
    }
    return KS_OK;
}

/* What rounding to float32 leaves of the residuals is measured, not estimated. */
static ks_status refine(struct ks_pipeline *p, struct ks_eigenpairs *pairs)
{
    KS_OWNED_BY(ks_operator_free) struct ks_operator *wide = NULL;

    ks_operator_free(p->a); /* in favour of the activations in float64 */
    ks_operator_free(p->full);
    p->a = p->full = NULL;
    ks_count_next();
    KS_TRY(ks_problem_operator(&p->problem, false, p->budget.wide, &wide));
    KS_TRY(multiply(wide, pairs));
    return KS_OK;
}

static ks_status share_gradient(struct ks_pipeline *p, struct ks_eigenvectors *v)
{
    const struct ks_eigenpairs *e = &v->pairs;
    KS_OWNED double *g = NULL;
    double norm;

    KS_TRY(ks_gradient_start(&p->problem, &g));
    norm = g ? cblas_dnrm2((int)e->n, g, 1) : 0;
    for (size_t i = 0; g && i < e->count; i++) {
        double cosine = cblas_ddot((int)e->n, g, 1, e->vector + i * e->n, 1) / norm;

        v->gradient[i] = cosine * cosine;
    }
    return KS_OK;
}

/* The place of a parameter's layer among those with parameters. */
static size_t place_of(const struct KS(arch) *arch, size_t parameter)
{
    size_t place = 0;

    /* `>=` also holds for a parameter before the layer, as the difference wraps */
    for (const struct KS(layer) *l = arch->layer; parameter - l->offset >= l->parameters; l++)
        place += l->parameters > 0;
    return place;
}

static void share_layers(const struct ks_pipeline *p, struct ks_eigenvectors *v)
{
    const struct KS(arch) *arch = p->checkpoint->critic.arch;
    const size_t *index = p->selection->index;
    const struct ks_eigenpairs *e = &v->pairs;

    for (size_t k = 0, n = 0; k < arch->n_layers; k++)
        if (arch->layer[k].parameters > 0)
            KS(arch_group)(&arch->layer[k], v->layer[n++]);
    for (size_t j = 0; j < e->n; j++) {
        const size_t place = place_of(arch, (index ? index[j] : j) % arch->parameters);

        for (size_t i = 0; i < e->count; i++)
            v->share[i * v->n_layers + place] += e->vector[i * e->n + j] * e->vector[i * e->n + j];
    }
}

/* Where float32 products were not accurate enough for the residual that was asked for. */
static void warn(const struct ks_pipeline *p, const struct ks_eigenpairs *e)
{
    size_t above = 0;

    for (size_t i = 0; i < e->count; i++)
        above += !(e->residual[i] <= p->options->residual * fabs(e->value[i]));
    if (above > 0 && !p->quiet && !*p->vectors.shortfall)
        ks_say("%s: %zu of %zu eigenvectors have a relative residual above %g by products in "
               "float64: use --precision f64",
               p->path, above, e->count, p->options->residual);
}

/* --- the file --- */

/* "00_dense/kernel [5, 6], 00_dense/bias [6]": all trained arrays. */
static ks_status list_parameters(const struct KS(arch) *arch, struct ks_attributes *list)
{
    enum { LONGEST = 128 }; /* bytes of an array's name and shape */
    size_t n = 0, used = 0;
    KS_OWNED char *text = NULL;
    char group[32];

    for (size_t k = 0; k < arch->n_layers; k++)
        n += arch->layer[k].n_params;
    KS_TRY(ks_alloc(n + 1, LONGEST, &text));
    for (size_t k = 0; k < arch->n_layers; k++)
        for (size_t i = 0; arch->layer[k].frozen == 0 && i < arch->layer[k].n_params; i++) {
            const struct ks_array *a = &arch->layer[k].param[i];

            KS(arch_group)(&arch->layer[k], group);
            used += (size_t)snprintf(text + used, LONGEST, "%s%s/%s [", used ? ", " : "", group,
                                     a->name);
            if (a->rows > 0)
                used += (size_t)sprintf(text + used, "%zu, ", a->rows);
            used += (size_t)sprintf(text + used, "%zu]", a->columns);
        }
    ks_attribute_add_string(list, "parameters", text);
    return KS_OK;
}

static ks_status list_attributes(const struct ks_pipeline *p, struct ks_attributes *list)
{
    const struct ks_eigenvectors *v = &p->vectors;
    KS_OWNED char *names = NULL;
    size_t used = 0;

    ks_attributes_vectors(p, NULL, list);
    ks_attribute_add_integer(list, "steps", (int64_t)v->pairs.steps);
    ks_attribute_add_number(list, "tolerance", p->options->residual);
    if (p->options->smallest)
        ks_attribute_add_string(list, "which", "smallest");
    if (*v->shortfall)
        ks_attribute_add_string(list, "shortfall", v->shortfall);
    ks_attribute_add_integer(list, "probe_seed", (int64_t)p->options->seed);
    KS_TRY(ks_alloc(v->n_layers + 1, sizeof *v->layer, &names));
    for (size_t k = 0; k < v->n_layers; k++)
        used += (size_t)sprintf(names + used, "%s%s", k > 0 ? " " : "", v->layer[k]);
    ks_attribute_add_string(list, "layers", names);
    return list_parameters(p->checkpoint->critic.arch, list);
}

static ks_status write_file(const struct ks_pipeline *p, const char *output)
{
    const struct ks_selection *selection = p->selection;
    const struct ks_eigenvectors *v = &p->vectors;
    const struct ks_eigenpairs *e = &v->pairs;
    const struct ks_vectors_table tables[] = {{"/eigenvalue", 0, e->value},
                                              {"/residual", 0, e->residual},
                                              {"/gradient_share", 0, v->gradient},
                                              {"/layer_share", v->n_layers, v->share},
                                              {NULL, 0, NULL}};
    KS_CLEARED_BY(ks_attributes_clear) struct ks_attributes list = {.n = 0};
    KS_OWNED double *full = NULL;

    KS_TRY(ks_alloc(e->count * selection->of, sizeof *full, &full));
    for (size_t i = 0; i < e->count; i++)
        ks_selection_scatter(selection, e->vector + i * e->n, full + i * selection->of);
    KS_TRY(list_attributes(p, &list));
    KS_TRY(ks_vectors_write(output,
                            &(struct ks_vectors){e->count, selection->of, full, &list, tables}));
    return KS_OK;
}

ks_status ks_eigenvectors_find(struct ks_pipeline *p)
{
    struct ks_eigenvectors *v = &p->vectors;

    KS_TRY(iterate(p, &v->pairs));
    KS_TRY(refine(p, &v->pairs));
    if (!ks_counting())
        share_layers(p, v);
    return share_gradient(p, v);
}

static ks_status compute(struct ks_pipeline *p)
{
    KS_TRY(ks_pipeline_pose(p, p->options->layer));
    KS_TRY(ks_pipeline_make_operator(p));
    p->monitor.null_products = 0; /* the null space plays no part */
    p->monitor.products = p->options->order;
    ks_monitor_start(p);
    return ks_eigenvectors_find(p);
}

ks_status ks_pipeline_eigenvectors(struct ks_pipeline *p, const char *output)
{
    KS_TRY(ks_pipeline_name(p, compute(p)));
    warn(p, &p->vectors.pairs);
    return write_file(p, output);
}

ks_status ks_eigenvectors_complete(const struct ks_pipeline *p)
{
    return *p->vectors.shortfall
               ? ks_fail(KS_PARTIAL,
                         "%s: eigenvectors: %s; what was found is written with its "
                         "residuals",
                         p->path, p->vectors.shortfall)
               : KS_OK;
}
