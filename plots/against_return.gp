# Shared by the plots of statistics against the return: the marks and their legend, the scale of the returns, the
# tics of the other axis. A script with three panels, 11 by 4.3 inches, loads this after style.gp.

# circles: cross-entropy, triangles: squared error, squares: other losses; open: weight normalization
mark(wn, loss) = loss eq 'mse' ? (wn ? 8 : 9) : loss eq 'ce' ? (wn ? 6 : 7) : (wn ? 4 : 5)
standard(name) = strcol('analysis') eq 'standard' ? number(name) : NaN

set tmargin at screen 1 - 0.2/height; set bmargin at screen 1.2/height

# the legend, in two lines
first_line = 0.42/height; second_line = 0.18/height
kinds = 'bn ln dense'
do for [i=1:3] {
    set label 10 + i norm_title(word(kinds, i)) at screen (0.9 + 2.2*(i - 1))/width, screen first_line \
        offset 1, -0.2 point pt 7 ps 1.2 lc rgb norm_colour(word(kinds, i))
}
set label 14 'cross-entropy' at screen 0.9/width, screen second_line offset 1, -0.2 point pt 7 ps 1.2 lc rgb '#333333'
set label 15 'squared error' at screen 3.1/width, screen second_line offset 1, -0.2 point pt 9 ps 1.3 lc rgb '#333333'
set label 16 'without weight normalization' at screen 5.3/width, screen second_line offset 2.6, -0.2 point pt 7 ps 1.2 lc rgb '#333333'
set label 17 '' at screen 5.45/width, screen second_line point pt 9 ps 1.3 lc rgb '#333333'
set label 18 'with weight normalization' at screen 8.1/width, screen second_line offset 2.6, -0.2 point pt 6 ps 1.2 lw 1.3 lc rgb '#333333'
set label 19 '' at screen 8.25/width, screen second_line point pt 8 ps 1.3 lw 1.3 lc rgb '#333333'

# all panels share the scale of the returns
eval reset_limits
do for [name in 'return return_low return_high'] {
    stats 'tables/summary.csv' using (take(standard(name))) nooutput
}
margin = high > low ? 0.08*(high - low) : 1
set yrange [low - margin:high + margin]

# The tics of the axis from `a` to `b`: none near its ends, where labels would touch those of the next panel.
# A linear axis gets two to six.
step_above(x) = (u = 10.**floor(log10(x)), x <= u ? u : x <= 2*u ? 2*u : x <= 5*u ? 5*u : 10*u)
linear_tics = ' \
    step = step_above((b - a)/6); \
    set xtics ceil((a + 0.05*(b - a))/step)*step, step, b - 0.05*(b - a)'
# A logarithmic axis gets powers of ten, at most seven; if there are few, also three times each.
log_tics = ' \
    every = ceil(log10(b/a)/6); \
    set xtics 10.**ceil(log10(a*(b/a)**0.02)), 10.**every, b/(b/a)**0.02; \
    if (b < 300*a) { \
        do for [k=floor(log10(a)):ceil(log10(b))] { set xtics add (sprintf("3·10^{%d}", k) 3*10.**k) } \
    }'
