# The figure of the study `exact`, from tables/values.csv and tables/taus.csv; run in this folder: gnuplot ranks.gp
# Left: Definition 3's condition number of each checkpoint against the published code's kappa. Right: Kendall's tau.
set terminal pngcairo size 1400,660 font 'DejaVu Sans,15' linewidth 1.5
set output 'ranks.png'
set datafile separator comma
set encoding utf8
bn = '#e13971'; ln = '#4477aa'; none = '#64ab70'; dark = '#333333'
set border 3 lc rgb '#444444'; set tics nomirror out scale 0.5; set grid lc rgb '#dddddd'

group(a) = substr(a, 1, 2) eq 'bn' ? 0 : substr(a, 1, 2) eq 'ln' ? 1 : 2
colour(k) = k == 0 ? bn : k == 1 ? ln : none
x(k) = group(strcol('architecture')) == k ? 10**column('P_0_low') : NaN
known(k) = strcol('K3_high') eq 'inf' ? NaN : 10**column('K3_low')
bound(k) = strcol('K3_high') eq 'inf' ? 10**column('K3_low') : NaN
is_ce = "(strstrt(strcol('architecture'), 'ce') > 0)"

set multiplot
set lmargin at screen 0.075; set rmargin at screen 0.45; set bmargin at screen 0.13; set tmargin at screen 0.94
set logscale xy; set format '10^{%T}'
set xrange [1e3:1e10]; set yrange [1e3:1e17]; set ytics 1e4, 1e2, 1e16; set xtics 1e3, 1e2, 1e9
set xlabel 'the published code''s kappa (90 Lanczos steps)'
set ylabel 'largest / smallest |eigenvalue|, Definition 3' offset 1
set key at graph 0.98, 0.145 right center samplen 1 spacing 1.1 textcolor rgb dark
set label 1 'arrows: at least; the smallest cannot be told from 0' at graph 0.03, 0.965 textcolor rgb dark
set label 2 'equal' at 1.5e3, 3e4 textcolor rgb dark
plot x with lines dt 2 lc rgb dark notitle, \
     for [k=0:2] 'tables/values.csv' using (x(k)):(known(k)) with points pt 7 ps 0.9 lc rgb colour(k) notitle, \
     for [k=1:2] 'tables/values.csv' using (x(k)):(bound(k)):(0):(bound(k)*12) with vectors head size screen 0.006, 25 lw 1 lc rgb colour(k) notitle, \
     keyentry with points pt 7 ps 1.2 lc rgb bn title 'batch normalization', \
     keyentry with points pt 7 ps 1.2 lc rgb ln title 'layer normalization', \
     keyentry with points pt 7 ps 1.2 lc rgb none title 'no normalization'
unset logscale; unset label; set format '%g'

set lmargin at screen 0.64; set rmargin at screen 0.985
set xrange [-1:1.05]; set xtics -1, 0.5, 1; set yrange [11.6:-0.6]
set xlabel 'Kendall''s tau with the published code''s kappa'; unset ylabel
names = 'P_4 K K3 Q_10 Q_25 Q_50 Q_75 Q_90 Q_99 D L'
titles = '"start vector 4" "kappa, our analysis" "Definition 3" "largest / 10th percentile" "largest / 25th percentile" "largest / median" "largest / 75th percentile" "largest / 90th percentile" "largest / 99th percentile" "directions_1e2" "largest eigenvalue"'
set ytics () noenhanced
do for [k=1:words(names)] { set ytics add (word(titles, k) k - 1) }
place(over) = (strcol('x') eq 'P_0' && strcol('over') eq over ? sum [k=1:words(names)] (word(names, k) eq strcol('y') ? k : 0) : 0)
at(over, shift) = place(over) > 0 ? place(over) - 1 + shift : NaN
set key at graph 0.02, 0.06 left center Left reverse samplen 1.5 textcolor rgb dark
set arrow 1 from 0.5, graph 0 to 0.5, graph 1 nohead dt 2 lc rgb dark
plot for [k=0:1] o = word('architectures checkpoints', k + 1) \
       'tables/taus.csv' using ((column('interval_low') + column('interval_high'))/2):(at(o, 0.28*k - 0.14)):(column('interval_low')):(column('interval_high')) \
       with xerrorbars pt -1 lw 1.5 lc rgb (k ? '#d08a00' : dark) notitle, \
     for [k=0:1] o = word('architectures checkpoints', k + 1) \
       'tables/taus.csv' using ((column('tau_low') + column('tau_high'))/2):(at(o, 0.28*k - 0.14)):(column('tau_low')):(column('tau_high')) \
       with xerrorbars pt -1 lw 5 lc rgb (k ? '#d08a00' : dark) notitle, \
     for [k=0:1] o = word('architectures checkpoints', k + 1) \
       'tables/taus.csv' using (column('tau_low') == column('tau_high') ? column('tau_low') : NaN):(at(o, 0.28*k - 0.14)) \
       with points pt 7 ps 0.9 lc rgb (k ? '#d08a00' : dark) title 'over '.o
unset multiplot
