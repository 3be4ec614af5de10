"""The layout report as one HTML file: its text, its style, and its plots, which Vega draws from data in the file."""
