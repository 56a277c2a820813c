# Shared by the plots of statistics against the return, after style.gp: the scale of the returns, and a legend below the
# panels with the architectures in the order of their returns. `table` has the columns return, return_low, return_high,
# and if `has_first` first_return; of_row(i) says whether a row of it belongs to architecture i.
array return_of[words(archs)]
eval reset_limits
do for [name in 'return return_low return_high'.(has_first ? ' first_return' : '')] {
    stats table using (take(number(name))) nooutput
}
margin = high > low ? 0.08*(high - low) : 1
return_min = low - margin; return_max = high + margin
do for [i=1:words(archs)] {
    eval reset_limits
    stats table using (of_row(i) ? take(number('return')) : 0) nooutput
    return_of[i] = found ? low : NaN
}
return_axis = ' \
    axis = "y"; most = 6; named = c == 0; a = return_min; b = return_max; \
    eval linear_tics; \
    set yrange [a:b]; \
    y_title = named ? "last return".of_most : ""; \
    eval write_y_title'
axis = 'y'; a = return_min; b = return_max
eval linear_tics
eval size_left

# A statistic x in the rows of architecture i, of the group of comparable spectra that is drawn (0: of all).
group = 0
of(i, x) = of_row(i) && (group == 0 || group_of(i) == group) ? x : NaN
group_heading(g) = g == 1 ? 'comparable' : 'apart: '.word(group_names, g)
# A note in a panel with `finite` values says how many architectures are missing. An empty panel has no axis of values.
count_missing = ' \
    if (finite < words(at_rank)) { \
        missing = finite == 0 ? "no finite value" : sprintf("%d without a finite value", words(at_rank) - finite); \
        set label 20 missing at graph 0.02, graph 0.96 textcolor rgb gray font font_in(missing, 0.95*panel_w) \
    }'
draw_nothing = 'unset xtics; plot NaN; unset label 20'

# The returns before training, from the smallest to the largest one.
before_colour = '#e4e4e4'; before_edge = '#b0b0b0'
if (has_first) {
    eval reset_limits
    stats table using (take(number('first_return'))) nooutput
    if (found > 0) {
        set object 2 rectangle from graph 0, first low to graph 1, first high behind \
            fc rgb before_colour fs solid border rgb before_edge
    }
    has_first = found > 0
}

# The legend.
below(i) = int(sum [j=1:words(archs)] (return_of[j] > return_of[i] || (return_of[j] == return_of[i] && j < i)))
at_rank = ''
do for [r=0:words(archs)-1] { do for [i=1:words(archs)] {
    if (return_of[i] == return_of[i] && below(i) == r) { at_rank = at_rank.' '.i }
} }
do for [i in at_rank] {
    note = word(archs, i + 0); note_pt = mark(i + 0); note_colour = colour(i + 0)
    eval note_mark
}
note_colour = dark
