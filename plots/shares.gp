# The layers of one critic: the share of the trace of the Hessian, an estimate, beside the share of the parameters.
width = 5
load plots.'/style.gp'
table = 'tables/shares.csv'
stats table using 0 nooutput
lines = int(STATS_records) - 1    # without the header, which is row 0
label_w(dummy) = text_w(strcol('layer'), 8)
stats table using (label_w(0)) nooutput
left = 0.15 + STATS_max; right = 0.15; top = 0.1; bottom = 0.62; gap_x = 0; gap_y = 0; panel_h = 0.3*lines
columns = 1; rows = 1
eval size_panels
height_of(dummy) = column(0) > 0 ? lines + 1 - column(0) : NaN
tip_of(dummy) = sprintf('%s: %.3g%% of the trace, %.3g%% of the parameters', strcol('layer'), number('trace'), \
                        number('parameters'))

eval open_plot
c = 0; g = 0
eval place
set xrange [0:100]
set xtics 0, 20, 100
set format x '%g%%'
set yrange [0.4:lines + 0.6]
unset ytics
set label 10 '■ share of the trace of the Hessian (estimate)' at screen 0.06, screen 0.1/height left \
    textcolor rgb '#e13971'
set label 11 '■ share of the parameters' at screen 0.66, screen 0.1/height left textcolor rgb gray
set style fill solid noborder
plot table using (0):(height_of(0)):(0):(number('trace')):(height_of(0)):(height_of(0) + 0.33) \
         with boxxyerror lc rgb '#e13971', \
     table using (0):(height_of(0)):(0):(number('parameters')):(height_of(0) - 0.33):(height_of(0)) \
         with boxxyerror lc rgb gray, \
     table using (number('trace')):(height_of(0) + 0.16):(tip_of(0)) with labels hypertext point pt 7 ps 0.2 lc rgb '#e13971', \
     table using (0):(height_of(0)):(strcol('layer')) with labels right offset -0.5,0 noenhanced textcolor rgb '#444444'
