# The checkpoints of one run: the 99% intervals of directions_1e2 over the steps of training. An arrow: the upper end is
# not resolved.
width = 5
load plots.'/style.gp'
table = 'tables/steps.csv'
stats table using (number('env_step')) nooutput
steps = STATS_max > 0 ? STATS_max : 1
unit = steps < 10000 ? 1. : 1e3
eval reset_limits
do for [end in 'lower upper'] { stats table using (take(positive(number('directions_1e2_'.end)))) nooutput }
eval log_limits
axis = 'y'; most = 4; named = 1
set yrange [a:b]
eval log_tics
eval size_left
right = 0.2; top = 0.1; bottom = 0.5; gap_x = 0; gap_y = 0; panel_h = 1.8; columns = 1; rows = 1
eval size_panels
from(dummy) = number('directions_1e2_lower') > a ? number('directions_1e2_lower') : a
resolved(dummy) = number('directions_1e2_upper') == number('directions_1e2_upper')

eval open_plot
c = 0; g = 0
eval place
set logscale y
set xrange [0:1.05*steps/unit]
x_title = unit > 1 ? 'environment steps (thousands)' : 'environment steps'
eval write_x_title
y_title = 'directions within a factor of 100'
eval write_y_title
plot table using (resolved(0) ? number('env_step')/unit : NaN):(from(0)):(0):(number('directions_1e2_upper') - from(0)) \
         with vectors nohead lw 2.4 lc rgb dark, \
     table using (resolved(0) ? NaN : number('env_step')/unit):(from(0)):(0):(b - from(0)) \
         with vectors filled size graph 0.02, 20 lw 0.8 lc rgb dark, \
     table using (number('env_step')/unit):(from(0)) with points pt 7 ps 0.3 lc rgb dark
