/* How the tables of layers and of eigenvectors are printed: as lines, CSV or JSON. */
#include "pipeline/tables.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "core/memory.h"
#include "core/round.h"
#include "core/say.h"

/* --- layers: all forms have the same list of columns --- */

enum { STATISTICS = 7, CELL = 32 };
static const char *const names[STATISTICS] = {
    "lambda_max", "lambda_max_data_se", "kappa_effective_bound", "kurtosis", "trace",
    "trace_se",   "trace_share"};
static const size_t shown[] = {0, 2, 3, 6}; /* in the table */
enum { BOUND = 2, COLUMNS = sizeof shown / sizeof *shown };

static void list_statistics(const struct ks_layer_row *row, double value[STATISTICS])
{
    const double list[STATISTICS] = {row->lambda_max,
                                     row->lambda_max_data_se,
                                     row->kappa_effective_bound,
                                     row->kurtosis,
                                     row->trace,
                                     row->trace_se,
                                     row->trace_share};

    memcpy(value, list, sizeof list);
}

static int width_of(size_t k)
{
    int length = (int)strlen(names[k]);

    return length > 12 ? length : 12;
}

/* A lower bound is rounded down, so that it stays a bound. */
static void print_cell(size_t k, double value, char cell[CELL])
{
    if (isnan(value))
        snprintf(cell, CELL, "-");
    else
        snprintf(cell, CELL, "%.4g", k == BOUND ? ks_round_down(value, 4) : value);
}

static void print_layer_table(struct ks_report *r, const struct ks_pipeline *p)
{
    const struct ks_layer_row *rows = p->rows;
    char cell[CELL], name[4096];

    ks_escape(p->path, sizeof name, name);
    if (r->rows == 0) {
        fprintf(r->out, "%-*s %-16s %9s %5s", r->width, "checkpoint", "layer", "n", "m");
        for (size_t k = 0; k < COLUMNS; k++)
            fprintf(r->out, " %*s", width_of(shown[k]), names[shown[k]]);
        fputc('\n', r->out);
    }
    for (size_t i = 0; i < p->n_rows; i++) {
        double value[STATISTICS];

        snprintf(cell, sizeof cell, "%02zu %s", rows[i].number, rows[i].kind);
        fprintf(r->out, "%-*s %-16s %9zu %5zu", r->width, name, cell, rows[i].dimension,
                rows[i].steps);
        list_statistics(&rows[i], value);
        for (size_t k = 0; k < COLUMNS; k++) {
            print_cell(shown[k], value[shown[k]], cell);
            fprintf(r->out, " %*s", width_of(shown[k]), cell);
        }
        fputc('\n', r->out);
    }
}

static void print_layer_csv(struct ks_report *r, const struct ks_pipeline *p)
{
    const struct ks_layer_row *rows = p->rows;
    const struct ks_spectrum_options *o = p->options;
    if (r->rows == 0) {
        fputs("checkpoint,operator,precision,order,probes,probe_seed,critic,layer,kind,dimension,"
              "steps",
              r->out);
        for (size_t k = 0; k < STATISTICS; k++)
            fprintf(r->out, ",%s", names[k]);
        fputc('\n', r->out);
    }
    for (size_t i = 0; i < p->n_rows; i++) {
        double value[STATISTICS];

        ks_report_csv_text(r->out, p->path);
        fprintf(r->out, ",%s,%s,%zu,%zu,%llu,%d,%zu,%s,%zu,%zu", o->kind->name,
                o->products_f32 ? "f32" : "f64", o->order, o->probes, (unsigned long long)o->seed,
                o->critic, rows[i].number, rows[i].kind, rows[i].dimension, rows[i].steps);
        list_statistics(&rows[i], value);
        for (size_t k = 0; k < STATISTICS; k++)
            fprintf(r->out, isfinite(value[k]) ? ",%.17g" : ",", value[k]);
        fputc('\n', r->out);
    }
}

static json_t *json_layer(const struct ks_layer_row *row)
{
    json_t *object = json_pack("{s:I, s:s, s:I, s:I}", "layer", (json_int_t)row->number, "kind",
                               row->kind, "dimension", (json_int_t)row->dimension, "steps",
                               (json_int_t)row->steps);
    double value[STATISTICS];
    bool failed = !object;

    list_statistics(row, value);
    for (size_t k = 0; k < STATISTICS; k++)
        failed |= json_object_set_new(object, names[k],
                                      isfinite(value[k]) ? json_real(value[k]) : json_null());
    failed |= json_object_set_new(object, "kappa_effective_bound_state",
                                  json_string(isnan(value[BOUND])   ? "unresolved"
                                              : isinf(value[BOUND]) ? "infinite"
                                                                    : "finite"));
    if (failed) {
        json_decref(object);
        return NULL;
    }
    return object;
}

static ks_status print_layer_json(struct ks_report *r, const struct ks_pipeline *p)
{
    const struct ks_layer_row *rows = p->rows;
    const struct ks_spectrum_options *o = p->options;
    json_t *list = json_array();
    json_t *object = json_pack("{s:o, s:s, s:s, s:I, s:I, s:I, s:i}", "checkpoint",
                               ks_report_json_text(p->path), "operator", o->kind->name, "precision",
                               o->products_f32 ? "f32" : "f64", "order", (json_int_t)o->order,
                               "probes", (json_int_t)o->probes, "probe_seed", (json_int_t)o->seed,
                               "critic", o->critic);
    bool failed = !object;
    char *line = NULL;

    for (size_t i = 0; i < p->n_rows; i++)
        failed |= json_array_append_new(list, json_layer(&rows[i])) != 0;
    failed |= json_object_set_new(object, "layers", list) != 0;
    if (!failed)
        line = json_dumps(object, JSON_COMPACT);
    if (line)
        fprintf(r->out, "%s\n", line);
    json_decref(object);
    failed = !line;
    free(line);
    return failed ? ks_fail(KS_MEMORY, "out of memory: the layers as JSON") : KS_OK;
}

ks_status ks_layers_report(struct ks_report *r, const struct ks_pipeline *p)
{
    if (r->form == KS_REPORT_TABLE)
        print_layer_table(r, p);
    else if (r->form == KS_REPORT_CSV)
        print_layer_csv(r, p);
    else
        KS_TRY(print_layer_json(r, p));
    r->rows += p->n_rows;
    return ks_report_flush(r);
}

/* --- eigenvectors --- */

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
