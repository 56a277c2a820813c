/* Where the panels of architectures stand in plots with a panel per architecture. */
#ifndef KS_REPORT_PANELS_H
#define KS_REPORT_PANELS_H

#include <stddef.h>

#include "study/study_file.h"

struct ks_panels {
    size_t columns, rows;
    size_t x[KS_STUDY_ARCHITECTURES], y[KS_STUDY_ARCHITECTURES]; /* of each architecture, from 0 */
};

/* Places n >= 1 architectures, in the order of ks_results_order. If every one of them is a
 * different combination of the twelve named ones, columns are normalizations and rows are
 * combinations of loss and weight normalization, so that panels to compare stand side by side; but
 * only if at least two thirds of that grid are used. Otherwise they fill rows of three, or if there
 * are four, of two. */
void ks_panels_place(size_t n, const struct ks_study_architecture *const *architecture,
                     struct ks_panels *panels);

#endif
