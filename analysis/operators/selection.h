/* The coordinates of the parameters that an analysis is about, and the diagonal block of an
 * operator on them. */
#ifndef KS_OPERATORS_SELECTION_H
#define KS_OPERATORS_SELECTION_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "operators/operator.h"

struct ks_selection {
    size_t of;     /* the number of all coordinates: E P                      */
    size_t n;      /* the number of selected ones                             */
    size_t *index; /* [n]: the selected ones, ascending; NULL: all. Owned     */
};

/* *low, *high: `layer` (-1: all layers) has the parameters [*low, *high) of a critic. KS_USAGE if
 * the critic or the layer does not exist or the layer has no parameters. */
ks_status ks_selection_range(const struct ks_networks *critics, int critic, int layer, size_t *low,
                             size_t *high);

/* Selects the coordinates of the problem's critic and layer; if `moving`, without coordinates that
 * never had a gradient (Adam's second moment is 0). The caller frees with ks_selection_free.
 * KS_USAGE as above; KS_NUMBER if no coordinate is left; KS_MEMORY. */
ks_status ks_selection_new(const struct ks_problem *problem, bool moving,
                           struct ks_selection **selection);
void ks_selection_free(struct ks_selection *selection); /* NULL is fine */

/* gather: block [n] = the selected entries of full [of]. scatter: the inverse, with 0 in all other
 * entries of `full`. */
void ks_selection_gather(const struct ks_selection *selection, const double *full, double *block);
void ks_selection_scatter(const struct ks_selection *selection, const double *block, double *full);

/* The diagonal block of `a` on the selection. It owns `a`, also after a failure; the selection must
 * outlive it. If all coordinates are selected, *block is `a` itself. KS_MEMORY. */
ks_status ks_block_new(struct ks_operator *a, const struct ks_selection *selection,
                       struct ks_operator **block);

#endif
