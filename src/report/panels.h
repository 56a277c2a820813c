/* Where the panels of architectures stand in plots with a panel per architecture. */
#ifndef KS_REPORT_PANELS_H
#define KS_REPORT_PANELS_H

#include <stdbool.h>
#include <stddef.h>

#include "study/study_file.h"

struct ks_panels {
    size_t columns, rows;
    size_t x[KS_STUDY_ARCHITECTURES], y[KS_STUDY_ARCHITECTURES]; /* of each architecture, from 0 */
};

/* What the columns of the full grid of the twelve named architectures are, and its rows: losses
 * with or without weight normalization, or losses alone. */
enum ks_panels_kind { KS_PANELS_NORMALIZATIONS, KS_PANELS_NORMALIZATIONS_AND_WEIGHTS };

/* Places n >= 1 architectures, in the order of ks_results_order, in the full grid, so that panels
 * to compare stand side by side. True only if every one of them is a different one of the twelve
 * and at least two thirds of the rows and columns that they use are filled. In the grid of losses
 * alone, up to two others may stand in columns of their own after these, in the row of their loss,
 * or in the first row if that is unknown. */
bool ks_panels_fill(enum ks_panels_kind kind, size_t n,
                    const struct ks_study_architecture *const *architecture,
                    struct ks_panels *panels);

/* Places them in the full grid of KS_PANELS_NORMALIZATIONS if that can be; else in rows of three,
 * or if there are four, of two. */
void ks_panels_place(size_t n, const struct ks_study_architecture *const *architecture,
                     struct ks_panels *panels);

#endif
