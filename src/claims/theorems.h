/* How near the gradients of cross-entropy critics come to the bounds that the XQC paper proves. */
#ifndef KS_CLAIMS_THEOREMS_H
#define KS_CLAIMS_THEOREMS_H

#include <stdio.h>

#include "core/error.h"
#include "results/results.h"

/* theorems.csv: a row per spectrum of the standard analysis that has these statistics. Prints it;
 * writes it into dir/tables, which exists. */
void ks_theorems_print_csv(const struct ks_results *results, FILE *out);
ks_status ks_theorems_write(const struct ks_results *results);

/* Prints the largest ratios in two lines, and what exceeds a bound that is proved, which is an
 * error of the measurement. Prints nothing if no spectrum has the statistics. */
void ks_theorems_print(const struct ks_results *results, FILE *out);

#endif
