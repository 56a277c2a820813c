/* How eigenvectors are printed. */
#include "program/eigenvectors.h"

#include <math.h>
#include <stdlib.h>

#include <jansson.h>

#include "core/say.h"

enum { SHOWN = 3 }; /* layers of a row of the table */

/* --- a table --- */

/* "13_dense 62%, 07_dense 20%, 04_dense 9%": the layers of largest share. */
static void print_layers(FILE *out, const struct ks_eigenvectors *v, size_t i)
{
    const double *share = v->share + i * v->n_layers;
    double before = INFINITY;

    for (size_t shown = 0; shown < SHOWN && shown < v->n_layers; shown++) {
        size_t next = v->n_layers;

        for (size_t k = 0; k < v->n_layers; k++)
            if (share[k] < before && (next == v->n_layers || share[k] > share[next]))
                next = k;
        if (next == v->n_layers || !(share[next] > 0))
            break;
        fprintf(out, "%s%s %.3g%%", shown ? ", " : "", v->layer[next], 100 * share[next]);
        before = share[next];
    }
}

static void print_table(FILE *out, const struct ks_analysis *a, const struct ks_eigenvectors *v)
{
    const struct ks_eigenpairs *p = &v->pairs;
    double together = 0;
    char name[4096];

    ks_escape(a->path, sizeof name, name);
    fprintf(out, "%6s %14s %10s %9s  %s\n", "number", "eigenvalue", "residual", "gradient",
            "layers");
    for (size_t i = 0; i < p->count; i++) {
        fprintf(out, "%6zu %14.7g %10.2e %8.3g%%  ", i, p->value[i], p->residual[i],
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
            name, p->count, a->options->kind->name, p->n, p->steps, 100 * together);
}

/* --- CSV --- */

static void print_csv(FILE *out, const struct ks_analysis *a, const struct ks_eigenvectors *v)
{
    const struct ks_eigenpairs *p = &v->pairs;

    fputs("checkpoint,operator,precision,dimension,steps,number,eigenvalue,residual,gradient_share",
          out);
    for (size_t k = 0; k < v->n_layers; k++)
        fprintf(out, ",%s", v->layer[k]);
    fputc('\n', out);
    for (size_t i = 0; i < p->count; i++) {
        ks_report_csv_text(out, a->path);
        fprintf(out, ",%s,%s,%zu,%zu,%zu,%.17g,%.17g,%.17g", a->options->kind->name,
                a->options->single ? "f32" : "f64", p->n, p->steps, i, p->value[i], p->residual[i],
                v->gradient[i]);
        for (size_t k = 0; k < v->n_layers; k++)
            fprintf(out, ",%.17g", v->share[i * v->n_layers + k]);
        fputc('\n', out);
    }
}

/* --- JSON --- */

static json_t *json_row(const struct ks_eigenvectors *v, size_t i)
{
    const struct ks_eigenpairs *p = &v->pairs;
    json_t *layers = json_object();
    json_t *row = json_pack("{s:f, s:f, s:f, s:o}", "eigenvalue", p->value[i], "residual",
                            p->residual[i], "gradient_share", v->gradient[i], "layers", layers);
    bool failed = !row;

    for (size_t k = 0; !failed && k < v->n_layers; k++)
        failed = json_object_set_new(layers, v->layer[k],
                                     json_real(v->share[i * v->n_layers + k])) != 0;
    if (!failed)
        return row;
    json_decref(row);
    return NULL;
}

static ks_status print_json(FILE *out, const struct ks_analysis *a, const struct ks_eigenvectors *v)
{
    const struct ks_options *o = a->options;
    json_t *list = json_array();
    json_t *object = json_pack("{s:o, s:s, s:s, s:I, s:I, s:f, s:I, s:o}", "checkpoint",
                               ks_report_json_text(a->path), "operator", o->kind->name, "precision",
                               o->single ? "f32" : "f64", "dimension", (json_int_t)v->pairs.n,
                               "steps", (json_int_t)v->pairs.steps, "tolerance", o->residual,
                               "probe_seed", (json_int_t)o->seed, "eigenvectors", list);
    bool failed = !object;
    char *line = NULL;

    for (size_t i = 0; !failed && i < v->pairs.count; i++)
        failed = json_array_append_new(list, json_row(v, i)) != 0;
    if (!failed)
        line = json_dumps(object, JSON_COMPACT);
    if (line)
        fprintf(out, "%s\n", line);
    json_decref(object);
    failed = !line;
    free(line);
    return failed ? ks_fail(KS_MEMORY, "out of memory: the eigenvectors as JSON") : KS_OK;
}

ks_status ks_eigenvectors_report(const struct ks_analysis *a, const struct ks_eigenvectors *v)
{
    FILE *out = a->report->out;

    if (a->report->form == KS_REPORT_TABLE)
        print_table(out, a, v);
    else if (a->report->form == KS_REPORT_CSV)
        print_csv(out, a, v);
    else
        KS_TRY(print_json(out, a, v));
    return ks_report_flush(a->report);
}
