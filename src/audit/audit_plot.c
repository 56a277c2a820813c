/* The 99.5% band of the spectrum, drawn by plots/distribution.gp. */
#include <stdlib.h>

#include "audit/audit.h"
#include "core/memory.h"
#include "io/text.h"
#include "report/gnuplot.h"
#include "report/plot_tables.h"

/* The one panel that the script draws; its words are explained in plots/style.gp. */
static const char PANELS[] =
    "archs='critic'; norms='other'; wns='0'; losses='other'; bases='-'; grid_x='0'; "
    "grid_y='0'; grid_columns=1; grid_rows=1; checkpoint_gap=1; ";

static ks_status write_table(const struct ks_audit *a)
{
    struct ks_text text = {0};
    char *path = NULL;
    ks_status status;

    KS_TRY(ks_folder_make_in(a->folder, "tables"));
    KS_TRY(ks_folder_make_in(a->folder, "figures"));
    KS_TRY(ks_print_string(&path, "%s/tables/distribution.csv", a->folder));
    status = ks_text_open(path, &text);
    if (status == KS_OK) {
        fputs(KS_DISTRIBUTION_COLUMNS "\n", text.stream);
        ks_distribution_print("critic", a->spectrum[KS_AUDIT_HESSIAN], text.stream);
    }
    free(path);
    return ks_text_close(&text, status);
}

/* Writes FOLDER/figures/distribution.svg. KS_MISSING without gnuplot, KS_RUN if it fails. */
static ks_status draw(const struct ks_audit *a)
{
    struct ks_gnuplot g = {.dir = a->folder, .steps = 1};
    ks_status status = KS_OK;

    KS_GO(write_table(a));
    KS_GO(ks_gnuplot_find(&g));
    KS_GO(ks_copy_string(PANELS, &g.panels));
    KS_GO(ks_gnuplot_draw(&g, "distribution", "svg"));
done:
    ks_gnuplot_clear(&g);
    return status;
}

ks_status ks_audit_plot(const struct ks_audit *a, struct ks_document *d)
{
    ks_status status;

    if (a->spectrum[KS_AUDIT_HESSIAN]->n_band == 0) {
        ks_document_add(d, KS_BLOCK_NOTE, "There is no plot: %s.",
                        ks_audit_is_zero(a->spectrum[KS_AUDIT_HESSIAN])
                            ? "all eigenvalues are zero"
                            : "the products are too inaccurate for a band of 99.5%");
        return KS_OK;
    }
    status = draw(a);
    if (status == KS_MISSING || status == KS_RUN) { /* the audit does not depend on gnuplot */
        ks_document_add(d, KS_BLOCK_NOTE, "There is no plot: %s.", ks_error_text());
        return KS_OK;
    }
    KS_TRY(status);
    ks_document_add(d, KS_BLOCK_PLOT, "%s/figures/distribution.svg", a->folder);
    ks_document_add(
        d, KS_BLOCK_NOTE,
        "The plot shows how many eigenvalues are larger than x, for x > 0, and how many "
        "are smaller than x, for x < 0. At each x the number lies in the shaded band "
        "with 99.5%%.");
    return KS_OK;
}
