# Shared by all plots. A script sets `width` and `height` (inches) and loads this. A script with a panel per architecture
# that uses the wide grid where there is one (below) sets `wide` before, and no width. The program that runs the script
# sets format (png, pdf, svg), output_file, name (of the plot), plots (the folder of the scripts), steps (where runs
# end), lists with a word per architecture: archs, norms (bn, ln, dense, other), wns (1: weight normalization), losses
# ce, mse, other), bases (the architecture that a variant changes, ? if it is not there, - of other architectures), and
# the places of their panels in a grid: grid_x, grid_y (from 0), grid_columns, grid_rows. If the architectures fill most of
# a grid with a row per loss and a column per normalization with or without weight normalization, and up to two others
# further columns, wide_x, wide_y, wide_columns and wide_rows are their places there. Of a study also: families (the number of
# a group that shares a colour; 0: in none); group_count groups of comparable spectra: groups (their numbers, from 1),
# group_names (in what each differs from the first), group_of(i).
if (!exists('families')) { families = '' }
if (!exists('wide')) { wide = 0 }
if (!exists('width')) { width = wide && wide_columns > 3 ? 7 : 5 }
dpi = 200
font = 'DejaVu Sans,8'
# A gnuplot without cairo draws only SVG: its other terminals have no dashes, and no letters where no font is installed.
if (format ne 'svg' && !strstrt(GPVAL_TERMINALS, ' '.format.'cairo ')) { exit status 3 }
if (format eq 'png') {
    set terminal pngcairo size width*dpi, height*dpi font font fontscale dpi/96. linewidth dpi/96. pointscale dpi/96.
}
if (format eq 'pdf') { set terminal pdfcairo size width, height font font fontscale 0.75 linewidth 0.75 pointscale 0.75 }
if (format eq 'svg') {
    set terminal svg size width*72, height*72 dynamic standalone font font linewidth 0.75 name name
    set pointsize 0.75
}
set output output_file
set datafile separator comma
set encoding utf8

# environment steps, in thousands from 10000 on
steps = steps > 0 ? steps : 1    # an axis also for runs that are at step 0
unit = steps < 10000 ? 1. : 1e3
steps_title = unit > 1 ? 'environment steps (thousands)' : 'environment steps'
short_steps_title = unit > 1 ? 'steps (thousands)' : 'steps'    # of narrow panels

# The look of an architecture is the same in all plots. Colour: normalization, as in the XQC paper. Shape: loss (circle:
# cross-entropy, triangle: squared error, square: other). Open marks and dashed lines: weight normalization. Variants and
# other networks have colours of their own (SimBa-V2 that of the paper), and dashes and other shapes only where the seven
# colours are used up.
gray = '#8a8a8a'; dark = '#333333'
norm_colour(norm) = norm eq 'bn' ? '#e13971' : norm eq 'ln' ? '#4477aa' : '#64ab70'
family(i) = words(families) < i ? 0 : int(word(families, i))
in_family(i) = int(sum [j=1:i-1] (family(j) == family(i)))     # before it
most_families = 0
do for [i=1:words(families)] { most_families = family(i) > most_families ? family(i) : most_families }
is_own(i) = !family(i) && (word(norms, i) eq 'other' || word(bases, i) ne '-')
rank(i) = most_families + int(sum [j=1:i-1] is_own(j))     # among these
own_colours = '#7b3294 #8c510a #17a5b8 #999933 #333333 #c7a76c #56b4e9'
is_simba_v2(i) = substr(word(archs, i), 1, 8) eq 'simba-v2'
colour(i) = family(i) ? word(own_colours, (family(i) - 1)%7 + 1) : is_simba_v2(i) ? '#ff8000' : is_own(i) ? word(own_colours, rank(i)%7 + 1) : norm_colour(word(norms, i))
has_wn(i) = word(wns, i) eq '1'
mark_of(loss, wn) = loss eq 'mse' ? (wn ? 8 : 9) : loss eq 'ce' ? (wn ? 6 : 7) : (wn ? 4 : 5)
mark(i) = family(i) ? word('7 5 9 11 13 6 4 8 10 12', in_family(i)%10 + 1) + 0 : is_simba_v2(i) ? 6 : is_own(i) && rank(i) > 6 ? (rank(i) < 14 ? 12 : 10) + !has_wn(i) : \
          mark_of(word(losses, i), has_wn(i))
dash(i) = is_own(i) ? 1 + rank(i)/7 : has_wn(i) ? 2 : 1

set style line 100 lc rgb '#dddddd' lw 0.6      # grids
set style line 101 lc rgb '#444444' lw 0.8      # frames
set dashtype 6 (3,3)
set border 3 ls 101
set tics nomirror out scale 0.4 textcolor rgb '#222222'
set grid ls 100
unset key

# The cell of a column, by name or by number; NaN if it is not a finite number. When a file is read with
# `using (take(x))`, the finite x are counted in `found` and widen the limits low and high; if there are none,
# low > high.
number(c) = strcol(c) eq '-' || strcol(c) eq 'inf' || strcol(c) eq '-inf' || strcol(c) eq 'nan' ? NaN : column(c)
positive(x) = x > 0 ? x : NaN
is(arch) = strcol('architecture') eq arch
reset_limits = 'low = 1e308; high = -1e308; found = 0'
take(x) = x == x ? (low = x < low ? x : low, high = x > high ? x : high, found = found + 1, 0) : 0

# Panels in a grid, in inches: `left`, `right`, `top`, `bottom` are the margins around all of them, gap_x and gap_y lie
# between them. `size_panels` computes panel_w and panel_h from columns and rows; `place` puts the next panel into
# column c and row g.
size_panels = ' \
    panel_w = (width - left - right - (columns - 1)*gap_x)/columns; \
    panel_h = (height - top - bottom - (rows - 1)*gap_y)/rows'
place = ' \
    x0 = left + c*(panel_w + gap_x); x1 = x0 + panel_w; \
    y1 = height - top - g*(panel_h + gap_y); y0 = y1 - panel_h; \
    set lmargin at screen x0/width; set rmargin at screen x1/width; \
    set tmargin at screen y1/height; set bmargin at screen y0/height'
# The name of architecture i above a panel, smaller if it is wider than a column.
panel_name(i) = word(archs, i)
name_size(i) = (fit = (panel_w + gap_x)/(0.071*strlen(panel_name(i))), fit > 1 ? 8 : fit > 0.6 ? 8*fit : 5)
name_panel = ' \
    set label 1 panel_name(i) at screen (x0 + x1)/2/width, screen (y1 + 0.07)/height center noenhanced \
        font sprintf(",%.1f", name_size(i)) textcolor rgb colour(i)'

# Where the panel of architecture i is in the grid. Labels of axes are only at the lowest panel of a column and at the
# leftmost one of a row.
column_of(i) = int(word(wide ? wide_x : grid_x, i))
row_of(i) = int(word(wide ? wide_y : grid_y, i))
is_topmost(i) = (sum [j=1:words(archs)] (column_of(j) == column_of(i) && row_of(j) < row_of(i))) == 0
is_lowest(i) = (sum [j=1:words(archs)] (column_of(j) == column_of(i) && row_of(j) > row_of(i))) == 0
is_leftmost(i) = (sum [j=1:words(archs)] (row_of(j) == row_of(i) && column_of(j) < column_of(i))) == 0

# The tics of an axis from `a` to `b`: none near its ends, where labels would touch those of the next panel.
# A linear axis gets two to `most` of them, 6 if it is not set.
most = 6
step_above(x) = (u = 10.**floor(log10(x)), x <= u ? u : x <= 2*u ? 2*u : x <= 5*u ? 5*u : 10*u)
linear_tics = ' \
    step = step_above((b - a)/most); \
    eval sprintf("set %stics nomirror %.9g, %.9g, %.9g", axis, ceil((a + 0.05*(b - a))/step)*step, step, b - 0.05*(b - a))'
# A logarithmic axis gets powers of ten, at most `most` + 1; if there are few, also three times each, with labels if
# `named`.
named = 1
three_of(k) = k == 0 ? '3' : k == 1 ? '30' : sprintf('3·10^{%d}', k)
decades(a, b) = log10(b) - log10(a)     # not log10(b/a), as b/a may overflow
log_tics = ' \
    every = int(ceil(decades(a, b)/most)); space = 10.**(0.02*decades(a, b)); \
    eval sprintf("set %stics nomirror ()", axis); \
    do for [k=int(ceil(log10(a*space))):int(floor(log10(b/space))):every] { \
        eval sprintf("set %stics add (\"%s\" 1e%d)", axis, named ? sprintf("10^{%d}", k) : "", k) }; \
    if (decades(a, b) < 2) { do for [k=floor(log10(a)):ceil(log10(b))] { \
        if (3*10.**k > a*space && 3*10.**k < b/space) { \
            eval sprintf("set %stics add (\"%s\" 3e%d)", axis, named ? three_of(k) : "", k) } } }'
# Logarithmic limits around the positive numbers from `low` to `high`, at least a decade.
log_limits = ' \
    a = low > high ? 1. : low; b = low > high ? 10. : high; \
    edge = decades(a, b) > 1.1 ? 10.**(0.05*decades(a, b)) : sqrt(15*a/b); \
    a = a > 1e-300*edge ? a/edge : 1e-300; b = b < 1e300/edge ? b*edge : 1e300'
# An axis for the numbers from `low` to `high`, of which there are `found`: logarithmic if they are positive and span
# more than a decade. Sets `logarithmic`, the limits a and b, and the tics.
choose_axis = ' \
    logarithmic = found > 0 && low > 0 && high > 10*low; \
    if (logarithmic) { eval log_limits; eval "set logscale ".axis; eval log_tics } \
    else { \
        pad = found == 0 ? 1. : high > low ? 0.08*(high - low) : abs(high) + 1; \
        a = found == 0 ? 0. : low - pad; b = found == 0 ? 1. : high + pad; \
        eval "unset logscale ".axis; eval linear_tics \
    }; \
    eval sprintf("set %srange [%.9g:%.9g]", axis, a, b); \
    eval sprintf("set format %s \"%s\"", axis, logarithmic ? power_format(named) : number_format(named))'

# The steps of the environment on the x axis.
steps_axis = ' \
    set xrange [-0.03*steps/unit:1.03*steps/unit]; \
    set xtics nomirror 0, step_above(steps/unit/2.5), 0.92*steps/unit'
number_format(named) = named ? '%g' : ''
power_format(named) = named ? '10^{%T}' : ''

# The symmetric logarithm of x: linear up to about `smallest`, then a unit per decade.
# symlog_tics sets the tics of the axis `axis` ('x' or 'y') up to `largest`, `every` decades apart, with labels if
# `named`, but none so near zero that its label would touch the zero.
smallest = 1e-6; largest = 1.
symlog(x) = sgn(x)*log10(1 + abs(x)/smallest)
decade(x) = int(floor(log10(x) + 1e-9))
symlog_tics = ' \
    eval sprintf("set %stics nomirror (\"%s\" 0)", axis, named ? "0" : ""); \
    do for [k=decade(largest/2):decade(smallest):-every] { if (symlog(10.**k) > 0.25*symlog(largest)) { \
        eval sprintf("set %stics add (\"%s\" %.9g, \"%s\" %.9g)", axis, \
                     named ? sprintf("10^{%d}", k) : "", symlog(10.**k), \
                     named ? sprintf("−10^{%d}", k) : "", -symlog(10.**k)) } }'

# Kappas that rounding decides, as kappa_return.csv and kappa.csv have them: at more than half of the spectra kappa is
# above the largest one that the noise floor allows, or the pooled kappa is above the pooled limit. Their marks are
# crossed. `shade` shades the values of the axis `axis` above `shade_from`, if they are between its limits a and b:
# above the smallest such limit in the rows of the table for which limits_panel(0) is true.
by_rounding(dummy) = number('beyond_noise') > 0.5 || number('kappa') > number('noise_limit')
shade_colour = '#ece7dc'
limits_panel(dummy) = 1
find_shade = ' \
    eval reset_limits; \
    stats table using (limits_panel(0) ? take(number("noise_limit")) : 0) nooutput; \
    shade_from = low'
shade = ' \
    unset object 1; \
    if (shade_from < b) { \
        edge = shade_from > a ? shade_from : a; \
        if (axis eq "x") { set object 1 rectangle from first edge, graph 0 to graph 1, graph 1 } \
        else { set object 1 rectangle from graph 0, first edge to graph 1, graph 1 }; \
        set object 1 behind fc rgb shade_colour fs noborder \
    }'
percent(x) = sprintf(x >= 0.0995 ? '%.0f' : x >= 0.00995 ? '%.1f' : '%.2g', 100*x)
tip_rounding(dummy) = !(number('beyond_noise') > 0) ? '' : \
                      ', beyond the noise floor in '.percent(number('beyond_noise')).'% of the spectra'

# Notes: what marks, lines and shades mean, in lines below the panels. Of `others` notes, number k (from 0) is drawn with
# `note_mark`, `note_line` or `note_box`, from the text `note`. A label without a point is centred at its height, one with
# a point is not.
note_columns = width > 6 ? 4 : 2
size_notes = ' \
    note_w = (width - left - right)/note_columns; \
    note_lines = (others + note_columns - 1)/note_columns'
note_x(k) = left + 0.1 + note_w*(k%note_columns)
note_y(k) = 0.1 + 0.14*(note_lines - 1 - k/note_columns)
note_colour = dark; note_dash = 1; note_lw = 1.2
note_text = 'set label 300 + k note at screen (note_x(k) + 0.16)/width, screen note_y(k)/height \
        left noenhanced textcolor rgb dark'
note_mark = 'eval note_text; set label 330 + k "" at screen note_x(k)/width, screen note_y(k)/height \
        point pt note_pt ps note_ps lw 1.2 lc rgb note_colour'
note_line = 'eval note_text; set arrow 300 + k from screen (note_x(k) - 0.1)/width, screen note_y(k)/height \
        to screen (note_x(k) + 0.1)/width, screen note_y(k)/height nohead lw note_lw dt note_dash lc rgb note_colour'
note_box = 'eval note_text; set object 300 + k rectangle \
        from screen (note_x(k) - 0.08)/width, screen (note_y(k) - 0.035)/height \
        to screen (note_x(k) + 0.08)/width, screen (note_y(k) + 0.035)/height front \
        fc rgb note_fill fs solid border rgb note_edge'
remove_notes = 'do for [k=0:others-1] { \
        unset label 300 + k; unset label 330 + k; unset object 300 + k; unset arrow 300 + k }'
rounding_notes = ' \
    note = "rounding decides κ"; note_pt = 2; note_ps = 1.2; eval note_mark; k = k + 1; \
    note = "beyond noise floor"; note_fill = shade_colour; note_edge = shade_colour; eval note_box; k = k + 1'

# What a tooltip in the SVG says of a point: the value of column c, named `label`, with its interval if there is one.
interval(c) = number(c.'_low') == number(c.'_low') ? sprintf(' [%.4g, %.4g]', number(c.'_low'), number(c.'_high')) : ''
tip(label, c) = sprintf('%s, step %s: %s %.4g', strcol('architecture'), strcol('env_step'), label, number(c)).interval(c)
