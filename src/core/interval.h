/* Intervals, and their ends printed in few digits: always rounded outwards, so that what is printed
 * contains the interval. */
#ifndef KS_CORE_INTERVAL_H
#define KS_CORE_INTERVAL_H

#include <stdbool.h>

/* Where an interval is used, a comment says what an end that is NaN means. */
struct ks_interval {
    double lower, upper;
};

/* A number and the interval that it lies in. */
struct ks_estimate {
    double value;
    struct ks_interval in;
};

/* The largest number with `digits` significant decimal digits that is at most x (down), or the
 * smallest that is at least x (up); x itself if it is 0 or not finite. An x that equals such a
 * number up to rounding errors gives that number. */
double ks_round_down(double x, int digits);
double ks_round_up(double x, int digits);

/* min and max that are NaN if either number is. */
double ks_min_known(double x, double y);
double ks_max_known(double x, double y);

/* One end with three digits: "1.23", "4.56e+07". With `whole`, whole numbers below a million are
 * printed in full. */
enum ks_side { KS_LOWER, KS_UPPER };
enum { KS_END_TEXT = 24 };
const char *ks_end_text(double end, enum ks_side side, bool whole, char text[KS_END_TEXT]);

/* An interval. An upper end that is infinite or NaN is not known, nor is a lower end that is NaN;
 * two infinite ends are one infinite number.
 *
 *   KS_BRACKETS        "[2, 3.1]", "at least 2", "at most 3.1", "infinite", "not resolved"
 *   KS_BRACKETS_WHOLE  like KS_BRACKETS, with whole numbers in full: "[2818, 9086]"
 *   KS_IN_WORDS        "2 to 3.1", "2 or more", "at most 3.1", "infinite", "-"; whole numbers in
 *                      full, and once if both ends are the same */
enum ks_interval_style { KS_BRACKETS, KS_BRACKETS_WHOLE, KS_IN_WORDS };
enum { KS_INTERVAL_TEXT = 64 };
const char *ks_interval_text(struct ks_interval interval, enum ks_interval_style style,
                             char text[KS_INTERVAL_TEXT]);

#endif
