/* --apply and --gradient: vectors of a checkpoint in place of a spectrum. */
#ifndef KS_PROGRAM_APPLY_H
#define KS_PROGRAM_APPLY_H

#include <stddef.h>

#include "core/error.h"
#include "operators/operator.h"
#include "operators/selection.h"
#include "operators/team.h"
#include "program/monitor.h"
#include "program/options.h"
#include "program/subject.h"

/* Counts the vectors of --apply into subject->vectors, before there is an operator. */
ks_status ks_apply_count(const struct ks_options *analysis, const struct ks_team *team,
                         struct ks_subject *subject);
/* Multiplies each vector of --apply by `a`, the operator of the selected coordinates, and writes
 * the products to --output. Vectors in files have their whole length: coordinates that are not
 * selected are ignored in the factors and zero in the products. `watch` is set up but for the
 * number of products. */
ks_status ks_apply_file(const struct ks_options *analysis, const struct ks_subject *subject,
                        const struct ks_operator *a, const struct ks_selection *selection,
                        struct ks_monitor *watch);
/* Writes loss and gradient to --gradient; in a team, those of all its processes. `start`:
 * ks_alloc_total() before the checkpoint was read. KS_MEMORY where --memory is too little. */
ks_status ks_gradient_file(const struct ks_options *analysis, const struct ks_subject *subject,
                           const struct ks_team *world, const struct ks_team *team, size_t start);

#endif
