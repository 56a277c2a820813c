/* How near critics with cross-entropy come to what the XQC paper proves of them: the bounds of
 * their gradients, and the weight decay above which the condition number is bounded. */
#ifndef KS_CLAIMS_THEOREMS_H
#define KS_CLAIMS_THEOREMS_H

#include <stdio.h>

#include "core/error.h"
#include "results/results.h"

/* theorems.csv: a row per spectrum of the standard analysis that has these statistics. Prints it;
 * writes it into dir/tables, which exists. */
void ks_theorems_print_csv(const struct ks_results *results, FILE *out);
ks_status ks_theorems_write(const struct ks_results *results);

/* Prints the largest ratios in two lines, one on the weight decay if the study analyzes residuals,
 * and what exceeds a bound that is proved, which is an error of the measurement. Prints nothing if
 * no spectrum has the statistics. */
void ks_theorems_print(const struct ks_results *results, FILE *out);

#endif
