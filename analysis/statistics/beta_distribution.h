/* The beta distribution, and by it Student's: tail probabilities and quantiles.
 *
 * NIST Digital Library of Mathematical Functions, section 8.17. GSL is not used: its continued
 * fraction gives up near the mean of Beta(3e6, 7e6), and its licence is not ours. */
#ifndef KS_STATISTICS_BETA_DISTRIBUTION_H
#define KS_STATISTICS_BETA_DISTRIBUTION_H

/* The probability that a Beta(a, b) variable is at most x, and that it is larger than x. a, b >= 0,
 * not both 0: Beta(0, b) is the constant 0, Beta(a, 0) the constant 1. Relative accuracy 1e-8 or
 * better for parameters up to 1e8; the smaller tail is not computed by subtraction. */
double ks_beta_lower_tail(double a, double b, double x);
double ks_beta_upper_tail(double a, double b, double x);

/* The largest x whose lower tail is below `probability`, and the smallest x whose upper tail is.
 * Absolute accuracy 1e-15, rounded to the side with the smaller tail. 0 < probability < 1. */
double ks_beta_lower_point(double a, double b, double probability);
double ks_beta_upper_point(double a, double b, double probability);

/* The point t above which a variable with Student's distribution lies with this probability, at
 * most 0.5. `freedom`: its degrees of freedom, above 0. */
double ks_student_point(double freedom, double probability);

#endif
