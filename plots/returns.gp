# Returns over training: a panel a loss, a curve an architecture, dashed with weight normalization.
has_wn(arch) = strstrt(arch, '+wn') > 0
array panel_archs[3] = ['', '', '']
array panel_title[3] = ['cross-entropy', 'squared error', 'other losses']
do for [i=1:words(archs)] {
    arch = word(archs, i)
    twelve = arch[1:3] eq 'bn+' || arch[1:3] eq 'ln+' || arch[1:6] eq 'dense+'
    p = !twelve ? 3 : strstrt(arch, '+mse') > 0 ? 2 : 1
    panel_archs[p] = panel_archs[p].' '.arch
}
panels = sum [p=1:3] (words(panel_archs[p]) > 0)
width = 1.0 + 4.4*panels; height = 4.3
load plots.'/style.gp'
number(name) = strcol(name) eq '-' ? NaN : column(name)
is(arch) = strcol('architecture') eq arch
dash(arch) = has_wn(arch) ? 2 : 1

stats 'tables/return_curves.csv' skip 1 using 6 nooutput name 'Y'
stats 'tables/return_curves.csv' skip 1 using 8 nooutput name 'H'
y_high = exists('H_max') && H_max > Y_max ? H_max : Y_max
set multiplot
set tmargin at screen 1 - 0.3/height; set bmargin at screen 1.15/height
set xrange [-0.02*steps/unit:1.02*steps/unit]
set yrange [Y_min < 0 ? 1.05*Y_min : 0:1.05*y_high]
set xlabel steps_title offset 0, 0.3
set xtics 0, 0.25*steps/unit
k = 0
do for [p=1:3] {
    if (words(panel_archs[p]) == 0) { continue }
    set lmargin at screen (0.85 + 4.4*k)/width
    set rmargin at screen (0.85 + 4.4*k + 4.15)/width
    set ylabel (k == 0 ? 'return' : '') offset 0.5, 0
    set format y (k == 0 ? '%g' : '')
    set key at screen (0.85 + 4.4*k + 2.07)/width, screen 0.36/height center center horizontal \
        maxcols 3 Left reverse samplen 2.5 width 1 noautotitle
    set title panel_title[p] offset 0, -0.5
    list = panel_archs[p]
    plot for [i=1:words(list)] 'tables/return_curves.csv' \
             using (is(word(list, i)) ? column('env_step')/unit : NaN):(number('return_low')):(number('return_high')) \
             with filledcurves fc rgb colour(word(list, i)) fs transparent solid 0.15 noborder, \
         for [i=1:words(list)] 'tables/return_curves.csv' \
             using (is(word(list, i)) ? column('env_step')/unit : NaN):(number('return')) \
             with linespoints pt (has_wn(word(list, i)) ? 6 : 7) ps 0.4 lw 1.4 \
             dt dash(word(list, i)) lc rgb colour(word(list, i)) title word(list, i)
    k = k + 1
}
unset multiplot
