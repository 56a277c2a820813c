/* Makes an SVG file that gnuplot has written ready for a web page. */
#ifndef KS_REPORT_SVG_H
#define KS_REPORT_SVG_H

#include "core/error.h"

/* Copies the text of gnuplot's SVG terminal into *clean, which the caller frees, with these
 * changes:
 *
 * - Marks with hypertext get a <title>, which browsers show as a tooltip, in place of handlers that
 *   need gnuplot's own script. gnuplot's titles of files and curves go, as they would be tooltips.
 * - Every id starts with `name`, so several plots can stand in one page.
 * - Fonts fall back to sans-serif on devices that do not have gnuplot's font.
 * - Empty groups, unused filters and long colours are removed or shortened.
 *
 * Text stays text. Lines that it does not know stay as they are. KS_MEMORY. */
ks_status ks_svg_clean(const char *name, const char *text, char **clean);

#endif
