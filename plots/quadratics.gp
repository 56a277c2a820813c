# Gradient descent on two-dimensional quadratics of growing condition number. Above: the first steps for three of them, in
# coordinates in which all start at the same place; below: the distance from the minimum over the steps.
width = 5
load plots.'/style.gp'
table = 'tables/quadratics.csv'
shades = '#56b4e9 #0072b2 #009e73 #e69f00 #d55e00 #333333'
kappas = '1 3 10 30 100 1000'
of(k) = number('kappa') == word(kappas, k)
distance_axis = 'axis = "y"; most = 4; a = 1e-6; b = 2; set yrange [a:b]; eval log_tics'
eval distance_axis
eval size_left
columns = 3; rows = 1; right = 0.75; top = 0.2; bottom = 2.6; gap_x = 0.12; gap_y = 0; panel_h = 1.15
eval size_panels
eval open_plot
set multiplot
g = 0
set xrange [-0.1:1.1]; set yrange [-1.2:1.2]
set xtics 0, 1; set ytics -1, 1
do for [c=0:2] {
    k = word('2 3 5', c + 1) + 0
    eval place
    y_title = c == 0 ? 'κ x_2' : ''
    eval write_y_title
    x_title = 'x_1'
    eval write_x_title
    set format y (c == 0 ? '%g' : '')
    above = 0.07; heading = 'κ = '.word(kappas, k); heading_colour = word(shades, k)
    eval write_heading
    plot table using (of(k) && number('step') <= 20 ? number('x1') : NaN):(number('x2')*number('kappa')) \
             with linespoints lw 0.8 pt 7 ps 0.3 lc rgb word(shades, k)
}
unset label 1

columns = 1; top = 1.95; bottom = 0.5; panel_h = 1.5
eval size_panels
c = 0
eval place
x_title = 'steps'
eval write_x_title
y_title = 'distance / first distance'
eval write_y_title
set logscale y
set xrange [0:100]
set xtics 0, 20
eval distance_axis
do for [k=1:6] {
    eval reset_limits
    stats table \
        using (of(k) && number('distance') > 1.2e-6 ? (low = number('distance'), high = number('step'), 0) : 0) nooutput
    set label 10 + k 'κ = '.word(kappas, k) at first (k == 1 ? 0 : high), first (k == 1 ? 2e-6 : low) left \
        offset (k == 1 ? 0.3 : 0.8), (k == 2 || k == 3 ? 0.4 : 0) textcolor rgb word(shades, k)
}
plot for [k=1:6] table using (of(k) ? number('step') : NaN):(number('distance') > 1e-12 ? number('distance') : 1e-12) \
         with lines lw 1.3 lc rgb word(shades, k)
unset multiplot
