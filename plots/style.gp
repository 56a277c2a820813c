# Shared by all plots. A script sets `width` and `height` (inches) and loads this. The program that runs the script
# sets format (png, pdf), output_file, plots (the folder of the scripts), steps (where runs end), and lists with a
# word per panel: archs, norms (bn, ln, dense, other), wns (1: weight normalization), losses (ce, mse, other).
dpi = 160
if (format eq 'png') {
    set terminal pngcairo size width*dpi, height*dpi font 'DejaVu Sans,9' fontscale dpi/96. linewidth dpi/96.
    px = dpi/96.
} else {
    set terminal pdfcairo size width, height font 'DejaVu Sans,9' fontscale 0.75 linewidth 0.75
    px = 0.75
}
set output output_file
set datafile separator comma
set datafile missing '-'
set encoding utf8

# environment steps, in thousands from 10000 on
unit = steps < 10000 ? 1. : 1e3
steps_title = unit > 1 ? 'environment steps (thousands)' : 'environment steps'

# A colour per normalization, of Okabe and Ito's palette for colour-blind readers.
blue = '#0072b2'; orange = '#d55e00'; green = '#009e73'; purple = '#cc79a7'; gray = '#8a8a8a'
norm_colour(norm) = norm eq 'bn' ? blue : norm eq 'ln' ? orange : norm eq 'dense' ? green : purple
colour(i) = norm_colour(word(norms, i))    # of architecture i
has_wn(i) = word(wns, i) eq '1'
norm_title(norm) = norm eq 'bn' ? 'batch normalization' : norm eq 'ln' ? 'layer normalization' : 'no normalization'

set style line 100 lc rgb '#dddddd' lw 0.6      # grids
set style line 101 lc rgb '#444444' lw 0.8      # frames
set border 3 ls 101
set tics nomirror out scale 0.5 textcolor rgb '#222222'
set grid ls 100
unset key

# The cell of a column, by name or by number; NaN if it is not a finite number. When a file is read with
# `using (take(x))`, the finite x are counted in `found` and widen the limits low and high; if there are none,
# low > high.
number(c) = strcol(c) eq '-' || strcol(c) eq 'inf' || strcol(c) eq '-inf' || strcol(c) eq 'nan' ? NaN : column(c)
reset_limits = 'low = 1e308; high = -1e308; found = 0'
take(x) = x == x ? (low = x < low ? x : low, high = x > high ? x : high, found = found + 1, 0) : 0

# The symmetric logarithm of x, with six decades below `largest`: linear near zero, then a unit per decade.
# symlog_tics sets the tics of the axis `axis` ('x' or 'y'), `every` decades apart, with labels if `named`, but
# none so near the end that its label would reach beyond it.
largest = 1.
symlog(x) = sgn(x)*log10(1 + abs(x)/(1e-6*largest))
decade(x) = int(floor(log10(x) + 1e-9))
symlog_tics = ' \
    eval sprintf("set %stics nomirror (\"%s\" 0)", axis, named ? "0" : ""); \
    do for [k=decade(largest/2):decade(largest) - 5:-every] { \
        eval sprintf("set %stics add (\"%s\" %.9g, \"%s\" %.9g)", axis, \
                     named ? sprintf("10^{%d}", k) : "", symlog(10.**k), \
                     named ? sprintf("−10^{%d}", k) : "", -symlog(10.**k)) \
    }'
