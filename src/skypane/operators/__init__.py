"""What happens to rows, panes and windows, without a clock, a file or Spark."""
