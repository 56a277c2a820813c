# Return over training of each variant, in a panel of its own, beside that of the architecture that it changes.
shown_variants = ''
do for [i=1:words(archs)] {
    do for [j=1:words(archs)] { if (word(archs, j) eq word(bases, i)) { shown_variants = shown_variants.' '.i } }
}
columns = words(shown_variants) == 4 ? 2 : words(shown_variants) > 2 ? 3 : words(shown_variants) == 2 ? 2 : 1
rows = (words(shown_variants) + columns - 1)/columns
width = 5
load plots.'/style.gp'
table = 'tables/return_curves.csv'
eval reset_limits
do for [y in 'return return_low return_high'] { stats table using (take(number(y))) nooutput }
low = low < 0 ? 1.05*low : 0; high = high > 0 ? 1.05*high : low < 0 ? 0 : 1
step_of(arch) = is(arch) ? column('env_step')/unit : NaN
return_axis = 'axis = "y"; most = 4; a = low; b = high; set yrange [a:b]; eval linear_tics'
eval return_axis
eval size_left
right = 0.1; top = 0.2; bottom = 0.48; gap_x = 0.12; gap_y = 0.26; panel_h = 1.1
eval size_panels
eval open_plot
set multiplot
do for [k=1:words(shown_variants)] {
    i = int(word(shown_variants, k)); c = (k - 1)%columns; g = (k - 1)/columns
    variant = word(archs, i); base = word(bases, i)
    eval place
    eval name_panel
    set label 4 text_in(base, 0.92*panel_w) at graph 0.04, graph 0.9 noenhanced textcolor rgb gray \
        font font_in(base, 0.92*panel_w)
    named = k + columns > words(shown_variants)
    eval steps_axis
    x_title = named ? short_steps_title : ''
    eval write_x_title
    named = c == 0
    eval return_axis
    y_title = named ? 'return'.of_most : ''
    eval write_y_title
    plot table using (step_of(base)):(number('return_low')):(number('return_high')) \
             with filledcurves fc rgb gray fs transparent solid 0.18 noborder, \
         table using (step_of(base)):(number('return')) with lines lw 1.2 lc rgb gray, \
         table using (step_of(variant)):(number('return_low')):(number('return_high')) \
             with filledcurves fc rgb colour(i) fs transparent solid 0.18 noborder, \
         table using (step_of(variant)):(number('return')) with lines lw 1.3 lc rgb colour(i), \
         table using (step_of(base)):(number('return')):(tip('return', 'return')) \
             with labels hypertext point pt 7 ps 0.3 lc rgb gray, \
         table using (step_of(variant)):(number('return')):(tip('return', 'return')) \
             with labels hypertext point pt mark(i) ps 0.4 lc rgb colour(i)
}
unset multiplot
