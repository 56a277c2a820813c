# All Ritz values of each checkpoint in a column, and kappa below: a pair of panels per architecture.
width = 5; height = 0.59 + 1.95*grid_rows
load plots.'/style.gp'
columns = grid_columns; rows = grid_rows
left = 0.62; right = 0.08; top = 0.22; bottom = 0.46; gap_x = 0.12; gap_y = 0.27
eval size_panels
dash_w = 0.6*checkpoint_gap/unit

# all panels of kappa share one scale, and so do the spectra of a row of panels
eval reset_limits
stats 'tables/kappa.csv' using (take(positive(number('kappa')))) nooutput
kappa_low = low > high ? 1. : 10**floor(log10(low)); kappa_high = low > high ? 10. : 10**ceil(log10(high) + 1e-9)
kappa_every = ceil(log10(kappa_high/kappa_low)/2)    # at most three labels on the axis
array row_largest[rows]; array row_smallest[rows]
do for [g=0:rows-1] {
    row_largest[g + 1] = 0; row_smallest[g + 1] = 1e308
    do for [i=1:words(archs)] {
        if (word(grid_y, i) != g) { continue }
        eval reset_limits
        stats 'tables/ritz.csv' using (is(word(archs, i)) ? take(abs(number('ritz'))) : 0) nooutput
        if (found > 0 && high > 0) {
            row_largest[g + 1] = high > row_largest[g + 1] ? high : row_largest[g + 1]
            row_smallest[g + 1] = 1e-6*high < row_smallest[g + 1] ? 1e-6*high : row_smallest[g + 1]
        }
    }
    if (row_largest[g + 1] == 0) { row_largest[g + 1] = 1.; row_smallest[g + 1] = 1e-6 }
}

set multiplot
eval steps_axis
set xrange [-dash_w:steps/unit + dash_w]
set label 3 steps_title at screen 0.5, screen 0.12/height center
do for [i=1:words(archs)] {
    c = word(grid_x, i) + 0; g = word(grid_y, i) + 0
    arch = word(archs, i)
    largest = row_largest[g + 1]; smallest = row_smallest[g + 1]
    eval place
    middle = y0 + 0.3*panel_h

    # the spectrum
    eval name_panel
    set bmargin at screen (middle + 0.12)/height
    unset logscale y
    set yrange [-1.04*symlog(largest):1.04*symlog(largest)]
    set format x ''; set format y '%g'
    set ylabel (is_leftmost(i) ? 'Ritz values' : '') offset 0.8, 0
    axis = 'y'; every = ceil((log10(largest) - log10(smallest))/4.); named = is_leftmost(i)
    eval symlog_tics
    set arrow 1 from graph 0, first 0 to graph 1, first 0 nohead ls 101 lw 0.6 back
    plot 'tables/ritz.csv' \
             using (is(arch) ? column('env_step')/unit - dash_w/2 : NaN):(symlog(number('ritz'))):(dash_w):(0) \
             with vectors nohead lw 0.5 lc rgb colour(i)
    unset label 1; unset label 3; unset arrow 1

    # kappa
    set tmargin at screen (middle - 0.02)/height; set bmargin at screen y0/height
    set logscale y
    set yrange [kappa_low:kappa_high]
    set format x number_format(is_lowest(i))
    unset ytics; unset mytics
    set ytics nomirror kappa_low, 10.**kappa_every
    set format y power_format(is_leftmost(i))
    set ylabel (is_leftmost(i) ? 'κ' : '') offset 0.8, 0
    eval reset_limits
    stats 'tables/kappa.csv' using (is(arch) ? take(number('kappa')) : 0) nooutput
    if (low > high) { set label 2 'no finite κ' at graph 0.5, graph 0.5 center textcolor rgb gray }
    plot 'tables/kappa.csv' using (is(arch) ? column('env_step')/unit : NaN):(number('kappa_low')):(number('kappa_high')) \
             with filledcurves fc rgb colour(i) fs transparent solid 0.25 noborder, \
         '' using (is(arch) ? column('env_step')/unit : NaN):(number('kappa')) with lines lw 1.2 dt dash(i) lc rgb colour(i), \
         '' using (is(arch) ? column('env_step')/unit : NaN):(number('kappa')):(tip('κ', 'kappa')) \
             with labels hypertext point pt mark(i) ps 0.4 lc rgb colour(i), \
         '' using (is(arch) && strcol('kappa') eq 'inf' ? column('env_step')/unit : NaN):(kappa_high) \
             with points pt 9 ps 0.8 lc rgb colour(i)
    unset label 2
}
unset multiplot
