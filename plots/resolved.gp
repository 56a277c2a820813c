# 99% intervals against return, a bar per architecture: the number of eigenvalues within a factor of 100 of the largest,
# the factor by which 99% of them are smaller than the largest, the conditioning along the gradient; at the last
# checkpoint of the standard analysis. Reads columns of summary.csv by name.
width = 11; height = 4.3
load plots.'/style.gp'
load plots.'/against_return.gp'

# Ends on a logarithmic axis from a to b: smaller values are cut off at a, unresolved upper ends lie at b.
in_axis(x) = x < a ? a : x
of(arch, x) = strcol('architecture') eq arch && strcol('analysis') eq 'standard' ? x : NaN
lower(arch) = in_axis(of(arch, number(name.'_lower')))
upper_or(x) = number(name.'_upper') == number(name.'_upper') ? number(name.'_upper') : x
most_or(x) = number(name.'_most') == number(name.'_most') ? number(name.'_most') : x
middle(arch) = upper_or(-1) < 0 ? lower(arch) : sqrt(lower(arch)*in_axis(upper_or(-1)))
positive(x) = x > 0 ? x : NaN

set multiplot
unset mxtics
set ylabel 'return at the end' offset 0.5, 0
set logscale x; set format x '10^{%T}'
do for [panel=1:3] {
    name = word('directions_1e2 kappa_q99 kappa_gradient_90', panel)
    set lmargin at screen (0.85 + 3.4*(panel - 1))/width
    set rmargin at screen (0.85 + 3.4*(panel - 1) + 3.1)/width
    set xlabel panel == 1 ? 'eigenvalues within a factor of 100 of the largest' \
        : panel == 2 ? 'largest over the 99th percentile of sizes' : 'conditioning along the gradient (90%)'
    if (panel > 1) { unset ylabel; set format y '' }
    eval reset_limits
    stats 'tables/summary.csv' using (take(standard(name.'_lower'))) nooutput
    points = found
    eval reset_limits
    do for [end in '_least _lower _upper _most'] {
        stats 'tables/summary.csv' using (take(positive(standard(name.end)))) nooutput
    }
    empty = low > high
    edge = empty ? 1. : high > 12*low ? (high/low)**0.06 : sqrt(15*low/high) # the axis spans at least a decade
    a = empty ? 1. : low/edge
    b = empty ? 15. : high*edge
    eval log_tics
    set xrange [a:b]
    if (points < words(archs)) {
        set label 20 sprintf('%d without a finite value', words(archs) - points) \
            at graph 0.02, graph 0.97 textcolor rgb gray
    }
    if (empty) { set format x ''; plot NaN; set format x '10^{%T}' }
    else {
        plot for [i=1:words(archs)] 'tables/summary.csv' \
                 using (of(word(archs, i), in_axis(number(name.'_least')))):(number('return')):(most_or(b) - in_axis(number(name.'_least'))):(0) \
                 with vectors nohead lw 0.6 lc rgb colour(i), \
             for [i=1:words(archs)] 'tables/summary.csv' \
                 using (lower(word(archs, i))):(number('return')):(in_axis(upper_or(a)) - lower(word(archs, i))):(0) \
                 with vectors nohead lw 2.2 lc rgb colour(i), \
             for [i=1:words(archs)] 'tables/summary.csv' \
                 using (upper_or(-1) < 0 ? lower(word(archs, i)) : NaN):(number('return')):(b - lower(word(archs, i))):(0) \
                 with vectors filled size graph 0.03, 20 lw 1 lc rgb colour(i), \
             for [i=1:words(archs)] 'tables/summary.csv' \
                 using (middle(word(archs, i))):(number('return')):(number('return_low')):(number('return_high')) \
                 with yerrorbars pt 0 lw 0.8 lc rgb colour(i), \
             for [i=1:words(archs)] 'tables/summary.csv' \
                 using (middle(word(archs, i))):(number('return')) with points \
                 pt mark(has_wn(i), word(losses, i)) ps 1.5 lw 1.5 lc rgb colour(i)
    }
    do for [i=11:20] { unset label i }
}
unset multiplot
