# Returns over training: a panel per loss, a curve per architecture.
width = 5
load plots.'/style.gp'
table = 'tables/return_curves.csv'
load plots.'/over_training.gp'
eval reset_limits
do for [y in 'return return_low return_high'] { stats table using (take(number(y))) nooutput }
low = low < 0 ? 1.05*low : 0; high = high > 0 ? 1.05*high : low < 0 ? 0 : 1
return_axis = 'axis = "y"; most = 6; a = low; b = high; set yrange [a:b]; eval linear_tics'
eval return_axis
eval size_left
rows = 1; right = 0.1; top = 0.22; gap_x = 0.12; gap_y = 0; panel_h = 1.7
eval begin_plot
y = 'return'; g = 0
do for [c=0:columns-1] {
    p = word(panels, c + 1) + 0
    eval place
    named = 1
    eval steps_axis
    named = c == 0
    eval return_axis
    y_title = named ? 'return'.of_most : ''
    eval write_y_title
    x_title = panel_steps_title
    eval write_x_title
    heading = loss_title[p]
    eval write_heading
    eval draw_curves
}
unset multiplot
