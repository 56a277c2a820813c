# Kappa against the number of Lanczos steps at the last checkpoint, with its bounds, a panel per architecture. If the
# architectures fill a wide grid (style.gp), they stand in that.
wide = exists('wide_columns')
height = 1.0 + (wide ? 1.5*wide_rows : 1.3*grid_rows)
load plots.'/style.gp'
columns = wide ? wide_columns : grid_columns; rows = wide ? wide_rows : grid_rows
others = 4; note_columns = 2
left = 0.6; right = 0.08; top = 0.22; bottom = 0.72; gap_x = 0.12; gap_y = 0.27
eval size_notes
eval size_panels
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
limits_panel(dummy) = is(arch)
tip_bound(dummy) = sprintf('%s, m = %d: at least %.4g', \
                           strcol('architecture'), number('order'), number('kappa_effective_bound'))
order_of(arch) = is(arch) && number('order') > 1 ? number('order') : NaN

set multiplot
set logscale y
set yrange [kappa_min:kappa_max]
set xrange [0:1.03*orders]
set label 3 'Lanczos steps' at screen 0.5, screen (bottom - 0.3)/height center
k = 0; note = 'κ, a ratio of Ritz values'; note_lw = 1.4; eval note_line
k = 1; note = 'beyond noise floor'; note_fill = shade_colour; note_edge = shade_colour; eval note_box
k = 2; note = 'lower bound'; note_dash = 6; eval note_line
k = 3; note = 'lower bound off null directions'; note_pt = 5; note_ps = 0.6; eval note_mark
do for [i=1:words(archs)] {
    c = column_of(i); g = row_of(i)
    arch = word(archs, i)
    eval place
    eval name_panel
    axis = 'x'; most = columns > 6 ? 4 : 5; a = 0; b = 1.03*orders
    eval linear_tics
    set format x number_format(is_lowest(i))
    axis = 'y'; most = 4; a = kappa_min; b = kappa_max; named = is_leftmost(i)
    eval log_tics
    set format y power_format(named)
    set ylabel (named ? 'κ' : '') offset 0.8, 0
    eval find_shade
    eval shade
    plot table using (order_of(arch)):(number('kappa')) with lines lw 1.3 lc rgb colour(i), \
         table using (order_of(arch)):(number('kappa_lower_bound')) with lines lw 1.3 dt 6 lc rgb colour(i), \
         table using (order_of(arch)):(number('kappa_effective_bound')):(tip_bound(0)) \
             with labels hypertext point pt 5 ps 0.5 lc rgb colour(i)
    unset label 3
    eval remove_notes
}
unset multiplot
