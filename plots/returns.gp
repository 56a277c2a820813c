# Returns over training: a panel per loss, a curve per architecture, dashed with weight normalization.
array panel_members[3] = ['', '', '']    # indices of architectures
array panel_title[3] = ['cross-entropy', 'squared error', 'other losses']
do for [i=1:words(archs)] {
    loss = word(losses, i)
    p = loss eq 'ce' ? 1 : loss eq 'mse' ? 2 : 3
    panel_members[p] = panel_members[p].' '.i
}
panels = sum [p=1:3] (words(panel_members[p]) > 0)
width = 1.0 + 4.4*panels; height = 4.3
load plots.'/style.gp'
is(arch) = strcol('architecture') eq arch
arch_of(k) = word(archs, int(word(list, k)))
colour_of(k) = colour(int(word(list, k)))
wn_of(k) = has_wn(int(word(list, k)))
dash(k) = wn_of(k) ? 2 : 1

eval reset_limits
do for [name in 'return return_low return_high'] {
    stats 'tables/return_curves.csv' using (take(number(name))) nooutput
}
low = low < 0 ? 1.05*low : 0; high = high > 0 ? 1.05*high : low < 0 ? 0 : 1
set multiplot
set tmargin at screen 1 - 0.3/height; set bmargin at screen 1.15/height
set xrange [-0.02*steps/unit:1.02*steps/unit]
set yrange [low:high]
set xlabel steps_title offset 0, 0.3
set xtics 0, 0.25*steps/unit
k = 0
do for [p=1:3] {
    if (words(panel_members[p]) == 0) { continue }
    set lmargin at screen (0.85 + 4.4*k)/width
    set rmargin at screen (0.85 + 4.4*k + 4.15)/width
    set ylabel (k == 0 ? 'return' : '') offset 0.5, 0
    set format y (k == 0 ? '%g' : '')
    set key at screen (0.85 + 4.4*k + 2.07)/width, screen 0.36/height center center horizontal \
        maxcols 3 Left reverse samplen 2.5 width 1 noautotitle
    set title panel_title[p] offset 0, -0.5
    list = panel_members[p]
    plot for [i=1:words(list)] 'tables/return_curves.csv' \
             using (is(arch_of(i)) ? column('env_step')/unit : NaN):(number('return_low')):(number('return_high')) \
             with filledcurves fc rgb colour_of(i) fs transparent solid 0.15 noborder, \
         for [i=1:words(list)] 'tables/return_curves.csv' \
             using (is(arch_of(i)) ? column('env_step')/unit : NaN):(number('return')) \
             with linespoints pt (wn_of(i) ? 6 : 7) ps 0.4 lw 1.4 \
             dt dash(i) lc rgb colour_of(i) title arch_of(i)
    k = k + 1
}
unset multiplot
