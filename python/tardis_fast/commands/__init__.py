"""The commands of the command line that take some time to load, one file each."""
