# The sharpness over the largest one at which steps are stable, over training: a row per operator, a panel per loss, a
# curve per architecture. Above 1 a quadratic with this curvature would diverge. Of several analyses of an operator, each
# architecture's first one is drawn: further ones may be of another loss.
operators = ''
do for [operator in 'hessian preconditioned'] {
    there = 0
    set datafile separator comma
    stats 'tables/sharpness.csv' using (strcol('operator') eq operator && there == 0 ? (there = 1, 0) : 0) nooutput
    if (there) { operators = operators.' '.operator }
}
width = 5
load plots.'/style.gp'
table = 'tables/sharpness.csv'
load plots.'/over_training.gp'
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

y = 'sharpness_ratio'
ratio_axis = ' \
    eval reset_limits; \
    do for [end in "_ _low _high"] { \
        stats table using (of_operator(operator) ? take(positive(number(end eq "_" ? y : y.end))) : 0) nooutput }; \
    high = high < 1 ? 1 : high; \
    eval log_limits; \
    axis = "y"; most = 4; set yrange [a:b]; \
    eval log_tics'
do for [operator in operators] { eval ratio_axis }
eval size_left
rows = words(operators); right = 0.1; top = 0.22; gap_x = 0.12; gap_y = 0.16; panel_h = 1.7

eval begin_plot
set logscale y; logarithmic = 1
limit = 1
do for [g=0:rows-1] {
    operator = word(operators, g + 1)
    eval find_first
    do for [c=0:columns-1] {
        p = word(panels, c + 1) + 0
        eval place
        named = g == rows - 1
        eval steps_axis
        x_title = named ? panel_steps_title : ''
        eval write_x_title
        named = c == 0
        eval ratio_axis
        y_title = named ? title_of(operator) : ''
        eval write_y_title
        heading = g == 0 ? loss_title[p] : ''
        eval write_heading
        eval draw_curves
    }
}
unset multiplot
