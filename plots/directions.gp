# The number of eigenvalues within a factor of 100 of the largest one, over training.
statistic = 'directions_1e2'; title = 'eigenvalues'
load plots.'/intervals_grid.gp'
