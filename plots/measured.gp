# One critic among the critics that were measured: the 99% intervals of directions_1e2, from the most directions to the
# fewest. Dark: this critic. Blue: this critic is better conditioned; red: it is worse; gray: the intervals do not decide.
# A line up to the right edge: the upper end is not resolved.
width = 5
load plots.'/style.gp'
table = 'tables/measured.csv'
stats table using 0 nooutput
lines = int(STATS_records) - 1    # without the header, which is row 0
eval reset_limits
do for [end in 'lower upper'] { stats table using (take(positive(number('directions_1e2_'.end)))) nooutput }
eval log_limits
label_w(dummy) = text_w(strcol('critic'), 8)
stats table using (label_w(0)) nooutput
left = 0.15 + STATS_max; right = 0.1; top = 0.1; bottom = 0.62; gap_x = 0; gap_y = 0; panel_h = 0.135*lines
columns = 1; rows = 1
eval size_panels
verdicts = 'self better worse undecided'
colour_of(verdict) = verdict eq 'self' ? dark : verdict eq 'better' ? '#4477aa' : verdict eq 'worse' ? '#e13971' : gray
height_of(dummy) = column(0) > 0 ? lines + 1 - column(0) : NaN
from(verdict) = strcol('verdict') eq verdict ? number('directions_1e2_lower') : NaN
to(dummy) = number('directions_1e2_upper') == number('directions_1e2_upper') ? number('directions_1e2_upper') : b
tip_of(dummy) = sprintf('%s: %s to %s directions', strcol('critic'), strcol('directions_1e2_lower'), \
                        strcol('directions_1e2_upper'))

eval open_plot
c = 0; g = 0
eval place
axis = 'x'; named = 1
set logscale x
set xrange [a:b]
eval log_tics
set yrange [0.3:lines + 0.7]
unset ytics
set label 3 'directions within a factor of 100 of the largest curvature' at screen 0.5, screen 0.27/height center
i = 0
do for [verdict in 'better worse undecided'] {
    set label 10 + i '● '.(verdict eq 'undecided' ? 'undecided' : 'this critic is '.verdict) \
        at screen 0.06 + 0.32*i, screen 0.1/height left textcolor rgb colour_of(verdict)
    i = i + 1
}
plot for [verdict in verdicts] table using (from(verdict)):(height_of(0)):(to(0) - from(verdict)):(0) \
         with vectors nohead lw (verdict eq 'self' ? 4 : 2.2) lc rgb colour_of(verdict), \
     for [verdict in verdicts] table using (from(verdict)):(height_of(0)):(tip_of(0)) \
         with labels hypertext point pt 7 ps 0.3 lc rgb colour_of(verdict), \
     for [verdict in verdicts] table using (strcol('verdict') eq verdict ? a : NaN):(height_of(0)):(strcol('critic')) \
         with labels right offset -0.5,0 noenhanced textcolor rgb (verdict eq 'self' ? 'black' : '#444444')
