# Shared by all plots. A script sets `width` (inches) and loads this; it lays itself out, which gives `height`, and begins to
# draw with `eval open_plot`. A script with a panel per architecture that uses the wide grid where there is one (below) sets
# `wide` before, and no width. The program that runs the script sets format (png, pdf, svg), output_file, name (of the
# plot), plots (the folder of the scripts), steps (where runs end), lists with a word per architecture: archs, norms (bn,
# ln, dense, other), wns (1: weight normalization), losses (ce, mse, other), bases (the architecture that a variant changes,
# ? if it is not there, - of other architectures), and the places of their panels in a grid: grid_x, grid_y (from 0),
# grid_columns, grid_rows. If the architectures fill most of a grid with a row per loss and a column per normalization with
# or without weight normalization, and up to two others further columns, wide_x, wide_y, wide_columns and wide_rows are
# their places there. Of a study also: families (the number of a group that shares a colour; 0: in none); group_count groups
# of comparable spectra: groups (their numbers, from 1), group_names (in what each differs from the first), group_of(i);
# of_most: '' or, beside the word return, what a return is at most.
if (!exists('families')) { families = '' }
if (!exists('wide')) { wide = 0 }
if (!exists('width')) { width = wide && wide_columns > 3 ? 7 : 5 }
plot_name = name    # scripts call other things `name`
dpi = 200
font = 'DejaVu Sans,8'
# A gnuplot without cairo draws only SVG: its other terminals have no dashes, and no letters where no font is installed.
if (format ne 'svg' && !strstrt(GPVAL_TERMINALS, ' '.format.'cairo ')) { exit status 3 }
open_plot = ' \
    if (format eq "png") { \
        set terminal pngcairo size width*dpi, height*dpi font font fontscale dpi/96. linewidth dpi/96. pointscale dpi/96. \
    }; \
    if (format eq "pdf") { \
        set terminal pdfcairo size width, height font font fontscale 0.75 linewidth 0.75 pointscale 0.75 \
    }; \
    if (format eq "svg") { \
        set terminal svg size width*72, height*72 dynamic standalone font font linewidth 0.75 name plot_name; \
        set pointsize 0.75 \
    }; \
    set output output_file'
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
# A variant or another network: a panel and a name of its own; unless it is in a family, a colour of its own, too.
is_other(i) = word(norms, i) eq 'other' || word(bases, i) ne '-'
is_own(i) = !family(i) && is_other(i)
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

# The width of a text in DejaVu Sans of this size, in inches, or a little more; marks of enhanced text count as letters.
char_w(c) = strstrt(" ',.:;!()-/[]|frtijlI·", c) ? 0.41 : strstrt('mMW@%…', c) ? 1. : strstrt('+<=>~w−', c) ? 0.84 : \
            strstrt('ABCDGHKNOQRUVXYZ&', c) ? 0.79 : 0.64
text_w(text, size) = size/72.*(sum [char=1:strlen(text)] char_w(substr(text, char, char)))
# A text that is wider than its room is set smaller, down to 5 points, and loses its middle if it is too wide even then.
size_in(text, room) = (text_size = 8.*room/text_w(text.' ', 8), text_size > 8 ? 8. : text_size > 5 ? text_size : 5.)
font_in(text, room) = sprintf(',%.1f', size_in(text, room))
head_in(text, room) = int(sum [end=1:strlen(text)] (text_w(substr(text, 1, end), 5) <= room))
tail_in(text, room) = int(sum [start=1:strlen(text)] (text_w(substr(text, start, strlen(text)), 5) <= room))
text_in(text, room) = text_w(text, 5) <= room ? text : \
    substr(text, 1, head_in(text, room/2 - 0.04)).'…'. \
    substr(text, strlen(text) - tail_in(text, room/2 - 0.04) + 1, strlen(text))

# Panels in a grid, in inches: `left`, `right`, `top`, `bottom` are the margins around all of them, gap_x and gap_y lie
# between them. `size_panels` computes panel_w and `height` from columns, rows and panel_h; `place` puts the next panel
# into column c and row g.
size_panels = ' \
    panel_w = (width - left - right - (columns - 1)*gap_x)/columns; \
    height = top + rows*panel_h + (rows - 1)*gap_y + bottom'
place = ' \
    x0 = left + c*(panel_w + gap_x); x1 = x0 + panel_w; \
    y1 = height - top - g*(panel_h + gap_y); y0 = y1 - panel_h; \
    set lmargin at screen x0/width; set rmargin at screen x1/width; \
    set tmargin at screen y1/height; set bmargin at screen y0/height'
# A heading of the panel: text `heading`, `above` the panel; none if it is empty. The name of architecture i as heading.
above = 0.1
write_heading = ' \
    set label 1 text_in(heading, panel_w + gap_x - 0.05) at screen (x0 + x1)/2/width, screen (y1 + above)/height center \
        noenhanced font font_in(heading, panel_w + gap_x - 0.05) textcolor rgb heading_colour'
heading_colour = 'black'
panel_name(i) = word(archs, i)
name_panel = 'above = 0.07; heading = panel_name(i); heading_colour = colour(i); eval write_heading'
# Titles of the axes of a panel: y_title at the left edge of the plot, and x_title. If title_lines is 2, y_line stands
# beside y_title as its second line.
title_lines = 1; y_line = ''
write_y_title = ' \
    set label 2 y_title at screen (x0 - left + 0.09)/width, screen (y0 + y1)/2/height center rotate \
        font font_in(y_title, panel_h + 0.1); \
    set label 7 y_line at screen (x0 - left + 0.23)/width, screen (y0 + y1)/2/height center rotate \
        font font_in(y_line, panel_h + 0.1)'
write_x_title = ' \
    set label 3 x_title at screen (x0 + x1)/2/width, screen (y0 - 0.38)/height center \
        font font_in(x_title, panel_w + gap_x - 0.05)'
# The left margin, after the tics of the y axes, with their labels, have been set once.
size_left = 'left = 0.18 + 0.14*title_lines + tic_w'

# Where the panel of architecture i is in the grid. Labels of axes are only at the lowest panel of a column and at the
# leftmost one of a row.
column_of(i) = int(word(wide ? wide_x : grid_x, i))
row_of(i) = int(word(wide ? wide_y : grid_y, i))
is_topmost(i) = (sum [j=1:words(archs)] (column_of(j) == column_of(i) && row_of(j) < row_of(i))) == 0
is_lowest(i) = (sum [j=1:words(archs)] (column_of(j) == column_of(i) && row_of(j) > row_of(i))) == 0
is_leftmost(i) = (sum [j=1:words(archs)] (row_of(j) == row_of(i) && column_of(j) < column_of(i))) == 0

# The tics of the axis `axis` ('x' or 'y') from `a` to `b`, with labels if `named`. tic_w becomes the width of the widest
# label of y axes. Labels of x axes, also of panels side by side, are at least 0.04 inches apart.
named = 1; tic_w = 0
start_tics = 'eval sprintf("set %stics nomirror ()", axis)'
in_panel(place, size) = axis eq 'y' ? place >= 0 && place <= 1 : \
    place*panel_w >= (size - gap_x + 0.04)/2 && (1 - place)*panel_w >= (size - gap_x + 0.04)/2
set_tic = 'eval sprintf("set %stics add (\"%s\" %.12g)", axis, named ? tic : "", tic_at); \
    if (axis eq "y" && named && tic_size > tic_w) { tic_w = tic_size }'
# A linear axis gets two to `most` tics, 6 if it is not set.
most = 6
step_above(x) = (u = 10.**floor(log10(x)), x <= u ? u : x <= 2*u ? 2*u : x <= 5*u ? 5*u : 10*u)
linear_tics = ' \
    fewer = most; crowded = 1; \
    while (crowded) { \
        step = step_above(1.*(b - a)/fewer); widest = 0; \
        do for [tic_k=int(ceil(a/step)):int(floor(b/step))] { \
            tic_size = text_w(sprintf("%g", tic_k*step), 8); widest = tic_size > widest ? tic_size : widest \
        }; \
        crowded = axis eq "x" && fewer > 1 && step/(b - a)*panel_w < widest + 0.04; fewer = fewer/1.5 \
    }; \
    eval start_tics; \
    do for [tic_k=int(ceil(a/step)):int(floor(b/step))] { \
        tic_at = tic_k*step; tic = sprintf("%g", tic_at); tic_size = text_w(tic, 8); \
        if (in_panel((tic_at - a)/(b - a), tic_size)) { eval set_tic } \
    }'
# A logarithmic axis gets powers of ten, at most `most` + 1; if there are few, also three times each, with labels where
# they have room.
power_tic(k) = sprintf('10^{%d}', k)
power_w(k) = text_w('10', 8) + text_w(sprintf('%d', k), 6.4)
three_tic(k) = k == 0 ? '3' : k == 1 ? '30' : sprintf('3·10^{%d}', k)
three_w(k) = k == 0 || k == 1 ? text_w(three_tic(k), 8) : text_w('3·', 8) + power_w(k)
decades(a, b) = log10(b) - log10(a)     # not log10(b/a), as b/a may overflow
on_log(x) = decades(a, x)/decades(a, b)
log_tics = ' \
    power_low = int(ceil(log10(a))); power_high = int(floor(log10(b))); \
    every = int(ceil(decades(a, b)/most)); \
    widest = power_w(power_low) > power_w(power_high) ? power_w(power_low) : power_w(power_high); \
    if (axis eq "x") { \
        fitting = int(ceil((widest + 0.04)/on_log(10*a)/panel_w)); every = fitting > every ? fitting : every }; \
    eval start_tics; \
    do for [tic_k=power_low:power_high:every] { \
        tic_at = 10.**tic_k; tic = power_tic(tic_k); tic_size = power_w(tic_k); \
        if (in_panel(on_log(tic_at), tic_size)) { eval set_tic } \
    }; \
    if (decades(a, b) < 2) { do for [tic_k=power_low-1:power_high] { \
        tic_at = 3*10.**tic_k; tic_size = three_w(tic_k); \
        tic = axis eq "y" || (tic_size + widest)/2 + 0.04 < 0.477*on_log(10*a)*panel_w ? three_tic(tic_k) : ""; \
        if (in_panel(on_log(tic_at), tic_size)) { eval set_tic } \
    } }'
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
    eval sprintf("set %srange [%.9g:%.9g]", axis, a, b)'

# The steps of the environment on the x axis, with labels if `named`.
steps_axis = ' \
    axis = "x"; most = 2.65; a = -0.03*steps/unit; b = 1.03*steps/unit; \
    set xrange [a:b]; \
    eval linear_tics'

# The symmetric logarithm of x: linear up to about `smallest`, then a unit per decade.
# symlog_tics sets the tics of the axis `axis` ('x' or 'y') up to `largest`, with labels if `named`: of the y axis `every`
# decades apart, but none near zero; of the x axis one on each side. The axis ends at -symlog_end and symlog_end.
smallest = 1e-6; largest = 1.
symlog(x) = sgn(x)*log10(1 + abs(x)/smallest)
decade(x) = int(floor(log10(x) + 1e-9))
symlog_tics = ' \
    eval start_tics; symlog_end = 1.04*symlog(largest); \
    tic = "0"; tic_at = 0; tic_size = text_w(tic, 8); eval set_tic; \
    do for [tic_k=decade(largest/2):decade(smallest):(axis eq "x" ? -1 : -every)] { \
        tic_at = symlog(10.**tic_k); tic_size = text_w("−", 8) + power_w(tic_k); tic_place = (1 + tic_at/symlog_end)/2; \
        if (tic_at <= 0.25*symlog(largest)) { break }; \
        if (in_panel(tic_place, tic_size)) { \
            tic = power_tic(tic_k); eval set_tic; \
            tic = "−".tic; tic_at = -tic_at; eval set_tic; \
            if (axis eq "x") { break } \
        } \
    }; \
    eval sprintf("set %srange [%.9g:%.9g]", axis, -symlog_end, symlog_end)'

# Symmetric-log axes that the panels of a row share, row_largest[g + 1] and row_smallest[g + 1]: of the numbers that
# take_row(0) takes from the rows of `table`, the largest, and of all panels the smallest row_least(0): a millionth of a
# panel's largest, unless a script says otherwise.
row_least(dummy) = 1e-6*high
row_limits = ' \
    array row_largest[rows]; array row_smallest[rows]; \
    do for [g=1:rows] { row_largest[g] = 0; row_smallest[g] = 1e308 }; \
    do for [i=1:words(archs)] { \
        eval reset_limits; g = row_of(i) + 1; \
        stats table using (is(word(archs, i)) ? take_row(0) : 0) nooutput; \
        if (found > 0 && high > 0) { \
            row_largest[g] = high > row_largest[g] ? high : row_largest[g]; \
            row_smallest[g] = row_least(0) < row_smallest[g] ? row_least(0) : row_smallest[g] \
        } \
    }; \
    do for [g=1:rows] { if (row_largest[g] == 0) { row_largest[g] = 1.; row_smallest[g] = 1e-6 } }'

# The first line of `table`; whether it names a column: tables of older versions lack some.
read_header = ' \
    set datafile separator "\t"; \
    stats table using (header = strcol(1), 0) every ::0::0 nooutput; \
    set datafile separator comma'
has(name) = strstrt(','.header.',', ','.name.',') > 0

# Of the rows of the table for which limits_panel(0) is true: `shade` shades the values of the axis `axis` above the
# smallest limit of what our bound certifies, if they are between its limits a and b. A kappa has a cross if rounding moves
# it by more than 10% in more than half of the spectra that store a measurement of that; crossed: whether any has one.
shade_colour = '#ece7dc'
limits_panel(dummy) = 1
moved(dummy) = measured && limits_panel(0) && number('moved_by_rounding') > 0.5
find_limits = ' \
    eval read_header; \
    measured = has("moved_by_rounding"); crossed = 0; \
    eval reset_limits; \
    stats table using (crossed = crossed || moved(0), limits_panel(0) ? take(number("noise_limit")) : 0) nooutput; \
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
share(column, words) = number(column) > 0 ? ', '.words.' in '.percent(number(column)).'% of the spectra' : ''
tip_limits(dummy) = share('beyond_noise', 'above what our bound certifies'). \
                    (measured ? share('moved_by_rounding', 'moved by more than 10% by rounding') : '')

# Notes: what marks, lines and boxes mean, below the panels. note_mark, note_line, note_both and note_box add one, from the
# text `note` and what they draw: a mark, a line with or without a mark, a box. `end_notes` lays out those since the last
# `end_notes`, in columns as wide as they need, below the earlier ones: all of them have note_lines lines.
most_notes = words(archs) + 10
array note_of[most_notes]; array kind_of[most_notes]; array pt_of[most_notes]; array ps_of[most_notes]
array lc_of[most_notes]; array dt_of[most_notes]; array lw_of[most_notes]; array fill_of[most_notes]
array density_of[most_notes]; array x_of_note[most_notes]; array line_of[most_notes]; array room_of[most_notes]
notes = 0; noted = 0; note_lines = 0
note_pt = 7; note_ps = 1; note_colour = dark; note_dash = 1; note_lw = 1.4; note_fill = gray; note_density = 1
add_note = ' \
    notes = notes + 1; note_of[notes] = note; pt_of[notes] = note_pt; ps_of[notes] = note_ps; lc_of[notes] = note_colour; \
    dt_of[notes] = note_dash; lw_of[notes] = note_lw; fill_of[notes] = note_fill; density_of[notes] = note_density'
note_mark = 'eval add_note; kind_of[notes] = "mark"'
note_line = 'eval add_note; kind_of[notes] = "line"'
note_both = 'eval add_note; kind_of[notes] = "line mark"'
note_box = 'eval add_note; kind_of[notes] = "box"'
end_notes = ' \
    if (notes > noted) { \
        longest = 0; \
        do for [note_k=noted+1:notes] { \
            longest = text_w(note_of[note_k], 8) > longest ? text_w(note_of[note_k], 8) : longest }; \
        fitting = int((width - 0.2)/(longest + 0.44)); \
        fitting = fitting < 1 ? 1 : fitting; \
        lines = (notes - noted + fitting - 1)/fitting; \
        fitting = (notes - noted + lines - 1)/lines; \
        do for [note_k=noted+1:notes] { \
            room_of[note_k] = (width - 0.2)/fitting; \
            x_of_note[note_k] = 0.1 + room_of[note_k]*((note_k - noted - 1)/lines); \
            line_of[note_k] = note_lines + (note_k - noted - 1)%lines \
        }; \
        note_lines = note_lines + lines; noted = notes \
    }'
# Lays out a plot whose notes stand below the titles of its x axes, and begins to draw it.
begin_plot = ' \
    eval end_notes; \
    bottom = 0.52 + 0.14*note_lines; \
    eval size_panels; \
    eval open_plot; \
    set multiplot; \
    eval draw_notes'
has_kind(k, kind) = strstrt(kind_of[k], kind) > 0
# Widths differ by dashes, as an SVG file's line of the colour and width of the one before would have its dashes.
note_at(x) = (x_of_note[note_k] + x)/width
draw_notes = ' \
    do for [note_k=1:notes] { \
        note_y = (0.1 + 0.14*(note_lines - 1 - line_of[note_k]))/height; note_room = room_of[note_k] - 0.36; \
        set label 200 + note_k text_in(note_of[note_k], note_room) at screen note_at(0.32), screen note_y left \
            noenhanced font font_in(note_of[note_k], note_room) textcolor rgb dark; \
        if (has_kind(note_k, "line")) { \
            set arrow 300 + note_k from screen note_at(0), screen note_y to screen note_at(0.26), screen note_y nohead \
                lw lw_of[note_k] + 0.01*dt_of[note_k] dt dt_of[note_k] lc rgb lc_of[note_k] }; \
        if (has_kind(note_k, "mark")) { \
            set label 300 + note_k "" at screen note_at(0.13), screen note_y \
                point pt pt_of[note_k] ps ps_of[note_k] lc rgb lc_of[note_k] }; \
        if (has_kind(note_k, "box")) { \
            set object 300 + note_k rectangle from screen note_at(0.03), screen note_y - 0.035/height \
                to screen note_at(0.23), screen note_y + 0.035/height front \
                fc rgb fill_of[note_k] fs solid density_of[note_k] border rgb lc_of[note_k] } \
    }'
remove_notes = 'do for [note_k=1:notes] { unset label 200 + note_k; unset label 300 + note_k; \
    unset object 300 + note_k; unset arrow 300 + note_k }'
shade_note = ' \
    note = "above what our bound certifies"; note_fill = shade_colour; note_colour = shade_colour; \
    if (shade_from < b) { eval note_box }; \
    note_colour = dark'
cross_note = ' \
    note = "rounding moves κ by over 10%"; note_pt = 2; note_ps = 1.6; \
    if (crossed) { eval note_mark }'
cross = 'with points pt 2 ps 2 lw 0.7 lc rgb dark'    # drawn before its mark, around which it sticks out

# What a tooltip in the SVG says of a point: the value of column c, named `label`, with its interval if there is one.
interval(c) = number(c.'_low') == number(c.'_low') ? sprintf(' [%.4g, %.4g]', number(c.'_low'), number(c.'_high')) : ''
tip(label, c) = sprintf('%s, step %s: %s %.4g', strcol('architecture'), strcol('env_step'), label, number(c)).interval(c)
