# Kappa against the number of Lanczos steps at the last checkpoint, with its bounds, a panel per architecture.
width = 5; height = 1.11 + 1.3*grid_rows
load plots.'/style.gp'
columns = grid_columns; rows = grid_rows
left = 0.62; right = 0.08; top = 0.22; bottom = 0.86; gap_x = 0.12; gap_y = 0.27
eval size_panels
table = 'tables/orders.csv'
eval reset_limits
do for [y in 'kappa kappa_lower_bound kappa_effective_bound'] {
    stats table using (take(number('order') > 1 && number(y) >= 1 ? number(y) : NaN)) nooutput
}
eval log_limits
kappa_min = a; kappa_max = b
eval reset_limits
stats table using (take(number('order'))) nooutput
orders = high

set multiplot
set logscale y
set yrange [kappa_min:kappa_max]
set xrange [0:1.03*orders]
set label 3 'Lanczos steps' at screen 0.5, screen 0.55/height center
set key at screen 0.12, screen 0.24/height left center vertical maxrows 3 Left reverse samplen 3 noautotitle
legend = 1
do for [i=1:words(archs)] {
    c = word(grid_x, i) + 0; g = word(grid_y, i) + 0
    arch = word(archs, i)
    eval place
    eval name_panel
    axis = 'x'; most = 5; a = 0; b = 1.03*orders
    eval linear_tics
    set format x number_format(is_lowest(i))
    axis = 'y'; most = 3; a = kappa_min; b = kappa_max; named = is_leftmost(i)
    eval log_tics
    set format y power_format(is_leftmost(i))
    set ylabel (is_leftmost(i) ? 'κ' : '') offset 0.8, 0
    plot table using (is(arch) && number('order') > 1 ? number('order') : NaN):(number('kappa')) with lines lw 1.2 lc rgb colour(i), \
         table using (is(arch) && number('order') > 1 ? number('order') : NaN):(number('kappa_lower_bound')) with lines lw 1.2 dt (3,3) lc rgb colour(i), \
         table using (is(arch) && number('order') > 1 ? number('order') : NaN):(number('kappa_effective_bound')):(sprintf('%s, m = %d: at least %.4g', arch, number('order'), number('kappa_effective_bound'))) \
             with labels hypertext point pt 5 ps 0.5 lc rgb colour(i), \
         for [k=1:legend] keyentry with lines lw 1.2 lc rgb dark title 'κ, a ratio of Ritz values', \
         for [k=1:legend] keyentry with lines lw 1.2 dt (3,3) lc rgb dark title 'lower bound of the condition number', \
         for [k=1:legend] keyentry with points pt 5 ps 0.5 lc rgb dark title 'lower bound off the known null directions'
    unset label 3; unset key; legend = 0
}
unset multiplot
