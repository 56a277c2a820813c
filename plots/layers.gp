# The largest eigenvalue of the Hessian's diagonal block of each analyzed layer at the last checkpoint, a panel per loss, a
# curve per architecture.
width = 5
load plots.'/style.gp'
table = 'tables/layers.csv'
load plots.'/over_training.gp'
at_step(i) = is(word(archs, i)) ? number('layer') : NaN
tip(label, c) = sprintf('%s, layer %s: %s %.4g', strcol('architecture'), strcol('layer'), label, number(c)).interval(c)
y = 'lambda_max'
eval reset_limits
stats table using (take(number('layer'))) nooutput
first = low; last = high
eval reset_limits
do for [end in '_ _low _high'] { stats table using (take(positive(number(end eq '_' ? y : y.end)))) nooutput }
eval log_limits
value_axis = sprintf('axis = "y"; most = 4; a = %.9g; b = %.9g; set yrange [a:b]; eval log_tics', a, b)
eval value_axis
eval size_left
rows = 1; right = 0.1; top = 0.22; gap_x = 0.12; gap_y = 0; panel_h = 1.7
eval begin_plot
set logscale y; logarithmic = 1
set xrange [first - 0.5:last + 0.5]
set xtics nomirror first, ceil((last - first + 1)/8.)
x_title = 'layer'; g = 0
do for [c=0:columns-1] {
    p = word(panels, c + 1) + 0
    eval place
    named = c == 0
    eval value_axis
    y_title = named ? 'largest eigenvalue' : ''
    eval write_y_title
    eval write_x_title
    heading = loss_title[p]
    eval write_heading
    eval draw_curves
}
unset multiplot
