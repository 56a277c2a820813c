# Shared by the plots of curves over training, after style.gp: a panel per loss in each row, and one for variants and
# other networks; a curve per architecture, with one legend below. A script sets `table` before it loads this, and then
# draws the panels with `draw_curves`.
array members[3] = ['', '', '']    # indices of architectures: cross-entropy, squared error, others
array loss_title[3] = ['cross-entropy', 'squared error', strstrt(norms, 'other') ? 'others' : 'variants']
do for [i=1:words(archs)] {
    loss = word(losses, i)
    p = is_other(i) ? 3 : loss eq 'ce' ? 1 : 2
    members[p] = members[p].' '.i
}
panels = ''
do for [p=1:3] { if (words(members[p]) > 0) { panels = panels.' '.p } }
columns = words(panels)
panel_steps_title = columns < 3 ? steps_title : short_steps_title

# the legend: what an architecture is called apart from its loss, each once
short(i) = is_other(i) ? word(archs, i) : word(norms, i).(has_wn(i) ? '+wn' : '')
entries = ''; entry_of = ''
do for [own=0:1] { do for [i=1:words(archs)] {
    new = is_other(i) == own
    do for [k=1:words(entries)] { if (!own && word(entries, k) eq short(i)) { new = 0 } }
    if (new) { entries = entries.' '.short(i); entry_of = entry_of.' '.i }
} }
do for [k=1:words(entries)] {
    note = word(entries, k); note_dash = dash(word(entry_of, k) + 0); note_colour = colour(word(entry_of, k) + 0)
    eval note_line
}
limit = NaN    # a dotted line at this height

# The curves of column y of the table in the panel of loss p, with their intervals and marks.
at_step(i) = is(word(archs, i)) ? column('env_step')/unit : NaN
member(k) = int(word(members[p], k))
logarithmic = 0
shown(x) = logarithmic && x <= 0 ? NaN : x    # gnuplot draws bands that reach 0 on a logarithmic axis wrongly
draw_curves = ' \
    plot for [k=1:words(members[p])] table \
             using (at_step(member(k))):(shown(number(y."_low"))):(shown(number(y."_high"))) \
             with filledcurves fc rgb colour(member(k)) fs transparent solid 0.18 noborder, \
         for [k=1:words(members[p])] table using (at_step(member(k))):(shown(number(y))) \
             with lines lw 1.3 dt dash(member(k)) lc rgb colour(member(k)), \
         for [k=1:words(members[p])] table using (at_step(member(k))):(shown(number(y))):(tip(y, y)) \
             with labels hypertext point pt mark(member(k)) ps 0.4 lc rgb colour(member(k)), \
         limit with lines lw 1 dt 6 lc rgb dark; \
    eval remove_notes'
