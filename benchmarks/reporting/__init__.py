"""Results of benchmarks, and the tables and plots of them."""
