# How many eigenvalues of one critic's Hessian are larger than x > 0 (right), and smaller than -x < 0 (left): the 99.5%
# band, in which the number lies with 99.5% at each x. Both panels have the same logarithmic axis, from a millionth of the
# largest absolute eigenvalue to that, so that outliers and bulk of both signs can be seen.
width = 5
load plots.'/style.gp'
table = 'tables/spectrum.csv'
eval reset_limits
stats table using (take(positive(abs(number('eigenvalue'))))) nooutput
largest = high > 0 ? 1.3*high : 1.
least = largest/2e6
eval reset_limits
stats table using (take(positive(number('beyond_upper')))) nooutput
axis = 'y'; most = 5; a = 0.5; b = low > high ? 10. : 2*high
set yrange [a:b]
eval log_tics
rows = 1; columns = 2; right = 0.1; top = 0.22; bottom = 0.5; gap_x = 0.15; gap_y = 0; panel_h = 1.7
eval size_left
eval size_panels
count_of(end) = number('beyond_'.end) > a ? number('beyond_'.end) : a
at(sign) = sign*number('eigenvalue') >= least ? sign*number('eigenvalue') : NaN

eval open_plot
set multiplot
set logscale xy
g = 0
do for [c=0:1] {
    sign = c == 0 ? -1 : 1
    eval place
    heading = c == 0 ? 'smaller than −x' : 'larger than x'
    eval write_heading
    axis = 'y'; named = c == 0; most = 5; a = 0.5; b = low > high ? 10. : 2*high
    eval log_tics
    y_title = named ? 'number of eigenvalues' : ''
    eval write_y_title
    axis = 'x'; named = 1; most = 6; a = least; b = largest
    if (c == 0) { set xrange [b:a] } else { set xrange [a:b] }
    eval log_tics
    a = 0.5
    x_title = 'x'
    eval write_x_title
    plot table using (at(sign)):(count_of('lower')):(count_of('upper')) \
             with filledcurves fc rgb '#4477aa' fs transparent solid 0.35 noborder, \
         table using (at(sign)):(count_of('lower')) with lines lw 0.8 lc rgb '#4477aa', \
         table using (at(sign)):(count_of('upper')) with lines lw 0.8 lc rgb '#4477aa'
}
unset multiplot
