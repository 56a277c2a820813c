/* Which coordinates of the parameters an analysis is about: a diagonal block of an operator. */
#ifndef KS_OPERATORS_SELECTION_H
#define KS_OPERATORS_SELECTION_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "operators/operator.h"

struct ks_selection {
    size_t of;     /* E P: length of a whole vector                          */
    size_t n;      /* coordinates that are selected */
    size_t *index; /* [n], ascending; NULL: all of them. Owned               */
};

/* The parameters [*low, *high) of `layer` (-1: of all layers) in one critic. KS_USAGE where there
 * is no such critic, no such layer or that layer has no parameters. */
ks_status ks_selection_range(const struct ks_networks *critics, int critic, int layer, size_t *low,
                             size_t *high);

/* Selects the problem's critic and layer, if `moving` without the coordinates that never had a
 * gradient (Adam's second moment is 0). KS_USAGE as above; KS_NUMBER where none is left. */
ks_status ks_selection_new(const struct ks_problem *problem, bool moving,
                           struct ks_selection **selection);
void ks_selection_free(struct ks_selection *selection); /* NULL is fine */

/* block [n] = the selected entries of whole [of]; and back, zero elsewhere. */
void ks_selection_gather(const struct ks_selection *selection, const double *whole, double *block);
void ks_selection_scatter(const struct ks_selection *selection, const double *block, double *whole);

/* The diagonal block of `a`, of dimension n; it owns `a`, also after a failure, and borrows the
 * selection. Where all is selected, *block is `a` itself. */
ks_status ks_block_new(struct ks_operator *a, const struct ks_selection *selection,
                       struct ks_operator **block);

#endif
