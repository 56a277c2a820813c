# What an update costs against the return: parameters of all critics, arithmetic of a minibatch, updates per second.
width = 5
load plots.'/style.gp'
columns = 3; rows = 1
right = 0.1; top = 0.08; gap_x = 0.12; gap_y = 0; panel_h = 1.45
table = 'tables/efficiency.csv'
has_first = 0
of_row(i) = is(word(archs, i))
load plots.'/against_return.gp'
titles = '"parameters" "operations" "updates/s"'
names = 'parameters flops updates_per_second'
end_or_value(end) = name eq 'updates_per_second' ? number(name.end) : NaN
tip_cost(dummy) = sprintf('%s: %s %.4g', strcol('architecture'), word(titles, panel + 1), number(name)). \
             (name eq 'updates_per_second' ? interval(name) : ''). \
              sprintf('; return %.4g', number('return')).interval('return')

g = 0
eval begin_plot
do for [panel=0:2] {
    c = panel
    name = word(names, panel + 1)
    eval place
    eval reset_limits
    stats table using (take(number(name))) nooutput
    finite = found
    do for [end in '_low _high'] { stats table using (take(end_or_value(end))) nooutput }
    found = finite
    # thousands and millions, so that labels of a linear axis stay short
    power = finite == 0 || high < 1e4 ? 0 : int(floor(log10(high)/3))*3
    low = low/10**power; high = high/10**power
    eval return_axis
    axis = 'x'; most = 4; named = 1
    eval choose_axis
    x_title = word(titles, panel + 1).(power == 0 ? '' : sprintf(' (10^{%d})', power))
    eval write_x_title
    if (finite == 0) {
        set label 20 'not known' at graph 0.5, graph 0.5 center textcolor rgb gray
        unset xtics; plot NaN; unset label 20
    } else {
        plot for [i=1:words(archs)] table \
                 using (of_row(i) && end_or_value('_low') == end_or_value('_low') ? number(name)/10**power : NaN): \
                       (number('return')):(end_or_value('_low')/10**power):(end_or_value('_high')/10**power) \
                 with xerrorbars pt 0 lw 0.8 lc rgb colour(i), \
             for [i=1:words(archs)] table \
                 using (of_row(i) ? number(name)/10**power : NaN):(number('return') + 0*number('return_low')): \
                       (number('return_low')):(number('return_high')) \
                 with yerrorbars pt 0 lw 0.8 lc rgb colour(i), \
             for [i=1:words(archs)] table \
                 using (of_row(i) ? number(name)/10**power : NaN):(number('return')):(tip_cost(0)) \
                 with labels hypertext point pt mark(i) ps 1 lc rgb colour(i)
    }
    eval remove_notes
}
unset multiplot
