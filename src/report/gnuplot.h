/* Runs gnuplot with a script of plots/ on the tables in a folder. */
#ifndef KS_REPORT_GNUPLOT_H
#define KS_REPORT_GNUPLOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "core/error.h"

struct ks_gnuplot {
    const char *dir;       /* has tables/ and figures/                                      */
    char *program, *plots; /* gnuplot, and the folder of the scripts; owned                 */
    char *panels;          /* statements that describe the panels (plots/style.gp); owned   */
    size_t steps;          /* where runs end                                                */
};

/* What plots/style.gp says of an architecture: words, and the base of a variant ("-": it is none).
 */
struct ks_gnuplot_look {
    const char *name; /* NULL: its number, from 1 */
    const char *normalization, *loss, *base;
    bool weight_normalization;
};
/* Prints "archs='bn+ce ln+ce'; norms='bn ln'; ...": a word per architecture. */
void ks_gnuplot_print_looks(size_t n, const struct ks_gnuplot_look *look, FILE *out);

/* Finds gnuplot and the scripts. KS_MISSING. The caller ends with ks_gnuplot_clear in any case. */
ks_status ks_gnuplot_find(struct ks_gnuplot *gnuplot);
void ks_gnuplot_clear(struct ks_gnuplot *gnuplot);

/* Runs plots/NAME.gp, which writes dir/figures/NAME.FORMAT (png, pdf, svg); the file appears
 * complete or not at all. KS_MISSING if the script is missing, KS_RUN if gnuplot fails. */
ks_status ks_gnuplot_draw(const struct ks_gnuplot *gnuplot, const char *name, const char *format);
/* Draws it in all three formats or, without `draw`, removes what an earlier call drew from data
 * that have gone. */
ks_status ks_gnuplot_update(const struct ks_gnuplot *gnuplot, const char *name, bool draw);

/* Copies the text of gnuplot's SVG terminal into *clean, which the caller frees, with these
 * changes:
 *
 * - Marks with hypertext get a <title>, which browsers show as a tooltip, in place of handlers that
 *   need gnuplot's own script. gnuplot's titles of files and curves go, as they would be tooltips.
 * - Every id starts with `name`, so several plots can stand in one page.
 * - Fonts fall back to sans-serif on devices that do not have gnuplot's font.
 * - Empty groups, unused filters and long colours are removed or shortened.
 *
 * Text stays text. Lines that it does not know stay as they are. KS_MEMORY. */
ks_status ks_svg_clean(const char *name, const char *text, char **clean);

#endif
