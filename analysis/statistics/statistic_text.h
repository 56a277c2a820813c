/* Statistics printed for a reader: a number always with what it is. */
#ifndef KS_STATISTICS_STATISTIC_TEXT_H
#define KS_STATISTICS_STATISTIC_TEXT_H

#include <stdbool.h>

#include "io/spectrum.h"
#include "statistics/catalogue.h"

/* Whether the spectrum has the statistic, or one of its ends. */
bool ks_statistic_present(const struct ks_spectrum *spectrum, enum ks_statistic_id id);
/* Prints a statistic with what it is: "at least 422.4" for a bound, rounded so that it stays one;
 * "6083 [2818, 9086]" for an estimate with its interval, "[7.56, 11.2]" for an interval without
 * one; "infinite"; "not resolved" where nothing is known; "no learning rate" for a sharpness_ratio
 * without one. */
enum { KS_STATISTIC_TEXT = 96 };
void ks_statistic_text(const struct ks_spectrum *spectrum, enum ks_statistic_id id,
                       char text[KS_STATISTIC_TEXT]);

#endif
