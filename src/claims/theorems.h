/* How near critics come to what the XQC paper proves: the unbounded gradients of a squared error,
 * the gradients of a cross-entropy and their bounds, and the weight decay above which the condition
 * number with cross-entropy is bounded. */
#ifndef KS_CLAIMS_THEOREMS_H
#define KS_CLAIMS_THEOREMS_H

#include <stdio.h>

#include "core/error.h"
#include "results/results.h"

/* theorems.csv: a row per spectrum of the standard analysis that has these statistics. Prints it;
 * writes it into dir/tables, which exists. */
void ks_theorems_print_csv(const struct ks_results *results, FILE *out);
ks_status ks_theorems_write(const struct ks_results *results);

/* Prints the largest numbers, a line for each proposition or theorem, one on whether |theta_h| is
 * fixed as Theorem 1 assumes, one on the weight decay if the study analyzes residuals, and what
 * exceeds a bound that is proved, which is an error of the measurement. Prints nothing if no
 * spectrum has the statistics. */
void ks_theorems_print(const struct ks_results *results, FILE *out);

#endif
