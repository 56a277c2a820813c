# Conditioning against return, a point per architecture: kappa, largest eigenvalue, kurtosis, each pooled over
# checkpoints and seeds of the standard analysis. Columns of summary.csv by name.
width = 11; height = 4.3
load plots.'/style.gp'

# circles: cross-entropy, triangles: squared error, squares: other losses; open: weight normalization
mark(wn, loss) = loss eq 'mse' ? (wn ? 8 : 9) : loss eq 'ce' ? (wn ? 6 : 7) : (wn ? 4 : 5)
of(arch, name) = strcol('architecture') eq arch && strcol('analysis') eq 'standard' ? scaled(name) : NaN
standard(name) = strcol('analysis') eq 'standard' ? number(name) : NaN
scaled(name) = number(name)/10.**power

set multiplot
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

# returns have one scale
eval reset_limits
do for [name in 'return return_low return_high'] {
    stats 'tables/summary.csv' using (take(standard(name))) nooutput
}
margin = high > low ? 0.08*(high - low) : 1
set yrange [low - margin:high + margin]

# The tics of the axis from `a` to `b`, none near its ends, where labels would meet those of the next panel.
# Two to six of a linear one.
step_above(x) = (u = 10.**floor(log10(x)), x <= u ? u : x <= 2*u ? 2*u : x <= 5*u ? 5*u : 10*u)
linear_tics = ' \
    step = step_above((b - a)/6); \
    set xtics ceil((a + 0.05*(b - a))/step)*step, step, b - 0.05*(b - a)'
# Powers of ten, at most seven; where there are few, thrice them, too.
log_tics = ' \
    every = ceil(log10(b/a)/6); \
    set xtics 10.**ceil(log10(a*(b/a)**0.02)), 10.**every, b/(b/a)**0.02; \
    if (b < 300*a) { \
        do for [k=floor(log10(a)):ceil(log10(b))] { set xtics add (sprintf("3·10^{%d}", k) 3*10.**k) } \
    }'

unset mxtics
set ylabel 'return at the end' offset 0.5, 0
do for [panel=1:3] {
    name = word('kappa lambda_max kurtosis', panel)
    set lmargin at screen (0.85 + 3.4*(panel - 1))/width
    set rmargin at screen (0.85 + 3.4*(panel - 1) + 3.1)/width
    title = panel == 1 ? 'κ' : panel == 2 ? 'largest eigenvalue' : 'kurtosis of the Ritz values'
    if (panel > 1) { unset ylabel; set format y '' }
    # a logarithmic axis where the values span more than a decade, else numbers of a size to read
    set autoscale x
    eval reset_limits
    stats 'tables/summary.csv' using (take(standard(name))) nooutput
    empty = low > high; points = found
    stats 'tables/summary.csv' using (take(standard(name.'_low'))) nooutput
    stats 'tables/summary.csv' using (take(standard(name.'_high'))) nooutput
    logarithmic = !empty && low > 0 && high > 10*low
    size = empty ? 0 : abs(low) > abs(high) ? abs(low) : abs(high)
    power = logarithmic || size == 0 || (size >= 1e-2 && size < 1e5) ? 0 : int(floor(log10(size)))
    if (power != 0) { title = title.sprintf(' / 10^{%d}', power) }
    set xlabel title
    if (logarithmic) {
        set logscale x; set format x '10^{%T}'
        a = low/(high/low)**0.06; b = high*(high/low)**0.06
        eval log_tics
    } else {
        unset logscale x; set format x '%g'
        pad = empty || size == 0 ? 1. : high - low > 1e-4*size ? 0.06*(high - low) : 0.1*size
        a = empty ? 0. : (low - pad)/10.**power; b = empty ? 1. : (high + pad)/10.**power
        eval linear_tics
    }
    set xrange [a:b]
    if (points < words(archs)) {
        set label 20 sprintf('%d without a finite value', words(archs) - points) \
            at graph 0.02, graph 0.97 textcolor rgb gray
    }
    if (empty) { set format x ''; plot NaN }
    else {
        plot for [i=1:words(archs)] 'tables/summary.csv' \
                 using (of(word(archs, i), name) + 0*number(name.'_low')):(number('return')):(scaled(name.'_low')):(scaled(name.'_high')) \
                 with xerrorbars pt 0 lw 0.8 lc rgb colour(i), \
             for [i=1:words(archs)] 'tables/summary.csv' \
                 using (of(word(archs, i), name)):(number('return')):(number('return_low')):(number('return_high')) \
                 with yerrorbars pt 0 lw 0.8 lc rgb colour(i), \
             for [i=1:words(archs)] 'tables/summary.csv' \
                 using (of(word(archs, i), name)):(number('return')) with points \
                 pt mark(has_wn(i), word(losses, i)) ps 1.5 lw 1.5 lc rgb colour(i)
    }
    do for [i=11:20] { unset label i }
}
unset multiplot
