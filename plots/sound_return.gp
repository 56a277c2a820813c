# Conditioning against return by statistics that are known as intervals, a mark per architecture: 99% intervals at the last
# checkpoint of the number of eigenvalues within a factor of 100 of the largest, the factor by which 99% of them are
# smaller than the largest, and the conditioning along the gradient. Of the standard analysis; a row of panels for each
# group of comparable spectra.
rows = group_count
width = 5
load plots.'/style.gp'
columns = 3
right = 0.1; top = rows > 1 ? 0.28 : 0.08; gap_x = 0.12; gap_y = 0.7; panel_h = 1.45
table = 'tables/summary.csv'
has_first = 0
of_row(i) = is(word(archs, i)) && strcol('analysis') eq 'standard'
load plots.'/against_return.gp'

any(x) = strcol('analysis') eq 'standard' ? x : NaN
titles = '"eigenvalues > max/100" "max / 99th percentile" "κ along the gradient"'
names = 'directions_1e2 kappa_q99 kappa_gradient_90'
tip_range(n) = sprintf('%s: %s %.4g to %s; return %.4g', strcol('architecture'), title, number(n.'_lower'), \
               number(n.'_upper') == number(n.'_upper') ? sprintf('%.4g', number(n.'_upper')) : '(not resolved)', \
               number('return')).interval('return')

# Ends of intervals on an axis from a to b: smaller values are cut off at a, unresolved upper ends lie at b.
in_axis(x) = x < a ? a : x
lower(i) = in_axis(of(i, number(name.'_lower')))
upper_or(x) = number(name.'_upper') == number(name.'_upper') ? number(name.'_upper') : x
most_or(x) = number(name.'_most') == number(name.'_most') ? number(name.'_most') : x
middle(i) = upper_or(-1) < 0 ? lower(i) : sqrt(lower(i)*in_axis(upper_or(-1)))

eval begin_plot
do for [g=0:rows-1] { do for [c=0:2] {
    group = rows > 1 ? g + 1 : 0
    name = word(names, c + 1); title = word(titles, c + 1)
    eval place
    eval return_axis
    x_title = title
    eval write_x_title
    eval reset_limits
    stats table using (take(any(number(name.'_lower')))) nooutput
    finite = found
    do for [end in '_least _upper _most'] { stats table using (take(positive(any(number(name.end))))) nooutput }
    found = finite
    if (finite > 0) { low = positive(low); high = high > 12*low ? high : 12*low }
    axis = 'x'; most = 4; named = 1
    eval choose_axis
    if (rows > 1 && c == 1) {
        room = width - left - right
        set label 1 text_in(group_heading(group), room) at screen (x0 + x1)/2/width, screen (y1 + 0.12)/height \
            center noenhanced font font_in(group_heading(group), room)
    } else { unset label 1 }
    if (group < 2) { eval count_missing }
    if (finite == 0) { eval draw_nothing; continue }
    plot for [i=1:words(archs)] table \
             using (of(i, in_axis(number(name.'_least')))):(number('return')): \
                   (most_or(b) - in_axis(number(name.'_least'))):(0) \
             with vectors nohead lw 0.5 lc rgb colour(i), \
         for [i=1:words(archs)] table using (lower(i)):(number('return')):(in_axis(upper_or(NaN)) - lower(i)):(0) \
             with vectors nohead lw 2.2 lc rgb colour(i), \
         for [i=1:words(archs)] table using (upper_or(-1) < 0 ? lower(i) : NaN):(number('return')):(b - lower(i)):(0) \
             with vectors filled size graph 0.04, 20 lw 0.8 lc rgb colour(i), \
         for [i=1:words(archs)] table \
             using (middle(i)):(number('return') + 0*number('return_low')):(number('return_low')): \
                   (number('return_high')) \
             with yerrorbars pt 0 lw 0.8 lc rgb colour(i), \
         for [i=1:words(archs)] table using (middle(i)):(number('return')):(tip_range(name)) \
             with labels hypertext point pt mark(i) ps 1 lc rgb colour(i)
    eval remove_notes
    unset label 20
} }
unset multiplot
