/* How statistics are printed for a reader: a number always with what it is. */
#ifndef KS_STATISTICS_STATISTIC_TEXT_H
#define KS_STATISTICS_STATISTIC_TEXT_H

#include <stdbool.h>

#include "io/spectrum.h"

enum { KS_STATISTIC_TEXT = 96 };

/* A statistic, and what it says in a few words. */
struct ks_statistic_row {
    const char *name, *words;
};
/* The statistics of a spectrum in the order of their reliability: bounds and intervals first, the
 * paper's kappa last. The last row has a NULL name. */
extern const struct ks_statistic_row ks_statistic_rows[];

/* Whether the spectrum has the statistic, or one of its ends NAME_lower and NAME_upper. */
bool ks_statistic_present(const struct ks_spectrum *spectrum, const char *name);

/* Prints a statistic: "at least 422.4" for a bound, rounded so that it stays one; "6083 [2818,
 * 9086]" for an estimate with its interval, "[7.56, 11.2]" for an interval without one; "infinite";
 * "not resolved" where nothing is known, also of a ratio of the largest eigenvalue to another that
 * is only known to be at least 1; "no learning rate" for a sharpness_ratio without one. */
void ks_statistic_text(const struct ks_spectrum *spectrum, const char *name,
                       char text[KS_STATISTIC_TEXT]);

#endif
