# All Ritz values of each checkpoint in a column, and kappa below: a panel per architecture.
panels = words(archs)
columns = panels < 6 ? panels : 6
groups = (panels + columns - 1)/columns
width = 1.3 + 2.1*columns; height = 0.45 + 4*groups
load plots.'/style.gp'
is(arch) = strcol('architecture') eq arch

left = 0.85/width; right = 1 - 0.12/width; top = 1 - 0.08/height; bottom = 0.4/height
block = (top - bottom)/groups; panel = (right - left)/columns
x_low = -0.03*steps/unit; x_high = 1.03*steps/unit

# all panels of kappa share one scale, and so do the spectra of a row
eval reset_limits
stats 'tables/kappa.csv' using (take(number('kappa') > 0 ? number('kappa') : NaN)) nooutput
kappa_low = low > high ? 1. : 10**floor(log10(low)); kappa_high = low > high ? 10. : 10**ceil(log10(high) + 1e-9)
kappa_every = ceil(log10(kappa_high/kappa_low)/4)    # at most five labels on the axis
array row_largest[groups]
do for [g=1:groups] {
    first = (g - 1)*columns + 1; last = first + columns - 1 < panels ? first + columns - 1 : panels
    eval reset_limits
    do for [i=first:last] {
        stats 'tables/ritz.csv' using (is(word(archs, i)) ? take(abs(number('ritz'))) : 0) nooutput
    }
    row_largest[g] = high > 0 ? high : 1.
}

set multiplot
set xrange [x_low:x_high]
set label 1 steps_title.'; negative Ritz values in grey' \
    at screen (left + right)/2, screen 0.15/height center
do for [i=1:panels] {
    arch = word(archs, i)
    c = (i - 1)%columns; g = (i - 1)/columns
    largest = row_largest[g + 1]
    x0 = left + c*panel; x1 = x0 + panel*0.9
    y1 = top - g*block - 0.3/height; y0 = top - (g + 1)*block + 0.3/height
    middle = y0 + 0.32*(y1 - y0)
    set lmargin at screen x0; set rmargin at screen x1

    # the spectrum
    set tmargin at screen y1; set bmargin at screen middle
    unset logscale y
    set yrange [-1.06*symlog(largest):1.06*symlog(largest)]
    set xtics 0, 0.5*steps/unit nomirror
    set format x ''
    set format y '%g'
    set ylabel (c == 0 ? 'Ritz values' : '') offset 0.3, 0
    axis = 'y'; every = 2; named = c == 0
    eval symlog_tics
    set label 2 arch at screen (x0 + x1)/2, screen y1 + 0.13/height center font ',10' \
        textcolor rgb colour(i)
    set arrow 1 from first x_low, first 0 to first x_high, first 0 nohead ls 101 lw 0.6 back
    plot 'tables/ritz.csv' using (is(arch) && number('ritz') < 0 ? column('env_step')/unit : NaN):(symlog(number('ritz'))) \
             with points pt 7 ps 0.2 lc rgb gray, \
         '' using (is(arch) && number('ritz') >= 0 ? column('env_step')/unit : NaN):(symlog(number('ritz'))) \
             with points pt 7 ps 0.2 lc rgb colour(i)
    unset label 1; unset label 2; unset arrow 1

    # kappa
    set tmargin at screen middle - 0.12/height; set bmargin at screen y0
    set logscale y
    set yrange [kappa_low:kappa_high]
    set format x '%g'
    unset ytics
    set ytics nomirror kappa_low, 10.**kappa_every
    unset mytics
    set format y (c == 0 ? '10^{%T}' : '')
    set ylabel (c == 0 ? 'κ' : '') offset 0.3, 0
    eval reset_limits
    stats 'tables/kappa.csv' using (is(arch) ? take(number('kappa')) : 0) nooutput
    if (low > high) { set label 2 'no finite κ' at graph 0.5, graph 0.5 center textcolor rgb gray }
    plot 'tables/kappa.csv' using (is(arch) ? column('env_step')/unit : NaN):(number('kappa_low')):(number('kappa_high')) \
             with filledcurves fc rgb colour(i) fs transparent solid 0.2 noborder, \
         '' using (is(arch) ? column('env_step')/unit : NaN):(number('kappa')) \
             with linespoints pt 7 ps 0.25 lw 1.2 lc rgb colour(i), \
         '' using (is(arch) && strcol('kappa') eq 'inf' ? column('env_step')/unit : NaN):(kappa_high) \
             with points pt 9 ps 0.6 lc rgb colour(i)
    unset label 2
}
unset multiplot
