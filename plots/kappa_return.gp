# Conditioning against return, a point per architecture: kappa, largest eigenvalue, kurtosis, each pooled over
# checkpoints and seeds of the standard analysis. Reads columns of summary.csv by name.
width = 11; height = 4.3
load plots.'/style.gp'
load plots.'/against_return.gp'

of(arch, name) = strcol('architecture') eq arch && strcol('analysis') eq 'standard' ? scaled(name) : NaN
scaled(name) = number(name)/10.**power

set multiplot
unset mxtics
set ylabel 'return at the end' offset 0.5, 0
do for [panel=1:3] {
    name = word('kappa lambda_max kurtosis', panel)
    set lmargin at screen (0.85 + 3.4*(panel - 1))/width
    set rmargin at screen (0.85 + 3.4*(panel - 1) + 3.1)/width
    title = panel == 1 ? 'κ' : panel == 2 ? 'largest eigenvalue' : 'kurtosis of the Ritz values'
    if (panel > 1) { unset ylabel; set format y '' }
    # logarithmic if the values span more than a decade, else linear, scaled to readable numbers
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
