# The largest eigenvalue of the Hessian's diagonal block of each analyzed layer at the last checkpoint, a panel per loss, a
# curve per architecture.
width = 5; height = 2.9
load plots.'/style.gp'
table = 'tables/layers.csv'
load plots.'/over_training.gp'
rows = 1; left = 0.6; right = 0.1; top = 0.22; bottom = 0.56 + 0.14*legend_lines; gap_x = 0.12; gap_y = 0
eval size_panels
at_step(i) = is(word(archs, i)) ? number('layer') : NaN
tip(label, c) = sprintf('%s, layer %s: %s %.4g', strcol('architecture'), strcol('layer'), label, number(c)).interval(c)
y = 'lambda_max'
eval reset_limits
stats table using (take(number('layer'))) nooutput
first = low; last = high
eval reset_limits
do for [end in '_ _low _high'] { stats table using (take(positive(number(end eq '_' ? y : y.end)))) nooutput }
eval log_limits
limits = sprintf('a = %.9g; b = %.9g', a, b)
set multiplot
set logscale y; logarithmic = 1
set yrange [a:b]
set xrange [first - 0.5:last + 0.5]
set xlabel 'layer' offset 0, 0.5
g = 0; axis = 'y'; most = 4
set xtics nomirror first, ceil((last - first + 1)/8.)
do for [c=0:columns-1] {
    p = word(panels, c + 1) + 0
    eval place
    named = c == 0
    eval limits
    eval log_tics
    set format y power_format(named)
    set ylabel (named ? 'largest eigenvalue' : '') offset 0.8, 0
    set label 1 loss_title[p] at screen (x0 + x1)/2/width, screen (y1 + 0.08)/height center
    eval draw_curves
}
unset multiplot
