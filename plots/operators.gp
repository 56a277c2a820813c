# The Ritz values of the Hessian, of its Gauss-Newton part and of the residual at the last checkpoint, each in a column,
# a panel per architecture.
width = 5
load plots.'/style.gp'
columns = grid_columns; rows = grid_rows
right = 0.08; top = 0.22; bottom = 0.3; gap_x = 0.12; gap_y = 0.27; panel_h = 1.33
table = 'tables/operators.csv'
operator(k) = word('hessian ggn residual', k)
take_row(dummy) = take(abs(number('ritz')))
eval row_limits

ritz_axis = ' \
    largest = row_largest[g + 1]; smallest = row_smallest[g + 1]; \
    axis = "y"; every = int(ceil((log10(largest) - log10(smallest))/4.)); \
    eval symlog_tics'
do for [g=0:rows-1] { eval ritz_axis }
eval size_left
eval size_panels

eval open_plot
set multiplot
set xrange [0.4:3.6]
do for [i=1:words(archs)] {
    c = column_of(i); g = row_of(i)
    arch = word(archs, i)
    eval place
    eval name_panel
    named = is_leftmost(i)
    eval ritz_axis
    y_title = named ? 'Ritz values' : ''
    eval write_y_title
    named = is_lowest(i)
    set xtics nomirror ((named ? 'H' : '') 1, (named ? 'GGN' : '') 2, (named ? 'H − GGN' : '') 3)
    set arrow 1 from graph 0, first 0 to graph 1, first 0 nohead ls 101 lw 0.6 back
    plot for [k=1:3] table \
             using (is(arch) && strcol('operator') eq operator(k) ? k - 0.3 : NaN):(symlog(number('ritz'))):(0.6):(0) \
             with vectors nohead lw 0.5 lc rgb colour(i)
}
unset multiplot
