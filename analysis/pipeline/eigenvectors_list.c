/* What `analyze --eigenvectors` prints. */
#include <math.h>
#include <stdio.h>

#include "pipeline/listing.h"
#include "pipeline/pipeline.h"

enum { SHARES = 3, SHARES_TEXT = SHARES * 64 }; /* layers of a row of the table */

/* "13_dense 62%, 07_dense 20%, 04_dense 9%": the layers of largest share. */
static const char *layers_text(const struct ks_eigenvectors *v, size_t i, char text[SHARES_TEXT])
{
    const double *share = v->share + i * v->n_layers;
    double before = INFINITY;
    int used = 0;

    text[0] = '\0';
    for (size_t listed = 0; listed < SHARES && listed < v->n_layers; listed++) {
        size_t next = v->n_layers;

        for (size_t k = 0; k < v->n_layers; k++)
            if (share[k] < before && (next == v->n_layers || share[k] > share[next]))
                next = k;
        if (next == v->n_layers || !(share[next] > 0))
            break;
        used += snprintf(text + used, (size_t)(SHARES_TEXT - used), "%s%s %.3g%%",
                         listed ? ", " : "", v->layer[next], 100 * share[next]);
        before = share[next];
    }
    return text;
}

static void add_table(const struct ks_pipeline *p, struct ks_document *d)
{
    const struct ks_eigenvectors *v = &p->vectors;
    const struct ks_eigenpairs *e = &v->pairs;
    double together = 0;
    char layers[SHARES_TEXT];

    ks_document_columns(d, "", "number, eigenvalue, residual, gradient (%%), layers<");
    for (size_t i = 0; i < e->count; i++) {
        ks_document_cells(
            d, ks_cell_count(i), ks_cell_digits(7, e->value[i]), ks_cell_digits(3, e->residual[i]),
            ks_cell_digits(3, 100 * v->gradient[i]), ks_cell_text(layers_text(v, i, layers)));
        together += v->gradient[i];
    }
    ks_document_add(d, KS_BLOCK_SECTION, "%s", p->path);
    ks_document_add(d, KS_BLOCK_TEXT,
                    "%zu eigenvectors of %s that were found, of %s in %zu dimensions, after %zu "
                    "products with all minibatches; a row's value is within its residual (both by "
                    "products in float64) of an eigenvalue. %.3g%% of the squared norm of the "
                    "gradient lies along them.",
                    e->count, p->options->smallest ? "smallest eigenvalue" : "largest |eigenvalue|",
                    p->options->kind->name, e->n, e->steps, 100 * together);
}

/* --- CSV and JSON --- */

static void list_settings(const struct ks_pipeline *p, bool json, struct ks_attributes *list)
{
    const struct ks_spectrum_options *o = p->options;

    ks_attribute_add_string(list, "operator", o->kind->name);
    ks_attribute_add_string(list, "precision", o->products_f32 ? "f32" : "f64");
    ks_attribute_add_integer(list, "dimension", (int64_t)p->vectors.pairs.n);
    ks_attribute_add_integer(list, "steps", (int64_t)p->vectors.pairs.steps);
    if (!json)
        return;
    ks_attribute_add_number(list, "tolerance", o->residual);
    if (o->smallest)
        ks_attribute_add_string(list, "which", "smallest");
    ks_attribute_add_integer(list, "probe_seed", (int64_t)o->seed);
}

static void list_row(const struct ks_eigenvectors *v, size_t i, bool json,
                     struct ks_attributes *list)
{
    if (!json)
        ks_attribute_add_integer(list, "number", (int64_t)i);
    ks_attribute_add_number(list, "eigenvalue", v->pairs.value[i]);
    ks_attribute_add_number(list, "residual", v->pairs.residual[i]);
    ks_attribute_add_number(list, "gradient_share", v->gradient[i]);
    for (size_t k = 0; k < v->n_layers; k++)
        ks_attribute_add_number(list, v->layer[k], v->share[i * v->n_layers + k]);
}

ks_status ks_eigenvectors_list(struct ks_listing *r, const struct ks_pipeline *p)
{
    const bool json = r->form == KS_LISTING_JSON;
    struct ks_listing_rows rows = {.path = p->path,
                                   .list = "eigenvectors",
                                   .n = p->vectors.pairs.count,
                                   .group = "layers",
                                   .ungrouped = 3};

    if (r->form == KS_LISTING_TABLE) {
        add_table(p, &r->table);
        return ks_listing_flush(r);
    }
    list_settings(p, json, &rows.settings);
    for (size_t i = 0; i < rows.n; i++)
        list_row(&p->vectors, i, json, &rows.cells);
    return ks_listing_print_rows(r, &rows);
}
