# Conditioning against return, a point per architecture. Left: the paper's statistics, kappa, largest eigenvalue and
# kurtosis, each pooled over checkpoints and seeds. Right: 99% intervals at the last checkpoint, of the number of
# eigenvalues within a factor of 100 of the largest, the factor by which 99% of them are smaller than the largest, and
# the conditioning along the gradient. All of the standard analysis. Reads columns of summary.csv by name.
width = 5; height = 6
load plots.'/style.gp'
columns = 2; rows = 3
left = 0.6; right = names_margin; top = 0.08; bottom = 0.45; gap_x = 0.12; gap_y = 0.52
eval size_panels
of_row(i) = is(word(archs, i)) && strcol('analysis') eq 'standard'
returns = 'tables/summary.csv'
load plots.'/against_return.gp'

of(i, x) = of_row(i) ? x : NaN
any(x) = strcol('analysis') eq 'standard' ? x : NaN
titles = '"κ" "largest eigenvalue" "kurtosis (Ritz values)" "eigenvalues > largest/100" \
          "largest / 99th percentile" "κ along the gradient (90%)"'
names = 'kappa lambda_max kurtosis directions_1e2 kappa_q99 kappa_gradient_90'
tip_value(n) = sprintf('%s: %s %.4g', strcol('architecture'), title, number(n)).interval(n). \
               sprintf('; return %.4g', number('return')).interval('return')
tip_range(n) = sprintf('%s: %s %.4g to %s; return %.4g', strcol('architecture'), title, number(n.'_lower'), \
               number(n.'_upper') == number(n.'_upper') ? sprintf('%.4g', number(n.'_upper')) : '(not resolved)', \
               number('return')).interval('return')

# Ends of intervals on an axis from a to b: smaller values are cut off at a, unresolved upper ends lie at b.
in_axis(x) = x < a ? a : x
lower(i) = in_axis(of(i, number(name.'_lower')))
upper_or(x) = number(name.'_upper') == number(name.'_upper') ? number(name.'_upper') : x
most_or(x) = number(name.'_most') == number(name.'_most') ? number(name.'_most') : x
middle(i) = upper_or(-1) < 0 ? lower(i) : sqrt(lower(i)*in_axis(upper_or(-1)))

set multiplot
axis = 'x'; most = 4; named = 1
do for [panel=0:5] {
    c = panel/3; g = panel%3
    name = word(names, panel + 1); title = word(titles, panel + 1)
    range = c == 1
    eval place
    set xlabel title offset 0, 0.4
    set ylabel (c == 0 ? 'return at the end' : '') offset 0.2, 0
    set format y number_format(c == 0)
    eval reset_limits
    stats 'tables/summary.csv' using (take(any(number(range ? name.'_lower' : name)))) nooutput
    finite = found
    do for [end in (range ? '_least _upper _most' : '_low _high')] {
        stats 'tables/summary.csv' using (take(range ? positive(any(number(name.end))) : any(number(name.end)))) nooutput
    }
    found = finite
    if (range && finite > 0) { low = positive(low); high = high > 12*low ? high : 12*low }
    eval choose_axis
    unset mxtics
    if (c == 1) { eval names_beside }
    if (finite < words(archs)) {
        set label 20 (finite == 0 ? 'no finite value' : sprintf('%d without a finite value', words(archs) - finite)) \
            at graph 0.02, graph 0.96 textcolor rgb gray font ',7'
    }
    if (finite == 0) { unset xtics; plot NaN; set xtics }
    if (finite > 0 && !range) {
        plot for [i=1:words(archs)] 'tables/summary.csv' \
                 using (of(i, number(name) + 0*number(name.'_low'))):(number('return')):(number(name.'_low')):(number(name.'_high')) \
                 with xerrorbars pt 0 lw 0.8 lc rgb colour(i), \
             for [i=1:words(archs)] 'tables/summary.csv' \
                 using (of(i, number(name))):(number('return')):(number('return_low')):(number('return_high')) \
                 with yerrorbars pt 0 lw 0.8 lc rgb colour(i), \
             for [i=1:words(archs)] 'tables/summary.csv' \
                 using (of(i, number(name))):(number('return')):(tip_value(name)) \
                 with labels hypertext point pt mark(i) ps 1 lc rgb colour(i)
    }
    if (finite > 0 && range) {
        plot for [i=1:words(archs)] 'tables/summary.csv' \
                 using (of(i, in_axis(number(name.'_least')))):(number('return')):(most_or(b) - in_axis(number(name.'_least'))):(0) \
                 with vectors nohead lw 0.5 lc rgb colour(i), \
             for [i=1:words(archs)] 'tables/summary.csv' \
                 using (lower(i)):(number('return')):(in_axis(upper_or(NaN)) - lower(i)):(0) \
                 with vectors nohead lw 2.2 lc rgb colour(i), \
             for [i=1:words(archs)] 'tables/summary.csv' \
                 using (upper_or(-1) < 0 ? lower(i) : NaN):(number('return')):(b - lower(i)):(0) \
                 with vectors filled size graph 0.04, 20 lw 0.8 lc rgb colour(i), \
             for [i=1:words(archs)] 'tables/summary.csv' \
                 using (middle(i)):(number('return')):(number('return_low')):(number('return_high')) \
                 with yerrorbars pt 0 lw 0.8 lc rgb colour(i), \
             for [i=1:words(archs)] 'tables/summary.csv' \
                 using (middle(i)):(number('return')):(tip_range(name)) \
                 with labels hypertext point pt mark(i) ps 1 lc rgb colour(i)
    }
    unset label 20
    eval remove_names
}
unset multiplot
