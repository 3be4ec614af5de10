"""Advice on layouts: what a workload reads in any layout, judged on a sample, and which layout to choose."""
