# Figure 3 of the XQC paper: all Ritz values of each checkpoint in a column, and kappa. If the architectures fill a wide grid
# (style.gp): a row of spectra per loss, and below them a row with kappa of both losses; else a panel with the spectra and
# one with kappa per architecture. Of the analysis as in the published code if the tables have it, else of the standard one.
wide = exists('wide_columns')
load plots.'/style.gp'
right = 0.08; top = 0.24; gap_x = 0.12; gap_y = wide ? 0.1 : 0.48; title_lines = 1 + wide
columns = wide ? wide_columns : grid_columns; rows = wide ? wide_rows : grid_rows
dash_w = 0.6*checkpoint_gap/unit
other(name) = name ne 'standard' && name ne 'analysis'    # that of the header
analysis = 'standard'
stats 'tables/ritz.csv' using (analysis = other(strcol('analysis')) ? strcol('analysis') : analysis, 0) nooutput
ritz_analysis = analysis; analysis = 'standard'
stats 'tables/kappa.csv' using (analysis = other(strcol('analysis')) ? strcol('analysis') : analysis, 0) nooutput
kappa_analysis = analysis; analysis = ritz_analysis
source(analysis) = analysis eq 'standard' ? 'our analysis' : 'as in the published code'
sources = ritz_analysis eq kappa_analysis ? source(analysis) : \
          'Ritz values: '.source(ritz_analysis).'; κ: '.source(kappa_analysis)
shown(arch) = is(arch) && strcol('analysis') eq analysis

# Panels have room for a spectrum and, if they are not wide, for kappa below it. In the wide grid a row of kappas follows.
spectrum_h = wide ? 1.35 : 1.1; kappa_h = wide ? 1.2 : 0.5
place_spectrum = 'panel_h = spectrum_h + (wide ? 0 : 0.08 + kappa_h); c = column_of(i); g = row_of(i); eval place; \
    y0 = y1 - spectrum_h; panel_h = spectrum_h; \
    set bmargin at screen y0/height'
place_kappa = 'eval place_spectrum; y1 = (wide ? height - top - rows*(spectrum_h + gap_y) : y0 - 0.08); \
    y0 = y1 - kappa_h; panel_h = kappa_h; \
    set tmargin at screen y1/height; set bmargin at screen y0/height'
first_of(i) = (sum [j=1:i-1] (column_of(j) == column_of(i))) == 0

# all spectra share one axis, and so do all kappas
eval reset_limits
stats 'tables/ritz.csv' using (strcol('analysis') eq analysis ? take(positive(abs(number('ritz')))) : 0) nooutput
largest = found ? high : 1.
smallest = largest
do for [i=1:words(archs)] {
    eval reset_limits
    stats 'tables/ritz.csv' using (shown(word(archs, i)) ? take(positive(abs(number('ritz')))) : 0) nooutput
    smallest = found && high < smallest ? high : smallest
}
smallest = 1e-6*smallest
analysis = kappa_analysis
table = 'tables/kappa.csv'
eval reset_limits
do for [end in '_ _low _high'] {
    stats table \
        using (strcol('analysis') eq analysis ? take(positive(number(end eq '_' ? 'kappa' : 'kappa'.end))) : 0) nooutput
}
eval log_limits
kappa_low = a; kappa_high = b
limits_panel(dummy) = strcol('analysis') eq analysis
eval find_limits
step(arch) = shown(arch) ? column('env_step')/unit : NaN
panel_name(i) = wide && !is_other(i) ? word(norms, i).(has_wn(i) ? '+wn' : '') : word(archs, i)
loss_of(i) = word(losses, i) eq 'ce' ? 'cross-entropy' : word(losses, i) eq 'mse' ? 'squared error' : ''
ritz_axis = 'axis = "y"; every = int(ceil((log10(largest) - log10(smallest))/4.)); eval symlog_tics'
kappa_axis = 'axis = "y"; most = wide ? 4 : 2; a = kappa_low; b = kappa_high; set yrange [a:b]; eval log_tics'
eval ritz_axis
eval kappa_axis
eval size_left

b = kappa_high
eval shade_note
eval cross_note
note_ps = 0.7
note = 'cross-entropy'; note_pt = 7
if (strstrt(losses, 'ce')) { eval note_mark }
note = 'squared error'; note_pt = 9
if (strstrt(losses, 'mse')) { eval note_mark }
note = 'weight normalization'; note_pt = 6; note_dash = 2
if (strstrt(wns, '1')) { eval note_both }
eval end_notes
bottom = 0.64 + 0.14*note_lines
panel_h = spectrum_h + 0.08 + kappa_h
eval size_panels
height = wide ? top + rows*(spectrum_h + gap_y) + kappa_h + bottom : height
eval open_plot
set multiplot
analysis = ritz_analysis
set arrow 1 from graph 0, first 0 to graph 1, first 0 nohead ls 101 lw 0.6 back
set label 4 steps_title at screen 0.5, screen (bottom - 0.35)/height center
set label 5 sources at screen 0.5, screen (bottom - 0.49)/height center textcolor rgb dark
eval draw_notes
do for [i=1:words(archs)] {
    eval place_spectrum
    if (!wide || is_topmost(i)) { eval name_panel } else { unset label 1 }
    named = 0
    eval steps_axis
    set xrange [-dash_w:steps/unit + dash_w]
    named = is_leftmost(i)
    eval ritz_axis
    y_title = !named ? '' : wide ? loss_of(i) : 'Ritz values'
    y_line = named && wide ? 'Ritz values' : ''
    eval write_y_title
    plot 'tables/ritz.csv' using (step(word(archs, i)) - dash_w/2):(symlog(number('ritz'))):(dash_w):(0) \
             with vectors nohead lw 0.5 lc rgb colour(i)
    unset label 4; unset label 5
    eval remove_notes
}
unset arrow 1; unset label 1
analysis = kappa_analysis
set logscale y
y_line = ''
do for [i=1:words(archs)] {
    if (wide && !first_of(i)) { continue }
    eval place_kappa
    named = wide || is_lowest(i)
    eval steps_axis
    set xrange [-dash_w:steps/unit + dash_w]
    named = wide ? column_of(i) == 0 : is_leftmost(i)
    eval kappa_axis
    eval shade
    y_title = named ? 'κ' : ''
    eval write_y_title
    together = ''
    do for [j=1:words(archs)] { if (wide ? column_of(j) == column_of(i) : j == i) { together = together.' '.j } }
    eval reset_limits
    do for [j in together] { stats table using (shown(word(archs, j + 0)) ? take(number('kappa')) : 0) nooutput }
    if (low > high) { set label 5 'no finite κ' at graph 0.5, graph 0.5 center textcolor rgb gray }
    else { unset label 5 }
    plot for [j in together] table using (step(word(archs, j + 0))):(number('kappa_low')):(number('kappa_high')) \
             with filledcurves fc rgb colour(j + 0) fs transparent solid 0.2 noborder, \
         for [j in together] table using (step(word(archs, j + 0))):(number('kappa')) \
             with lines lw 1.2 dt dash(j + 0) lc rgb colour(j + 0), \
         for [j in together] table using (moved(0) ? step(word(archs, j + 0)) : NaN):(number('kappa')) @cross, \
         for [j in together] table \
             using (step(word(archs, j + 0))):(number('kappa')):(tip('κ', 'kappa').tip_limits(0)) \
             with labels hypertext point pt mark(j + 0) ps 0.7 lc rgb colour(j + 0), \
         for [j in together] table using (strcol('kappa') eq 'inf' ? step(word(archs, j + 0)) : NaN):(kappa_high) \
             with points pt 9 ps 0.8 lc rgb colour(j + 0)
}
unset multiplot
