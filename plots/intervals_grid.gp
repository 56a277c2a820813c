# Shared by the plots of 99% intervals over training, a panel per architecture: draws column `statistic` of intervals.csv
# with the axis title `title`. Thick: from the median of the lower ends to that of the upper ends over the seeds; thin:
# from the smallest to the largest end. An arrow: the upper end is not resolved.
width = 5
load plots.'/style.gp'
columns = grid_columns; rows = grid_rows
right = 0.08; top = 0.22; bottom = 0.46; gap_x = 0.12; gap_y = 0.27; panel_h = 1.03
table = 'tables/intervals.csv'
eval reset_limits
do for [end in '_lower _upper _least _most'] { stats table using (take(positive(number(statistic.end)))) nooutput }
eval log_limits
interval_min = a; interval_max = b
interval_axis = 'axis = "y"; most = 4; a = interval_min; b = interval_max; set yrange [a:b]; eval log_tics'
eval interval_axis
eval size_left
eval size_panels
end_or(end, x) = number(statistic.end) == number(statistic.end) ? number(statistic.end) : x
shown(x) = x < interval_min ? interval_min : x
unresolved(dummy) = number(statistic.'_upper') != number(statistic.'_upper')
at_step(arch) = is(arch) && number(statistic.'_lower') == number(statistic.'_lower') ? column('env_step')/unit : NaN
tip_range(dummy) = sprintf('%s, step %s: %s %.4g to ', \
                           strcol('architecture'), strcol('env_step'), statistic, number(statistic.'_lower')). \
              (unresolved(0) ? 'more (not resolved)' : sprintf('%.4g', number(statistic.'_upper')))

eval open_plot
set multiplot
set logscale y
set label 4 steps_title at screen 0.5, screen 0.1/height center
do for [i=1:words(archs)] {
    c = column_of(i); g = row_of(i)
    arch = word(archs, i)
    eval place
    eval name_panel
    named = is_lowest(i)
    eval steps_axis
    named = is_leftmost(i)
    eval interval_axis
    y_title = named ? title : ''
    eval write_y_title
    eval reset_limits
    stats table using (is(arch) ? take(number(statistic.'_lower')) : 0) nooutput
    if (found == 0) { set label 5 'no finite interval' at graph 0.5, graph 0.5 center textcolor rgb gray }
    else { unset label 5 }
    plot table \
             using (at_step(arch)):(shown(end_or('_least', NaN))):(0): \
                   (end_or('_most', interval_max) - shown(end_or('_least', NaN))) \
             with vectors nohead lw 0.6 lc rgb colour(i), \
         table using (at_step(arch)):(shown(number(statistic.'_lower'))):(0): \
                     (end_or('_upper', NaN) - shown(number(statistic.'_lower'))) \
             with vectors nohead lw 2.4 lc rgb colour(i), \
         table using (unresolved(0) ? at_step(arch) : NaN):(shown(number(statistic.'_lower'))):(0): \
                     (interval_max - shown(number(statistic.'_lower'))) \
             with vectors filled size graph 0.03, 20 lw 0.8 lc rgb colour(i), \
         table using (at_step(arch)): \
                     (unresolved(0) ? shown(number(statistic.'_lower')) : \
                       sqrt(shown(number(statistic.'_lower'))*number(statistic.'_upper'))):(tip_range(0)) \
             with labels hypertext point pt mark(i) ps 0.5 lc rgb colour(i)
    unset label 4
}
unset multiplot
