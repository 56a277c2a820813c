# Shared by kappa_return.gp and preconditioned_return.gp: kappa, the largest eigenvalue and the kurtosis, pooled over
# checkpoints and seeds, against the return. Before it is loaded, `table` and `source` (what they are statistics of) are
# set, and `factors`: for each of these a column of panels shows the pairs of architectures that differ in it alone, joined
# by lines; then come all architectures, with a column for each group of comparable spectra.
lone = words(factors) == 0 && group_count == 1
width = lone ? 5 : 7
load plots.'/style.gp'
has_first = 1
of_row(i) = is(word(archs, i))
load plots.'/against_return.gp'
columns = lone ? 3 : words(factors) + group_count; rows = lone ? 1 : 3
starts = 1
stats table using (starts = number('kappa_starts') > starts ? number('kappa_starts') : starts, 0) nooutput
eval find_limits
right = 0.1; top = lone ? 0.08 : 0.28; gap_x = 0.12; gap_y = 0.5; panel_h = lone ? 1.45 : 1.15
eval end_notes
statistic_axis = ' \
    eval reset_limits; \
    stats table using (take(number(name))) nooutput; \
    finite = found; \
    do for [end in "_low _high".(name eq "kappa" ? " _starts_least _starts_most" : "")] { \
        stats table using (take(number(name.end))) nooutput }; \
    found = finite; \
    axis = "x"; most = 4; named = 1; \
    eval choose_axis'
name = 'kappa'; panel_w = 1
eval statistic_axis
eval shade_note
eval cross_note
note = 'returns at step 0'; note_fill = before_colour; note_colour = before_edge
if (has_first) { eval note_box }
note = sprintf('κ of %d start vectors', starts); note_lw = 2.6; note_colour = gray
if (starts > 1) { eval note_line }
eval end_notes
bottom = (lone ? 0.68 : 0.52) + 0.14*note_lines
eval size_panels
titles = '"κ" "largest eigenvalue" "kurtosis"'
names = 'kappa lambda_max kurtosis'
heading_of(factor) = factor eq 'bn' ? 'batch normalization' : factor eq 'wn' ? 'weight normalization' : 'cross-entropy'

tip_value(n) = sprintf('%s: %s %.4g', strcol('architecture'), title, number(n)).interval(n). \
               (n eq 'kappa' ? tip_limits(0) : '').sprintf('; return %.4g', number('return')).interval('return')
shown_pair(dummy) = (sum [i=1:words(archs)] (of_row(i) && in_pair(factor, i))) > 0
shown_row(dummy) = (sum [i=1:words(archs)] (of(i, 1) == 1)) > 0
array x_of[words(archs)]
join_pairs = ' \
    arrow_tag = 1000; \
    do for [i=1:words(archs)] { do for [j=1:words(archs)] { \
        if (differ(factor, i, j) && x_of[i] == x_of[i] && x_of[j] == x_of[j]) { \
            arrow_tag = arrow_tag + 1; \
            set arrow arrow_tag from first x_of[i], first return_of[i] to first x_of[j], first return_of[j] \
                nohead back lw 0.8 lc rgb colour(i) \
        } \
    } }'
remove_pairs = 'do for [tag=1001:arrow_tag] { unset arrow tag }'

eval open_plot
set multiplot
arrow_tag = 1000
eval draw_notes
above = 0.12; heading_colour = 'black'
do for [s=0:2] { do for [f=1:words(factors)+group_count] {
    last = f > words(factors)
    group = last && group_count > 1 ? f - words(factors) : 0
    c = lone ? s : f - 1; g = lone ? 0 : s
    factor = last ? '' : word(factors, f)
    name = word(names, s + 1); title = word(titles, s + 1)
    eval place
    eval return_axis
    eval statistic_axis
    if (s == 0) { eval shade } else { unset object 1 }
    x_title = lone ? title : ''
    eval write_x_title
    if (c == 0) {
        set label 4 (lone ? source : title.', '.source) \
            at screen (left + width - right)/2/width, screen (y0 - (lone ? 0.52 : 0.37))/height center
    } else { unset label 4 }
    heading = s > 0 || lone ? '' : !last ? heading_of(factor) : group > 0 ? group_heading(group) : 'all'
    eval write_heading
    if (last && group < 2) { eval count_missing }
    if (finite == 0) { eval draw_nothing; continue }
    if (!last) {
        do for [i=1:words(archs)] {
            eval reset_limits
            stats table using (of_row(i) ? take(number(name)) : 0) nooutput
            x_of[i] = found ? low : NaN
        }
        eval join_pairs
    }
    plot table \
             using (s == 0 && moved(0) && (last ? shown_row(0) : shown_pair(0)) ? number(name) : NaN):(number('return')) \
             @cross, \
         for [i=1:last*words(archs)] table \
             using (of(i, number(name) + 0*number(name.'_low'))):(number('return')):(number(name.'_low')): \
                   (number(name.'_high')) \
             with xerrorbars pt 0 lw 0.8 lc rgb colour(i), \
         for [i=1:last*words(archs)] table \
             using (of(i, number(name))):(number('return') + 0*number('return_low')):(number('return_low')): \
                   (number('return_high')) \
             with yerrorbars pt 0 lw 0.8 lc rgb colour(i), \
         for [i=1:(last && s == 0)*words(archs)] table \
             using (of(i, number('kappa_starts_least'))):(number('return')): \
                   (number('kappa_starts_most') - number('kappa_starts_least')):(0) \
             with vectors nohead lw 2.6 lc rgb '#80'.substr(colour(i), 2, 7), \
         for [i=1:words(archs)] table \
             using (last || in_pair(factor, i) ? of(i, number(name)) : NaN):(number('return')):(tip_value(name)) \
             with labels hypertext point pt mark(i) ps 1 lc rgb colour(i)
    eval remove_notes
    eval remove_pairs
    unset label 20
} }
unset multiplot
