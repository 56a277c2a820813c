# How many eigenvalues are larger than x > 0, and smaller than x < 0, at the last checkpoint: the 99.5% band, in
# which the number lies with 99.5% at each x, a panel per architecture.
width = 5
load plots.'/style.gp'
columns = grid_columns; rows = grid_rows
right = 0.08; top = 0.22; bottom = 0.5; gap_x = 0.12; gap_y = 0.42; panel_h = 0.89
table = 'tables/distribution.csv'
take_row(dummy) = take(abs(number('eigenvalue')))
row_least(dummy) = low
eval row_limits
eval reset_limits
stats table using (take(positive(number('beyond_upper')))) nooutput
top_y = low > high ? 10. : 2*high
number_axis = 'axis = "y"; most = 3; a = 0.5; b = top_y; set yrange [a:b]; eval log_tics'
eval number_axis
eval size_left
eval size_panels
shown(x) = x < a ? a : x
side(arch, sign) = is(arch) && sign*number('eigenvalue') > 0 ? symlog(number('eigenvalue')) : NaN

eval open_plot
set multiplot
set logscale y
set label 4 'x' at screen 0.5, screen 0.12/height center
do for [i=1:words(archs)] {
    c = column_of(i); g = row_of(i)
    arch = word(archs, i)
    largest = row_largest[g + 1]; smallest = row_smallest[g + 1]
    eval place
    eval name_panel
    axis = 'x'; named = 1
    eval symlog_tics
    named = is_leftmost(i)
    eval number_axis
    y_title = named ? 'number beyond x' : ''
    eval write_y_title
    eval reset_limits
    stats table using (is(arch) ? take(number('eigenvalue')) : 0) nooutput
    if (found == 0) { set label 5 'no band' at graph 0.5, graph 0.5 center textcolor rgb gray } else { unset label 5 }
    plot for [sign in '-1 1'] table \
             using (side(arch, sign)):(shown(number('beyond_lower'))):(shown(number('beyond_upper'))) \
             with filledcurves fc rgb colour(i) fs transparent solid 0.35 noborder, \
         for [sign in '-1 1'] table using (side(arch, sign)):(shown(number('beyond_lower'))) \
             with lines lw 0.8 lc rgb colour(i), \
         for [sign in '-1 1'] table using (side(arch, sign)):(shown(number('beyond_upper'))) \
             with lines lw 0.8 lc rgb colour(i)
    unset label 4
}
unset multiplot
