# The figure of the page, from tables/pixels.csv; run in this folder: gnuplot pixels.gp
set terminal pngcairo size 1400,660 font 'DejaVu Sans,15' linewidth 1.5
set output 'pixels.png'
set datafile separator comma
set encoding utf8
dark = '#333333'
set border 3 lc rgb '#444444'; set tics nomirror out scale 0.5; set grid x lc rgb '#dddddd'
set yrange [18.6:-0.6]
set key center right samplen 1 spacing 1.2 textcolor rgb dark
names = 'acrobot_swingup cartpole_swingup_sparse cheetah_run finger_turn_easy finger_turn_hard hopper_hop quadruped_run quadruped_walk reach_duplo reacher_easy reacher_hard walker_run humanoid_run humanoid_stand humanoid_walk all humanoid others humanoid-others'
set xrange [-0.2:0.4]; set xtics -0.1, 0.1, 0.3
set arrow 1 from 0, graph 0 to 0, graph 1 nohead lc rgb dark
set arrow 2 from graph 0, first 14.5 to graph 1, first 14.5 nohead dt 2 lc rgb dark

place(name) = sum [k=1:words(names)] (word(names, k) eq name ? k : 0)
at(m) = strcol('measure') eq m ? place(strcol('task')) - 1 : NaN
colour = "(strcol('verdict') eq 'XQC higher' ? 0xe13971 : strcol('verdict') eq 'DrQ-v2 higher' ? 0x4477aa : 0x888888)"

set multiplot
set bmargin at screen 0.13; set tmargin at screen 0.93
do for [k=0:1] {
    set lmargin at screen 0.2 + 0.4*k; set rmargin at screen 0.57 + 0.4*k
    set title (k ? 'last return' : 'area under the curve') textcolor rgb dark
    set xlabel 'XQC minus DrQ-v2, return / 1,000'
    set ytics () noenhanced
    do for [i=1:words(names)] { set ytics add (k ? '' : word(names, i) i - 1) }
    plot 'tables/pixels.csv' using 'difference':(at(k ? 'last' : 'area')):'low_95':'high_95':@colour \
             with xerrorbars pt 7 ps 1 lw 2 lc rgb variable notitle, \
         for [i=0:2*k] keyentry with points pt 7 lc rgb word('#e13971 #4477aa #888888', i + 1) \
             title k ? word('"XQC higher" "DrQ-v2 higher" "not decided"', i + 1) : ''
}
unset multiplot
