# Shared by the plots of 99% intervals over training, a panel per architecture: draws column `name` of intervals.csv
# with the axis title `title`. Thick: from the median of the lower ends to that of the upper ends over the seeds; thin:
# from the smallest to the largest end. An arrow: the upper end is not resolved.
width = 5; height = 0.6 + 1.3*grid_rows
load plots.'/style.gp'
columns = grid_columns; rows = grid_rows
left = 0.62; right = 0.08; top = 0.22; bottom = 0.46; gap_x = 0.12; gap_y = 0.27
eval size_panels
table = 'tables/intervals.csv'
eval reset_limits
do for [end in '_lower _upper _least _most'] { stats table using (take(positive(number(name.end)))) nooutput }
eval log_limits
interval_min = a; interval_max = b
end_or(end, x) = number(name.end) == number(name.end) ? number(name.end) : x
shown(x) = x < interval_min ? interval_min : x
unresolved(dummy) = number(name.'_upper') != number(name.'_upper')
at_step(arch) = is(arch) && number(name.'_lower') == number(name.'_lower') ? column('env_step')/unit : NaN
tip_range(dummy) = sprintf('%s, step %s: %s %.4g to ', \
                           strcol('architecture'), strcol('env_step'), name, number(name.'_lower')). \
              (unresolved(0) ? 'more (not resolved)' : sprintf('%.4g', number(name.'_upper')))

set multiplot
set logscale y
set yrange [interval_min:interval_max]
eval steps_axis
set label 3 steps_title at screen 0.5, screen 0.12/height center
do for [i=1:words(archs)] {
    c = column_of(i); g = row_of(i)
    arch = word(archs, i)
    eval place
    eval name_panel
    set format x number_format(is_lowest(i))
    axis = 'y'; most = 4; a = interval_min; b = interval_max; named = is_leftmost(i)
    eval log_tics
    set format y power_format(named)
    set ylabel (is_leftmost(i) ? title : '') offset 0.8, 0
    eval reset_limits
    stats table using (is(arch) ? take(number(name.'_lower')) : 0) nooutput
    if (found == 0) { set label 2 'no finite interval' at graph 0.5, graph 0.5 center textcolor rgb gray }
    else { unset label 2 }
    plot table \
             using (at_step(arch)):(shown(end_or('_least', NaN))):(0): \
                   (end_or('_most', interval_max) - shown(end_or('_least', NaN))) \
             with vectors nohead lw 0.6 lc rgb colour(i), \
         table using (at_step(arch)):(shown(number(name.'_lower'))):(0): \
                     (end_or('_upper', NaN) - shown(number(name.'_lower'))) \
             with vectors nohead lw 2.4 lc rgb colour(i), \
         table using (unresolved(0) ? at_step(arch) : NaN):(shown(number(name.'_lower'))):(0): \
                     (interval_max - shown(number(name.'_lower'))) \
             with vectors filled size graph 0.03, 20 lw 0.8 lc rgb colour(i), \
         table using (at_step(arch)): \
                     (unresolved(0) ? shown(number(name.'_lower')) : \
                       sqrt(shown(number(name.'_lower'))*number(name.'_upper'))):(tip_range(0)) \
             with labels hypertext point pt mark(i) ps 0.5 lc rgb colour(i)
    unset label 3
}
unset multiplot
