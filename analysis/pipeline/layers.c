/* The diagonal block of every layer, and the table of them. */
#include "pipeline/pipeline.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/interval.h"
#include "core/memory.h"
#include "pipeline/listing.h"

/* The statistics of a row. */
enum { BOUND = 2, TRACE = 4, SHARE = KS_LAYER_STATISTICS - 1, CELL = 32 };

static const char *name_of(size_t k)
{
    static const enum ks_statistic_id ids[] = {KS_STAT_LAMBDA_MAX, KS_STAT_LAMBDA_MAX_DATA_SE,
                                               KS_STAT_KAPPA_EFFECTIVE_BOUND, KS_STAT_KURTOSIS,
                                               KS_STAT_TRACE};

    return k <= TRACE ? ks_catalogue[ids[k]].name : k < SHARE ? "trace_se" : "trace_share";
}

/* The number of a layer's coordinates that ks_selection_new selects. */
static size_t count_coordinates(const struct ks_problem *q, const struct KS(layer) *l)
{
    const struct ks_networks *critics = &q->checkpoint->critic;
    const double *v = q->kind->moving ? q->checkpoint->adam_v : NULL;
    size_t n = 0;

    for (size_t e = 0; e < critics->ensemble; e++)
        for (size_t i = 0; (q->critic < 0 || (size_t)q->critic == e) && i < l->parameters; i++)
            n += !v || v[e * critics->arch->parameters + l->offset + i] > 0;
    return n;
}

/* A row, with its first three fields, for every layer with parameters; for `preconditioned`, with
 * parameters that have had a gradient. Together the rows have all coordinates of the operator. */
static ks_status list_layers(struct ks_pipeline *p)
{
    const struct KS(arch) *arch = p->checkpoint->critic.arch;

    KS_TRY(ks_alloc(arch->n_layers, sizeof *p->rows, &p->rows));
    for (size_t i = 0; i < arch->n_layers; i++) {
        const struct KS(layer) *l = &arch->layer[i];
        size_t dimension = count_coordinates(&p->problem, l);

        if (dimension > 0)
            p->rows[p->n_rows++] = (struct ks_layer_row){
                .number = l->number, .kind = l->kind->name, .dimension = dimension};
    }
    if (p->n_rows == 0)
        return ks_fail(KS_NUMBER, "--layers: expected a layer with parameters%s, found none",
                       p->options->kind->moving ? " that have had a gradient" : "");
    return KS_OK;
}

/* Finds the layers, the number of products for all of them, and the largest dimension, by which
 * memory is divided. */
static ks_status plan_layers(struct ks_pipeline *p, size_t *products)
{
    const size_t order = p->options->order, probes = p->options->probes;
    size_t largest = 0, before;

    *products = 0;
    /* Of all layers: refuses a critic that does not exist. */
    KS_TRY(ks_pipeline_pose_loss(p, p->options->layer));
    KS_TRY(list_layers(p));
    before = ks_alloc_total();
    for (size_t i = 0; i < p->n_rows; i++) {
        const size_t n = p->rows[i].dimension;

        ks_pipeline_clear(p);
        ks_alloc_freed_since(before);
        KS_TRY(ks_pipeline_pose(p, (int)p->rows[i].number));
        KS_TRY(ks_pipeline_measure_noise(p));
        p->rows[i].noise = p->noise;
        *products += probes * (n < order ? n : order) + ks_null_products(p->space);
        largest = n > largest ? n : largest;
    }
    p->budget.dimension = largest;
    return KS_OK;
}

static ks_status analyze_layer(struct ks_pipeline *p, struct ks_layer_row *row)
{
    ks_pipeline_clear(p);
    KS_TRY(ks_pipeline_pose(p, (int)row->number));
    KS_TRY(ks_pipeline_make_block(p));
    p->monitor.null_products = ks_null_products(p->space);
    KS_TRY(ks_pipeline_from_operator(p));
    KS_TRY(ks_pipeline_statistics(p));
    p->monitor.earlier += p->monitor.null_products + p->monitor.sampled;
    p->monitor.sampled = 0;
    for (size_t i = 0; i < p->spectrum->probes; i++)
        p->monitor.earlier += (size_t)p->spectrum->steps[i];
    ks_pipeline_warn(p);
    row->steps = ks_listing_steps(p->spectrum);
    for (size_t k = 0; k < SHARE; k++)
        row->statistic[k] = ks_statistic(p->spectrum, name_of(k));
    return KS_OK;
}

/* The traces of the diagonal blocks add up to the operator's trace. */
static void share_trace(size_t n, struct ks_layer_row *rows)
{
    double all = 0;

    for (size_t i = 0; i < n; i++)
        all += rows[i].trace;
    for (size_t i = 0; i < n; i++)
        rows[i].trace_share = all != 0 ? rows[i].trace / all : NAN;
}

/* The operator of all coordinates is made once; a layer's products are its products, restricted. */
static ks_status analyze_layers(struct ks_pipeline *p)
{
    size_t products;

    p->by_layers = true;
    KS_TRY(plan_layers(p, &products));
    KS_TRY(ks_pipeline_make_operator(p));
    p->monitor.products = products;
    for (size_t i = 0; i < p->n_rows; i++)
        KS_TRY(analyze_layer(p, &p->rows[i]));
    share_trace(p->n_rows, p->rows);
    return KS_OK;
}

ks_status ks_pipeline_layers(struct ks_pipeline *p)
{
    return ks_pipeline_name(p, analyze_layers(p));
}

/* --- printing --- */

static ks_status print_table(struct ks_listing *r, const struct ks_pipeline *p)
{
    enum { COLUMNS = 4 };
    static const size_t shown[COLUMNS] = {0, BOUND, 3, SHARE};
    struct ks_cell headings[3 + COLUMNS] = {ks_cell_wide(ks_cell_text("layer"), 14),
                                            ks_cell_wide(ks_cell_heading("n"), 8),
                                            ks_cell_wide(ks_cell_heading("m"), 4)};
    char name[CELL];

    for (size_t k = 0; k < COLUMNS; k++)
        headings[3 + k] = ks_cell_wide(ks_cell_heading(name_of(shown[k])), 10);
    ks_listing_headings(r, 3 + COLUMNS, headings);
    for (size_t i = 0; i < p->n_rows; i++) {
        const struct ks_layer_row *row = &p->rows[i];

        snprintf(name, sizeof name, "%02zu %s", row->number, row->kind);
        ks_document_cells(&r->table, ks_cell_name(p->path), ks_cell_text(name),
                          ks_cell_count(row->dimension), ks_cell_count(row->steps));
        for (size_t k = 0; k < COLUMNS; k++) {
            const double value = row->statistic[shown[k]];

            ks_document_cell(&r->table, shown[k] == BOUND ? ks_cell_at_least(4, value)
                                                          : ks_cell_digits(4, value));
        }
    }
    r->rows += p->n_rows;
    return ks_listing_flush(r);
}

static void list_settings(const struct ks_spectrum_options *o, struct ks_attributes *list)
{
    ks_attribute_add_string(list, "operator", o->kind->name);
    ks_attribute_add_string(list, "precision", o->products_f32 ? "f32" : "f64");
    ks_attribute_add_integer(list, "order", (int64_t)o->order);
    ks_attribute_add_integer(list, "probes", (int64_t)o->probes);
    ks_attribute_add_integer(list, "probe_seed", (int64_t)o->seed);
    ks_attribute_add_integer(list, "critic", o->critic);
}

/* NAME_state; all rows have the same columns. */
static void add_state(struct ks_attributes *list, const char *name, double value)
{
    char state[KS_ATTRIBUTE_NAME + sizeof "_state"];

    snprintf(state, sizeof state, "%s_state", name);
    ks_attribute_add_string(list, state, ks_listing_state(value));
}

static void list_row(const struct ks_layer_row *row, bool json, struct ks_attributes *list)
{
    struct ks_attributes noise = {0};

    ks_attribute_add_integer(list, "layer", (int64_t)row->number);
    ks_attribute_add_string(list, "kind", row->kind);
    ks_attribute_add_integer(list, "dimension", (int64_t)row->dimension);
    ks_attribute_add_integer(list, "steps", (int64_t)row->steps);
    for (size_t k = 0; k < KS_LAYER_STATISTICS; k++)
        ks_attribute_add_number(list, name_of(k), row->statistic[k]);
    if (json)
        add_state(list, name_of(BOUND), row->kappa_effective_bound);
    ks_gradient_noise_add(&row->noise, &noise);
    for (size_t i = 0; i < noise.n; i++) {
        ks_attribute_add_number(list, noise.list[i].name, noise.list[i].number);
        if (json)
            add_state(list, noise.list[i].name, noise.list[i].number);
    }
    ks_attributes_clear(&noise);
}

ks_status ks_layers_list(struct ks_listing *r, const struct ks_pipeline *p)
{
    struct ks_listing_rows rows = {.path = p->path, .list = "layers", .n = p->n_rows};

    if (r->form == KS_LISTING_TABLE)
        return print_table(r, p);
    list_settings(p->options, &rows.settings);
    for (size_t i = 0; i < rows.n; i++)
        list_row(&p->rows[i], r->form == KS_LISTING_JSON, &rows.cells);
    return ks_listing_print_rows(r, &rows);
}
