/* The eigenvectors of largest |eigenvalue|, in which layers they lie, and how much of the gradient
 * lies along them. */
#include "pipeline/stages.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cblas.h>
#include <jansson.h>

#include "core/memory.h"
#include "core/say.h"
#include "io/spectrum.h"
#include "net/arch.h"
#include "pipeline/report.h"
#include "statistics/extreme_bound.h"

/* The probability with which an eigenvalue of larger modulus is missed, for each sign. */
static const double FAILURE = 0.0025;

/* A Ritz value may have converged while an eigenvalue of larger modulus has not shown yet. So the
 * search goes on until the random start vector excludes a larger modulus. */
struct search {
    struct ks_pipeline *p;
    double component; /* of the start vector along any eigenvector, at least, but for FAILURE */
};

static void on_step(void *context, const struct ks_lanczos *l)
{
    const struct search *s = context;

    ks_monitor_step(&s->p->monitor, l);
}

/* Whether no eigenvalue has a modulus above that of the largest Ritz value by more than the
 * tolerance. */
static bool is_enough(void *context, const struct ks_lanczos *l, const double *ritz)
{
    const struct search *s = context;
    const double low = ritz[0], high = ritz[l->steps - 1];

    return fmax(high + ks_extreme_bound_excess(l->steps, ritz, l->beta, high, s->component),
                ks_extreme_bound_excess(l->steps, ritz, l->beta, low, s->component) - low) <=
           (1 + s->p->options->residual) * fmax(high, -low);
}

static ks_status iterate(struct ks_pipeline *p, struct ks_eigenpairs *pairs)
{
    const struct ks_spectrum_options *o = p->options;
    struct search search = {.p = p};
    const struct ks_eigenpairs_search how = {o->eigenvectors, o->residual, &search, on_step,
                                             is_enough};
    ks_status status = KS_OK;
    struct ks_lanczos *l = NULL;

    KS_GO(ks_team_agree(p->team,
                        ks_lanczos_new(p->a->n, o->order, p->budget.basis_f32, p->team, &l)));
    l->products_f32 = o->products_f32;
    search.component = ks_extreme_bound_component(l->n, FAILURE);
    ks_lanczos_start(l, o->seed, 0);
    KS_GO(ks_pipeline_name(p, ks_eigenpairs_find(p->a, l, &how, pairs)));
done:
    ks_monitor_end(&p->monitor);
    ks_lanczos_free(l);
    return status;
}

/* What rounding to float32 leaves of the residuals is measured, not estimated. */
static ks_status refine(struct ks_pipeline *p, struct ks_eigenpairs *pairs)
{
    struct ks_operator *wide = NULL;
    ks_status status = KS_OK;

    ks_operator_free(p->a); /* in favour of the activations in float64 */
    ks_operator_free(p->full);
    p->a = p->full = NULL;
    KS_GO(ks_pipeline_agree(
        p, ks_problem_operator(&p->problem, false, p->team, p->budget.kept, &wide)));
    KS_GO(ks_pipeline_agree(p, ks_eigenpairs_refine(wide, pairs)));
done:
    ks_operator_free(wide);
    return status;
}

static ks_status share_gradient(struct ks_pipeline *p, struct ks_eigenvectors *v)
{
    const struct ks_eigenpairs *e = &v->pairs;
    double *g = NULL, norm;
    ks_status status = KS_OK;

    KS_GO(ks_gradient_start(&p->problem, p->team, &g));
    KS_GO(ks_alloc(e->count, sizeof *v->gradient, &v->gradient));
    norm = g ? cblas_dnrm2((int)e->n, g, 1) : 0;
    for (size_t i = 0; g && i < e->count; i++) {
        double cosine = cblas_ddot((int)e->n, g, 1, e->vector + i * e->n, 1) / norm;

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

static ks_status share_layers(const struct ks_pipeline *p, struct ks_eigenvectors *v)
{
    const struct KS(arch) *arch = p->checkpoint->critic.arch;
    const size_t *index = p->selection->index;
    const struct ks_eigenpairs *e = &v->pairs;
    ks_status status = KS_OK;
    size_t *number = NULL;

    KS_GO(ks_alloc(arch->parameters, sizeof *number, &number));
    KS_GO(list_layers(arch, v, number));
    KS_GO(ks_alloc(e->count * v->n_layers, sizeof *v->share, &v->share));
    for (size_t i = 0; i < e->count; i++)
        for (size_t j = 0; j < e->n; j++) {
            size_t parameter = (index ? index[j] : j) % arch->parameters;
            double y = e->vector[i * e->n + j];

            v->share[i * v->n_layers + number[parameter]] += y * y;
        }
done:
    free(number);
    return status;
}

/* Where float32 products were not accurate enough for the residual that was asked for. */
static void warn(const struct ks_pipeline *p, const struct ks_eigenpairs *e)
{
    size_t above = 0;

    for (size_t i = 0; i < e->count; i++)
        above += !(e->residual[i] <= p->options->residual * fabs(e->value[i]));
    if (above > 0 && !p->quiet)
        ks_say("%s: %zu of %zu eigenvectors have a relative residual above %g by products in "
               "float64: use --precision f64",
               p->path, above, e->count, p->options->residual);
}

/* --- the file --- */

static ks_status list_attributes(const struct ks_pipeline *p, struct ks_attributes *list)
{
    const struct ks_eigenvectors *v = &p->vectors;
    char *names = NULL, *longer = NULL;
    ks_status status = KS_OK;

    KS_GO(ks_attributes_vectors(p, NULL, list));
    KS_GO(ks_attribute_add_integer(list, "steps", (int64_t)v->pairs.steps));
    KS_GO(ks_attribute_add_number(list, "tolerance", p->options->residual));
    KS_GO(ks_attribute_add_integer(list, "probe_seed", (int64_t)p->options->seed));
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
    struct ks_attributes list = {.n = 0};
    ks_status status = KS_OK;
    double *full = NULL;

    KS_GO(ks_alloc(e->count * selection->of, sizeof *full, &full));
    for (size_t i = 0; i < e->count; i++)
        ks_selection_scatter(selection, e->vector + i * e->n, full + i * selection->of);
    KS_GO(list_attributes(p, &list));
    KS_GO(ks_vectors_write_tables(
        output, &(struct ks_vectors){e->count, selection->of, full, &list, tables}));
done:
    free(full);
    ks_attributes_clear(&list);
    return status;
}

ks_status ks_pipeline_eigenvectors(struct ks_pipeline *p, const char *output)
{
    struct ks_eigenvectors *v = &p->vectors;

    KS_TRY(ks_pipeline_pose(p));
    KS_TRY(ks_pipeline_make_operator(p));
    p->monitor.null_products = 0; /* the null space plays no part */
    p->monitor.products = p->options->order;
    KS_TRY(ks_pipeline_agree(p, ks_monitor_start(&p->monitor)));
    KS_TRY(iterate(p, &v->pairs));
    KS_TRY(refine(p, &v->pairs));
    KS_TRY(ks_pipeline_agree(p, share_gradient(p, v)));
    KS_TRY(ks_pipeline_agree(p, share_layers(p, v)));
    warn(p, &v->pairs);
    return ks_team_agree(p->team, ks_pipeline_leads(p) ? write_file(p, output) : KS_OK);
}

/* --- printing --- */

enum { SHARES = 3 }; /* layers of a row of the table */

/* --- a table --- */

/* "13_dense 62%, 07_dense 20%, 04_dense 9%": the layers of largest share. */
static void print_layers(FILE *out, const struct ks_eigenvectors *v, size_t i)
{
    const double *share = v->share + i * v->n_layers;
    double before = INFINITY;

    for (size_t listed = 0; listed < SHARES && listed < v->n_layers; listed++) {
        size_t next = v->n_layers;

        for (size_t k = 0; k < v->n_layers; k++)
            if (share[k] < before && (next == v->n_layers || share[k] > share[next]))
                next = k;
        if (next == v->n_layers || !(share[next] > 0))
            break;
        fprintf(out, "%s%s %.3g%%", listed ? ", " : "", v->layer[next], 100 * share[next]);
        before = share[next];
    }
}

static void print_table(FILE *out, const struct ks_pipeline *p)
{
    const struct ks_eigenvectors *v = &p->vectors;
    const struct ks_eigenpairs *e = &v->pairs;
    double together = 0;
    char name[4096];

    ks_escape(p->path, sizeof name, name);
    fprintf(out, "%6s %14s %10s %9s  %s\n", "number", "eigenvalue", "residual", "gradient",
            "layers");
    for (size_t i = 0; i < e->count; i++) {
        fprintf(out, "%6zu %14.7g %10.2e %8.3g%%  ", i, e->value[i], e->residual[i],
                100 * v->gradient[i]);
        print_layers(out, v, i);
        fputc('\n', out);
        together += v->gradient[i];
    }
    fprintf(out,
            "\n%s: %zu eigenvectors of largest |eigenvalue| that were found, of %s in %zu "
            "dimensions,\nafter %zu products with all minibatches; a row's value is within its "
            "residual (both by products in float64)\nof an eigenvalue. %.3g%% of the squared norm "
            "of the gradient lies along them.\n",
            name, e->count, p->options->kind->name, e->n, e->steps, 100 * together);
}

/* --- CSV --- */

static void print_csv(FILE *out, const struct ks_pipeline *p)
{
    const struct ks_eigenvectors *v = &p->vectors;
    const struct ks_eigenpairs *e = &v->pairs;

    fputs("checkpoint,operator,precision,dimension,steps,number,eigenvalue,residual,gradient_share",
          out);
    for (size_t k = 0; k < v->n_layers; k++)
        fprintf(out, ",%s", v->layer[k]);
    fputc('\n', out);
    for (size_t i = 0; i < e->count; i++) {
        ks_report_csv_text(out, p->path);
        fprintf(out, ",%s,%s,%zu,%zu,%zu,%.17g,%.17g,%.17g", p->options->kind->name,
                p->options->products_f32 ? "f32" : "f64", e->n, e->steps, i, e->value[i],
                e->residual[i], v->gradient[i]);
        for (size_t k = 0; k < v->n_layers; k++)
            fprintf(out, ",%.17g", v->share[i * v->n_layers + k]);
        fputc('\n', out);
    }
}

/* --- JSON --- */

static json_t *json_vector(const struct ks_eigenvectors *v, size_t i)
{
    const struct ks_eigenpairs *e = &v->pairs;
    json_t *layers = json_object();
    json_t *row = json_pack("{s:f, s:f, s:f, s:o}", "eigenvalue", e->value[i], "residual",
                            e->residual[i], "gradient_share", v->gradient[i], "layers", layers);
    bool failed = !row;

    for (size_t k = 0; !failed && k < v->n_layers; k++)
        failed = json_object_set_new(layers, v->layer[k],
                                     json_real(v->share[i * v->n_layers + k])) != 0;
    if (!failed)
        return row;
    json_decref(row);
    return NULL;
}

static ks_status print_json(FILE *out, const struct ks_pipeline *p)
{
    const struct ks_spectrum_options *o = p->options;
    const struct ks_eigenvectors *v = &p->vectors;
    json_t *list = json_array();
    json_t *object = json_pack("{s:o, s:s, s:s, s:I, s:I, s:f, s:I, s:o}", "checkpoint",
                               ks_report_json_text(p->path), "operator", o->kind->name, "precision",
                               o->products_f32 ? "f32" : "f64", "dimension", (json_int_t)v->pairs.n,
                               "steps", (json_int_t)v->pairs.steps, "tolerance", o->residual,
                               "probe_seed", (json_int_t)o->seed, "eigenvectors", list);
    bool failed = !object;
    char *line = NULL;

    for (size_t i = 0; !failed && i < v->pairs.count; i++)
        failed = json_array_append_new(list, json_vector(v, i)) != 0;
    if (!failed)
        line = json_dumps(object, JSON_COMPACT);
    if (line)
        fprintf(out, "%s\n", line);
    json_decref(object);
    failed = !line;
    free(line);
    return failed ? ks_fail(KS_MEMORY, "out of memory: the eigenvectors as JSON") : KS_OK;
}

ks_status ks_eigenvectors_report(struct ks_report *r, const struct ks_pipeline *p)
{
    if (r->form == KS_REPORT_TABLE)
        print_table(r->out, p);
    else if (r->form == KS_REPORT_CSV)
        print_csv(r->out, p);
    else
        KS_TRY(print_json(r->out, p));
    return ks_report_flush(r);
}
