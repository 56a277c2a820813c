# Shared by the plots of statistics against the return, after style.gp and size_panels: the scale of the returns,
# and the names of the architectures beside a row of panels, in the order of their returns. `returns` is a table with
# the columns return, return_low, return_high, and of_row(i) says whether a row of it belongs to architecture i.
array return_of[words(archs)]
eval reset_limits
do for [i=1:words(archs)] {
    do for [name in 'return return_low return_high'] {
        stats returns using (of_row(i) ? take(number(name)) : 0) nooutput
    }
}
margin = high > low ? 0.08*(high - low) : 1
return_min = low - margin; return_max = high + margin
do for [i=1:words(archs)] {
    eval reset_limits
    stats returns using (of_row(i) ? take(number('return')) : 0) nooutput
    return_of[i] = found ? low : NaN
}
set yrange [return_min:return_max]

# Names and marks to the right of the panel that `place` has put last; lines join them with their returns. A name
# stands at the height of its return, or as far from it as its neighbours force it.
below(i) = sum [j=1:words(archs)] (return_of[j] < return_of[i] || (return_of[j] == return_of[i] && j > i))
array at_rank[words(archs)]; array name_y[words(archs)]
do for [i=1:words(archs)] { at_rank[below(i) + 1] = i }
name_step = 0.125*words(archs) < panel_h ? 0.125 : panel_h/words(archs)
name_font = name_step < 0.12 ? sprintf(',%.1f', 72*name_step/1.1) : ','
names_beside = ' \
    do for [k=1:words(archs)] { \
        wish = y0 + panel_h*(return_of[at_rank[k]] - return_min)/(return_max - return_min); \
        name_y[k] = k > 1 && wish < name_y[k - 1] + name_step ? name_y[k - 1] + name_step : wish \
    }; \
    limit = y1; \
    do for [k=words(archs):1:-1] { \
        name_y[k] = name_y[k] > limit ? limit : name_y[k]; limit = name_y[k] - name_step; \
        j = at_rank[k]; \
        set arrow 100 + k from screen (x1 + 0.02)/width, first return_of[j] to screen (x1 + 0.16)/width, screen name_y[k]/height \
            nohead lw 0.5 lc rgb colour(j); \
        set label 100 + k word(archs, j) at screen (x1 + 0.22)/width, screen name_y[k]/height left noenhanced offset 0.6, -0.15 \
            font name_font textcolor rgb colour(j) point pt mark(j) ps 0.8 lc rgb colour(j) \
    }'
remove_names = 'do for [k=1:words(archs)] { unset arrow 100 + k; unset label 100 + k }'
