# Norms and effective learning rate of the critics over training: a panel per metric, a curve per architecture. If the
# study has XQC's critic (bn+wn+ce) and another one of Figure 8 of the XQC paper, these are drawn in colours of this plot,
# and all others in grey.
table = 'tables/norms.csv'
width = 7
load plots.'/style.gp'
eval read_header
metrics = 'param_norm grad_norm effective_lr'.(has('definition_1_lr') ? ' definition_1_lr' : '')
titles = '"parameter norm" "gradient norm" "effective learning rate" "η/|θ|, Definition 1"'
figure8 = 'bn+wn+ce bn+ce bn+wn+mse ln+wn+ce'
entries = '"bn+wn+ce (XQC)" "bn+ce (no weight norm.)" "bn+wn+mse (squared error)" "ln+wn+ce (layer norm.)"'
shades = '#e13971 #333333 #e69f00 #4477aa'
place8(arch) = int(sum [k=1:4] (word(figure8, k) eq arch ? k : 0))    # 0: another architecture
in_figure8 = int(sum [i=1:words(archs)] (place8(word(archs, i)) > 0))
singled = in_figure8 > 1 && (sum [i=1:words(archs)] (word(archs, i) eq 'bn+wn+ce')) > 0
is_grey(i) = singled && place8(word(archs, i)) == 0
line_colour(i) = !singled ? colour(i) : is_grey(i) ? '#c8c8c8' : word(shades, place8(word(archs, i)))
line_dash(i) = singled ? 1 : dash(i)
step(i) = is(word(archs, i)) ? column('env_step')/unit : NaN
shown(x) = x > 0 ? x : NaN    # gnuplot draws bands that reach 0 on a logarithmic axis wrongly
order = ''
do for [grey=1:0:-1] { do for [i=1:words(archs)] { if (is_grey(i) == grey) { order = order.' '.i } } }

value_axis = ' \
    eval reset_limits; \
    do for [end in "_ _low _high"] { stats table using (take(positive(number(end eq "_" ? y : y.end)))) nooutput }; \
    eval log_limits; \
    axis = "y"; most = 4; set yrange [a:b]; \
    eval log_tics'
title_lines = 0
do for [y in metrics] { eval value_axis }
eval size_left
columns = words(metrics); rows = 1; right = 0.1; top = 0.24; gap_x = left + 0.02; gap_y = 0; panel_h = 1.35
do for [j in order] {
    if (!is_grey(j + 0)) {
        note = singled ? word(entries, place8(word(archs, j + 0))) : word(archs, j + 0)
        note_colour = line_colour(j + 0); note_dash = line_dash(j + 0); eval note_line
    }
}
note = 'others'; note_colour = '#c8c8c8'; note_dash = 1
if (singled && in_figure8 < words(archs)) { eval note_line }
eval begin_plot
set logscale y
set label 4 steps_title at screen 0.5, screen (bottom - 0.38)/height center
g = 0
do for [c=0:columns-1] {
    y = word(metrics, c + 1)
    eval place
    heading = word(titles, c + 1)
    eval write_heading
    eval steps_axis
    eval value_axis
    plot for [j in order] table \
             using (is_grey(j + 0) ? NaN : step(j + 0)):(shown(number(y.'_low'))):(shown(number(y.'_high'))) \
             with filledcurves fc rgb line_colour(j + 0) fs transparent solid 0.15 noborder, \
         for [j in order] table using (step(j + 0)):(shown(number(y))) \
             with lines lw (is_grey(j + 0) ? 0.7 : 1.4) dt line_dash(j + 0) lc rgb line_colour(j + 0), \
         for [j in order] table using (step(j + 0)):(shown(number(y))):(tip(y, y)) \
             with labels hypertext point pt mark(j + 0) ps (is_grey(j + 0) ? 0.1 : 0.3) lc rgb line_colour(j + 0)
    eval remove_notes
    unset label 4
}
unset multiplot
