# The sharpness over the largest one at which steps are stable, over training: a row per operator, a panel per loss, a
# curve per architecture. Above 1 a quadratic with this curvature would diverge. Of several analyses of an operator the
# first one is drawn: further ones may be of another loss.
load_width = 5
operators = ''; analyses = ''
do for [operator in 'hessian preconditioned'] {
    first = ''
    set datafile separator comma
    stats 'tables/sharpness.csv' using (strcol('operator') eq operator && first eq '' ? (first = strcol('analysis'), 0) : 0) nooutput
    if (first ne '') { operators = operators.' '.operator; analyses = analyses.' '.first }
}
width = load_width; height = 0.9 + 1.9*words(operators)
load plots.'/style.gp'
table = 'tables/sharpness.csv'
load plots.'/over_training.gp'
rows = words(operators); left = 0.68; right = 0.1; top = 0.22; bottom = 0.56 + 0.14*legend_lines; gap_x = 0.12; gap_y = 0.16
eval size_panels
analysis = ''
of_row(name) = strcol('analysis') eq name
at_step(i) = is(word(archs, i)) && of_row(analysis) ? column('env_step')/unit : NaN
title_of(operator) = operator eq 'hessian' ? 'λ_{max} / (2/η)' : 'preconditioned λ_{max} / bound'

set multiplot
eval steps_axis
axis = 'y'; most = 4
y = 'sharpness_ratio'
do for [g=0:rows-1] {
    operator = word(operators, g + 1); analysis = word(analyses, g + 1)
    eval reset_limits
    do for [end in '_ _low _high'] {
        stats table using (of_row(analysis) ? take(positive(number(end eq '_' ? y : y.end))) : 0) nooutput
    }
    high = high < 1 ? 1 : high
    eval log_limits
    limits = sprintf('a = %.9g; b = %.9g', a, b)
    set logscale y; logarithmic = 1
    set yrange [a:b]
    limit = 1
    do for [c=0:columns-1] {
        p = word(panels, c + 1) + 0
        eval place
        named = c == 0
        eval limits
        eval log_tics
        set format y power_format(named)
        set ylabel (named ? title_of(operator) : '') offset 0.8, 0
        set format x number_format(g == rows - 1)
        set xlabel (g == rows - 1 ? panel_steps_title : '') offset 0, 0.5
        if (g == 0) { set label 1 loss_title[p] at screen (x0 + x1)/2/width, screen (y1 + 0.08)/height center } else { unset label 1 }
        eval draw_curves
    }
}
unset multiplot
