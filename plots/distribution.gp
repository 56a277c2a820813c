# How many eigenvalues are larger than x > 0, and smaller than x < 0, at the last checkpoint: the 99.5% band, in
# which the number lies with 99.5% at each x, a panel per architecture.
width = 5; height = 0.75 + 1.3*grid_rows
load plots.'/style.gp'
columns = grid_columns; rows = grid_rows
left = 0.62; right = 0.08; top = 0.22; bottom = 0.5; gap_x = 0.12; gap_y = 0.42
eval size_panels
table = 'tables/distribution.csv'
array row_largest[rows]; array row_smallest[rows]
do for [g=0:rows-1] {
    row_largest[g + 1] = 0; row_smallest[g + 1] = 1e308
    do for [i=1:words(archs)] {
        if (row_of(i) != g) { continue }
        eval reset_limits
        stats table using (is(word(archs, i)) ? take(abs(number('eigenvalue'))) : 0) nooutput
        if (found > 0) {
            row_largest[g + 1] = high > row_largest[g + 1] ? high : row_largest[g + 1]
            row_smallest[g + 1] = low < row_smallest[g + 1] ? low : row_smallest[g + 1]
        }
    }
    if (row_largest[g + 1] == 0) { row_largest[g + 1] = 1.; row_smallest[g + 1] = 1e-6 }
}
eval reset_limits
stats table using (take(positive(number('beyond_upper')))) nooutput
b = low > high ? 10. : 2*high; a = 0.5
shown(x) = x < a ? a : x
side(arch, sign) = is(arch) && sign*number('eigenvalue') > 0 ? symlog(number('eigenvalue')) : NaN

set multiplot
set logscale y
set yrange [a:b]
set label 3 'x' at screen 0.5, screen 0.12/height center
do for [i=1:words(archs)] {
    c = column_of(i); g = row_of(i)
    arch = word(archs, i)
    largest = row_largest[g + 1]; smallest = row_smallest[g + 1]
    eval place
    eval name_panel
    set xrange [-1.04*symlog(largest):1.04*symlog(largest)]
    axis = 'x'; every = 99; named = 1
    eval symlog_tics
    axis = 'y'; most = 3; named = is_leftmost(i)
    eval log_tics
    set format y power_format(is_leftmost(i))
    set ylabel (is_leftmost(i) ? 'number beyond x' : '') offset 0.8, 0
    eval reset_limits
    stats table using (is(arch) ? take(number('eigenvalue')) : 0) nooutput
    if (found == 0) { set label 2 'no band' at graph 0.5, graph 0.5 center textcolor rgb gray } else { unset label 2 }
    plot for [sign in '-1 1'] table \
             using (side(arch, sign)):(shown(number('beyond_lower'))):(shown(number('beyond_upper'))) \
             with filledcurves fc rgb colour(i) fs transparent solid 0.35 noborder, \
         for [sign in '-1 1'] table using (side(arch, sign)):(shown(number('beyond_lower'))) \
             with lines lw 0.8 lc rgb colour(i), \
         for [sign in '-1 1'] table using (side(arch, sign)):(shown(number('beyond_upper'))) \
             with lines lw 0.8 lc rgb colour(i)
    unset label 3
}
unset multiplot
