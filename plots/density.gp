# The spectral density at the last checkpoint, a panel per architecture: per decade of the symmetric-log axis, in cells
# as wide as the Ritz values are apart, with one standard error over the probes. Eigenvalues in the grey strip at zero
# cannot be distinguished from zero; the text has their share, an interval that holds with 99%.
width = 5
load plots.'/style.gp'
columns = grid_columns; rows = grid_rows
right = 0.08; top = 0.22; gap_x = 0.12; gap_y = 0.42; panel_h = 0.89

table = 'tables/density.csv'
take_row(dummy) = take(abs(number('lower'))) + take(abs(number('upper')))
eval row_limits
eval reset_limits
stats table using (take(positive(number('density_per_decade')))) nooutput
floor_y = low > high ? 1e-6 : low < 1e-7 ? 1e-7 : 10.**floor(log10(low))
top_y = 30*(low > high ? 1. : 10.**ceil(log10(high)))
zero_colour = '#cccccc'
limited(x) = x > floor_y ? x : floor_y

density_axis = 'axis = "y"; most = 3; a = floor_y; b = top_y; set yrange [a:b]; eval log_tics'
eval density_axis
eval size_left
note = 'cannot be told from zero (zero: share, 99% interval)'; note_fill = zero_colour; note_colour = zero_colour
eval note_box
eval end_notes
bottom = 0.56 + 0.14*note_lines
eval size_panels

eval open_plot
set multiplot
set logscale y
set label 4 'eigenvalue' at screen 0.5, screen (bottom - 0.37)/height center
eval draw_notes
do for [i=1:words(archs)] {
    c = column_of(i); g = row_of(i)
    arch = word(archs, i)
    largest = row_largest[g + 1]; smallest = row_smallest[g + 1]
    eval place
    eval name_panel
    axis = 'x'; named = 1
    eval symlog_tics
    named = is_leftmost(i)
    eval density_axis
    y_title = named ? 'per decade' : ''
    eval write_y_title
    share = ''
    stats 'tables/mass.csv' using (is(arch) && number('zero_mass_upper') == number('zero_mass_upper') ? \
        (share = 'zero: '.percent(number('zero_mass_lower')).' to '.percent(number('zero_mass_upper')).'%', 0) : 0) nooutput
    set label 5 share at graph 0.03, graph 0.91 left font ',6.5' textcolor rgb dark front
    plot 'tables/mass.csv' \
             using (is(arch) ? 0 : NaN):(top_y):(-symlog(number('noise_floor'))): \
                   (symlog(number('noise_floor'))):(floor_y):(top_y) \
             with boxxyerror fc rgb zero_colour fs solid noborder, \
         table \
             using (is(arch) ? symlog((number('lower') + number('upper'))/2) : NaN): \
                   (number('density_per_decade')):(symlog(number('lower'))):(symlog(number('upper'))): \
                   (floor_y):(limited(number('density_per_decade'))) \
             with boxxyerror fc rgb colour(i) fs transparent solid 0.45 noborder, \
         table \
             using (is(arch) ? symlog((number('lower') + number('upper'))/2) : NaN): \
                   (number('density_per_decade')):(symlog(number('lower'))):(symlog(number('upper'))): \
                   (limited(number('density_per_decade_low'))):(limited(number('density_per_decade_high'))) \
             with boxxyerror fc rgb colour(i) fs transparent solid 0.4 noborder
    unset label 4
    eval remove_notes
}
unset multiplot
