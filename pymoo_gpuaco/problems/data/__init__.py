"""Instances and tables that are shipped with the package.

The .tsp and .opt.tour files are those of TSPLIB 95 (G. Reinelt, Heidelberg,
http://comopt.ifi.uni-heidelberg.de/software/TSPLIB95/), byte by byte.
"""
