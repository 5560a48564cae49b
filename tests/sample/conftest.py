"""A script that tests run as a process of its own is no module of tests."""

collect_ignore = ["spark_connect.py"]
