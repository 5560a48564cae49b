"""Tests of exports; a package, so that its Spark session ends before another package starts one."""
