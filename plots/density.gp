# The spectral density at the last checkpoint, a panel per architecture. Left axis: density per decade of the
# symmetric-log axis (filled), with one standard error over probes to both sides (darker band). Right axis:
# cumulative weight (line) and mass at zero (grey bar, its 99% interval a line).
panels = words(archs)
columns = panels < 6 ? panels : 6
groups = (panels + columns - 1)/columns
width = 1.4 + 2.3*columns; height = 0.3 + 2.5*groups
load plots.'/style.gp'

left = 0.75/width; right = 1 - 0.65/width; top = 1 - 0.08/height; bottom = 0.2/height
block = (top - bottom)/groups; column_width = (right - left)/columns
is(arch) = strcol('architecture') eq arch
lowest = 1e-4; bar = 0.4    # lower end of the density axis; width of the bar in decades
floored(x) = x < lowest ? lowest : x

# the panels of a row share one axis
array row_largest[groups]
do for [g=1:groups] {
    first = (g - 1)*columns + 1; last = first + columns - 1 < panels ? first + columns - 1 : panels
    eval reset_limits
    do for [i=first:last] {
        stats 'tables/staircase.csv' using (is(word(archs, i)) ? take(abs(number('eigenvalue'))) : 0) nooutput
    }
    row_largest[g] = high > 0 ? high : 1.
}

set multiplot
set label 1 'eigenvalue' at screen (left + right)/2, screen 0.13/height center
set border 11 ls 101
do for [i=1:panels] {
    arch = word(archs, i)
    c = (i - 1)%columns; g = (i - 1)/columns
    largest = row_largest[g + 1]
    x0 = left + c*column_width; x1 = x0 + column_width*0.9
    set lmargin at screen x0; set rmargin at screen x1
    set tmargin at screen top - g*block - 0.3/height; set bmargin at screen top - (g + 1)*block + 0.45/height
    set xrange [-1.06*symlog(largest):1.06*symlog(largest)]
    axis = 'x'; every = 3; named = 1
    eval symlog_tics
    set logscale y
    set yrange [lowest:10]
    set ytics nomirror
    set format y (c == 0 ? '10^{%T}' : '')
    set ylabel (c == 0 ? 'density per decade' : '') offset 1, 0
    set y2range [0:1]
    set y2tics nomirror 0.5
    set format y2 (c == columns - 1 || i == panels ? '%g' : '')
    set y2label (c == columns - 1 || i == panels ? 'cumulative' : '') offset -1, 0
    set label 2 arch at graph 0.5, graph 1.08 center font ',10' textcolor rgb colour(i)
    plot 'tables/mass.csv' using (is(arch) ? 0 : NaN):(number('zero_mass')):(bar) axes x1y2 \
             with boxes fc rgb '#bbbbbb' fs solid noborder, \
         'tables/density.csv' \
             using (is(arch) ? symlog(number('eigenvalue')) : NaN):(lowest):(number('density_per_decade')) \
             with filledcurves fc rgb colour(i) fs transparent solid 0.35 noborder, \
         'tables/density.csv' \
             using (is(arch) ? symlog(number('eigenvalue')) : NaN):(floored(number('density_per_decade_low'))):(floored(number('density_per_decade_high'))) \
             with filledcurves fc rgb colour(i) fs transparent solid 0.6 noborder, \
         'tables/mass.csv' using (is(arch) ? 0 : NaN):(number('zero_mass_lower')):(0):(number('zero_mass_upper') - number('zero_mass_lower')) axes x1y2 \
             with vectors nohead lw 1.5 lc rgb '#333333', \
         'tables/staircase.csv' \
             using (is(arch) ? symlog(number('eigenvalue')) : NaN):(number('cumulative')) axes x1y2 \
             with steps lw 1 lc rgb '#333333'
    unset label 1; unset label 2
}
unset multiplot
