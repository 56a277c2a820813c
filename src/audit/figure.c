/* The figures of an audit: a table and a script of plots/ give a file and a place on the page. */
#include "audit/audit.h"
#include "core/memory.h"
#include "io/file.h"
#include "report/plots.h"

/* The one panel of a script with panels; its words are explained in plots/style.gp. */
static const char PANELS[] =
    "archs='critic'; norms='other'; wns='0'; losses='other'; bases='-'; grid_x='0'; "
    "grid_y='0'; grid_columns=1; grid_rows=1; checkpoint_gap=1; ";

/* Writes FOLDER/tables/NAME.csv and FOLDER/figures/NAME.svg and .png. KS_MISSING without gnuplot,
 * KS_RUN if it fails. */
static ks_status draw(const struct ks_audit *a, const char *name, const struct ks_table *table)
{
    KS_CLEARED_BY(ks_gnuplot_clear) struct ks_gnuplot g = {.dir = a->folder, .steps = 1};

    KS_TRY(ks_folder_make("%s/tables", a->folder));
    KS_TRY(ks_folder_make("%s/figures", a->folder));
    KS_TRY(ks_table_write(table, a->folder, name));
    KS_TRY(ks_gnuplot_find(&g));
    KS_TRY(ks_copy_string(PANELS, &g.panels));
    KS_TRY(ks_gnuplot_draw(&g, name, "svg"));
    return ks_gnuplot_draw(&g, name, "png");
}

void ks_audit_figure(const struct ks_audit *a, const char *name, struct ks_table *table,
                     const char *caption, struct ks_document *d)
{
    const ks_status status = draw(a, name, table);

    ks_table_free(table);
    if (status == KS_MISSING || status == KS_RUN) { /* the audit does not depend on gnuplot */
        ks_document_add(d, KS_BLOCK_NOTE, "There is no plot: %s.", ks_error_text());
        return;
    }
    if (status != KS_OK) {
        d->status = d->status == KS_OK ? status : d->status;
        return;
    }
    ks_document_add(d, KS_BLOCK_FIGURE, "%s/figures/%s.svg", a->folder, name);
    ks_document_add(d, KS_BLOCK_NOTE, "%s", caption);
}
