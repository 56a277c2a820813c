/* The gnuplot of the machine, or another one in its place until the test ends. */
#ifndef KS_TEST_GNUPLOTS_H
#define KS_TEST_GNUPLOTS_H

#include "scratch.h"

/* Skips the test if there is no gnuplot; else its path. */
const char *need_gnuplot(void);

/* Puts this script in its place. Its arguments are: -d -e SETTINGS FILE.gp. */
void replace_gnuplot(const char *script);

/* SVG alone, with `more` settings: a third of the time. Skips the test if there is no gnuplot. */
void draw_svg_alone(const char *more);

/* SVG without content and nothing else, for tests that do not look at figures: a hundredth of the
 * time. */
void draw_nothing(void);

#endif
