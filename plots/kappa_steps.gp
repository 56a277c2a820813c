# Kappa against the number of Lanczos steps at the last checkpoint, with its bounds, a panel per architecture. If the
# architectures fill a wide grid (style.gp), they stand in that.
wide = exists('wide_columns')
load plots.'/style.gp'
columns = wide ? wide_columns : grid_columns; rows = wide ? wide_rows : grid_rows
right = 0.08; top = 0.22; gap_x = 0.12; gap_y = 0.27; panel_h = wide ? 1.25 : 1.03
table = 'tables/orders.csv'
eval reset_limits
do for [y in 'kappa kappa_lower_bound kappa_effective_bound'] {
    stats table using (take(number('order') > 1 && number(y) >= 1 ? number(y) : NaN)) nooutput
}
eval log_limits
kappa_min = a; kappa_max = b
eval reset_limits
stats table using (take(number('order'))) nooutput
orders = high
tip_bound(dummy) = sprintf('%s, m = %d: at least %.4g', \
                           strcol('architecture'), number('order'), number('kappa_effective_bound'))
order_of(arch) = is(arch) && number('order') > 1 ? number('order') : NaN

kappa_axis = 'axis = "y"; most = 4; a = kappa_min; b = kappa_max; set yrange [a:b]; eval log_tics'
eval kappa_axis
eval size_left
note = 'κ, a ratio of Ritz values'; eval note_line
note = 'lower bound'; note_dash = 6; eval note_line
note = 'lower bound off null directions'; note_pt = 5; note_ps = 0.6; eval note_mark
eval find_limits
b = kappa_max
eval shade_note
eval end_notes
bottom = 0.5 + 0.14*note_lines
eval size_panels

eval open_plot
set multiplot
eval draw_notes
set logscale y
set xrange [0:1.03*orders]
set label 4 'Lanczos steps' at screen 0.5, screen (bottom - 0.33)/height center
limits_panel(dummy) = is(arch)
do for [i=1:words(archs)] {
    c = column_of(i); g = row_of(i)
    arch = word(archs, i)
    eval place
    eval name_panel
    axis = 'x'; most = 5; a = 0; b = 1.03*orders; named = is_lowest(i)
    eval linear_tics
    named = is_leftmost(i)
    eval kappa_axis
    y_title = named ? 'κ' : ''
    eval write_y_title
    eval find_limits
    eval shade
    plot table using (order_of(arch)):(number('kappa')) with lines lw 1.3 lc rgb colour(i), \
         table using (order_of(arch)):(number('kappa_lower_bound')) with lines lw 1.3 dt 6 lc rgb colour(i), \
         table using (order_of(arch)):(number('kappa_effective_bound')):(tip_bound(0)) \
             with labels hypertext point pt 5 ps 0.5 lc rgb colour(i)
    unset label 4
    eval remove_notes
}
unset multiplot
