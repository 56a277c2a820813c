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
    set yrange [return_min:return_max]; \
    set ylabel (c == 0 ? "return at the end" : "") offset 0.2, 0; \
    set format y number_format(c == 0)'

# A statistic x in the rows of architecture i, of the group of comparable spectra that is drawn (0: of all).
group = 0
of(i, x) = of_row(i) && (group == 0 || group_of(i) == group) ? x : NaN
group_heading(g) = g == 1 ? 'comparable' : 'apart: '.word(group_names, g)
heading_size(text, width) = (fit = width/(0.075*strlen(text)), fit > 1 ? 8 : fit > 0.6 ? 8*fit : 5)
# A note in a panel with `finite` values says how many architectures are missing. An empty panel has no axis of values.
count_missing = ' \
    if (finite < words(at_rank)) { \
        set label 20 (finite == 0 ? "no finite value" : sprintf("%d without a finite value", words(at_rank) - finite)) \
            at graph 0.02, graph 0.96 textcolor rgb gray font ",7" \
    }'
draw_nothing = 'unset xtics; plot NaN; set xtics; unset label 20'

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

# The legend: the names, and below them `others` notes (style.gp).
below(i) = int(sum [j=1:words(archs)] (return_of[j] > return_of[i] || (return_of[j] == return_of[i] && j < i)))
at_rank = ''
do for [r=0:words(archs)-1] { do for [i=1:words(archs)] {
    if (return_of[i] == return_of[i] && below(i) == r) { at_rank = at_rank.' '.i }
} }
ranked(k) = int(word(at_rank, k))
longest = 0
do for [i=1:words(archs)] { longest = strlen(word(archs, i)) > longest ? strlen(word(archs, i)) : longest }
size_legend = ' \
    eval size_notes; \
    name_w = 0.3 + 0.071*longest; \
    name_columns = int((width - left - right)/name_w); \
    name_columns = name_columns < 1 ? 1 : name_columns > words(at_rank) ? words(at_rank) : name_columns; \
    name_lines = (words(at_rank) + name_columns - 1)/name_columns; \
    name_columns = (words(at_rank) + name_lines - 1)/name_lines; \
    name_w = (width - left - right)/name_columns; \
    bottom = bottom + 0.1 + 0.14*(name_lines + note_lines)'
draw_legend = ' \
    do for [k=1:words(at_rank)] { \
        set label 200 + k word(archs, ranked(k)) at screen (left + 0.1 + name_w*((k - 1)/name_lines))/width, \
            screen (0.1 + 0.14*(note_lines + name_lines - 1 - (k - 1)%name_lines))/height left \
            noenhanced offset 1, -0.25 textcolor rgb dark point pt mark(ranked(k)) ps 1 lc rgb colour(ranked(k)) \
    }'
remove_legend = 'do for [k=1:words(archs)] { unset label 200 + k }; eval remove_notes'
