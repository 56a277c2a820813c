# The area under the curve of normalized scores, a group of bars per suite and a bar per system, with its interval.
# `archs` are the numbers of the systems, whose names stand in the table; `suites` are the groups.
systems = words(archs)
table = 'tables/scores.csv'
set datafile separator comma
set datafile commentschars ''
array names[systems]
do for [i=1:systems] {
    k = 0; last = ''; found_name = ''
    stats table \
        using (column('tasks') > 0 && strcol('system') ne last ? \
               (k = k + 1, last = strcol('system'), k == i ? (found_name = last, 0) : 0) : 0) nooutput
    names[i] = found_name
}
width = 5
load plots.'/style.gp'

# Lighter with weight normalization, whose marks are open in the other plots; lighter still with the squared error.
density(i) = has_wn(i) ? (word(losses, i) eq 'mse' ? 0.05 : 0.25) : word(losses, i) eq 'mse' ? 0.5 : 0.85

eval reset_limits
do for [y in 'area area_low area_high'] { stats table using (take(number(y))) nooutput }
low = low < 0 ? 1.05*low : 0; high = high > 0 ? 1.05*high : low < 0 ? 0 : 1
axis = 'y'; a = low; b = high
set yrange [a:b]
eval linear_tics
set ytics add ('0' 0)
title_lines = 2
eval size_left
columns = 1; rows = 1; c = 0; g = 0; right = 0.1; top = 0.1; gap_x = 0; gap_y = 0; panel_h = 1.7
do for [i=1:systems] {
    note = names[i]; note_fill = colour(i); note_colour = colour(i); note_density = density(i)
    eval note_box
}
eval end_notes
bottom = 0.5 + 0.14*note_lines
eval size_panels
eval place
y_title = 'area under the IQM of'; y_line = 'normalized scores'
eval write_y_title
eval open_plot
eval draw_notes
set xrange [0.5:words(suites) + 0.5]
set border 2
set grid noxtics
set arrow 1 from graph 0, first 0 to graph 1, first 0 nohead ls 101 front
shown(suite) = suite eq 'HumanoidBench' ? "Humanoid\nBench" : \
               suite[1:11] eq 'dm_control-' ? "dm_control\n".suite[12:*] : suite
set xtics nomirror scale 0 () noenhanced font ',7'
do for [s=1:words(suites)] { set xtics add (shown(word(suites, s)) s) }

slot = 0.84/systems
place_of(suite) = sum [s=1:words(suites)] (word(suites, s) eq suite ? s : 0)
bar_at(i) = strcol('system') eq names[i] ? place_of(strcol('suite')) + (i - 0.5*(systems + 1))*slot : NaN
tip_area(dummy) = sprintf('%s, %s (tasks: %s): area %.4g', \
                          strcol('system'), strcol('suite'), strcol('tasks'), number('area')).interval('area')
plot for [i=1:systems] table using (bar_at(i)):(0.5*number('area')):(tip_area(0)) \
         with labels hypertext point pt 5 ps 0.2 lc rgb colour(i), \
     for [i=1:systems] table using (bar_at(i)):(number('area')):(0.88*slot) \
         with boxes fc rgb colour(i) fs solid density(i) border lc rgb colour(i) lw 0.8, \
     for [i=1:systems] table using (bar_at(i)):(number('area_low')):(0):(number('area_high') - number('area_low')) \
             with vectors heads size screen 0.004, 90 lw 0.8 lc rgb dark
