# Returns over training: a panel per loss, a curve per architecture.
width = 5; height = 2.9
load plots.'/style.gp'
table = 'tables/return_curves.csv'
load plots.'/over_training.gp'
rows = 1; left = 0.55; right = 0.1; top = 0.22; bottom = 0.56 + 0.14*legend_lines; gap_x = 0.12; gap_y = 0
eval size_panels

eval reset_limits
do for [y in 'return return_low return_high'] { stats table using (take(number(y))) nooutput }
low = low < 0 ? 1.05*low : 0; high = high > 0 ? 1.05*high : low < 0 ? 0 : 1
set multiplot
eval steps_axis
set yrange [low:high]
set xlabel panel_steps_title offset 0, 0.5
y = 'return'; g = 0
do for [c=0:columns-1] {
    p = word(panels, c + 1) + 0
    eval place
    set ylabel (c == 0 ? 'return' : '') offset 0.8, 0
    set format y number_format(c == 0)
    set label 1 loss_title[p] at screen (x0 + x1)/2/width, screen (y1 + 0.08)/height center
    eval draw_curves
}
unset multiplot
