/* Bounds with few digits, rounded to the side on which they stay true. */
#ifndef KS_CORE_ROUND_H
#define KS_CORE_ROUND_H

/* The nearest number with `digits` significant decimal digits that is at most x, or at least x; x
 * itself where it is not positive and finite. Rounding of x in its last bits does not move it to
 * the next one. */
double ks_round_down(double x, int digits);
double ks_round_up(double x, int digits);

#endif
