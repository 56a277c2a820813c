/* Rounding bounds to few digits in the direction in which they remain valid. */
#ifndef KS_CORE_ROUND_H
#define KS_CORE_ROUND_H

/* The largest number with `digits` significant decimal digits that is at most x (down), or the
 * smallest that is at least x (up); x itself if it is 0 or not finite. An x that equals such a
 * number up to rounding errors gives that number. */
double ks_round_down(double x, int digits);
double ks_round_up(double x, int digits);

#endif
