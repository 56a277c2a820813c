# The sharpness over the largest one at which steps are stable, over training: a row per operator, a panel per loss, a
# curve per architecture. Above 1 a quadratic with this curvature would diverge. Of several analyses of an operator, each
# architecture's first one is drawn: further ones may be of another loss.
load_width = 5
operators = ''
do for [operator in 'hessian preconditioned'] {
    there = 0
    set datafile separator comma
    stats 'tables/sharpness.csv' using (strcol('operator') eq operator && there == 0 ? (there = 1, 0) : 0) nooutput
    if (there) { operators = operators.' '.operator }
}
width = load_width; height = 0.9 + 1.9*words(operators)
load plots.'/style.gp'
table = 'tables/sharpness.csv'
load plots.'/over_training.gp'
rows = words(operators); left = 0.68; right = 0.1; top = 0.22
bottom = 0.56 + 0.14*legend_lines; gap_x = 0.12; gap_y = 0.16
eval size_panels
operator = ''
of_operator(name) = strcol('operator') eq name
array first_analysis[words(archs)]
at_step(i) = is(word(archs, i)) && of_operator(operator) && strcol('analysis') eq first_analysis[i] ? \
             column('env_step')/unit : NaN
find_first = ' \
    do for [i=1:words(archs)] { \
        first = ""; \
        stats table \
            using (is(word(archs, i)) && of_operator(operator) && first eq "" ? (first = strcol("analysis"), 0) : 0) nooutput; \
        first_analysis[i] = first \
    }'
title_of(operator) = operator eq 'hessian' ? 'λ_{max} / (2/η)' : 'preconditioned λ_{max} / bound'

set multiplot
eval steps_axis
axis = 'y'; most = 4
y = 'sharpness_ratio'
do for [g=0:rows-1] {
    operator = word(operators, g + 1)
    eval find_first
    eval reset_limits
    do for [end in '_ _low _high'] {
        stats table using (of_operator(operator) ? take(positive(number(end eq '_' ? y : y.end))) : 0) nooutput
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
        if (g == 0) { set label 1 loss_title[p] at screen (x0 + x1)/2/width, screen (y1 + 0.08)/height center }
        else { unset label 1 }
        eval draw_curves
    }
}
unset multiplot
