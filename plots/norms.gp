# Parameter norm, gradient norm and effective learning rate of the critics over training: a row per metric, a panel
# per loss, a curve per architecture.
width = 5; height = 5.2
load plots.'/style.gp'
table = 'tables/norms.csv'
load plots.'/over_training.gp'
rows = 3; left = 0.68; right = 0.1; top = 0.22; bottom = 0.56 + 0.14*legend_lines; gap_x = 0.12; gap_y = 0.16
eval size_panels
titles = '"parameter norm" "gradient norm" "effective learning rate"'

set multiplot
eval steps_axis
axis = 'y'; most = 4
do for [g=0:2] {
    y = word('param_norm grad_norm effective_lr', g + 1)
    eval reset_limits
    do for [end in '_ _low _high'] {
        stats table using (take(positive(number(end eq '_' ? y : y.end)))) nooutput
    }
    limits = sprintf('low = %.9g; high = %.9g; found = %d', low, high, found)
    do for [c=0:columns-1] {
        p = word(panels, c + 1) + 0
        eval place
        set ylabel (c == 0 ? word(titles, g + 1) : '') offset 0.8, 0
        named = c == 0
        eval limits
        eval choose_axis
        set format x number_format(g == 2)
        set xlabel (g == 2 ? panel_steps_title : '') offset 0, 0.5
        if (g == 0) { set label 1 loss_title[p] at screen (x0 + x1)/2/width, screen (y1 + 0.08)/height center }
        else { unset label 1 }
        eval draw_curves
    }
}
unset multiplot
