"""`python -m tardis_fast`: the command line."""

from tardis_fast.cli import main

if __name__ == "__main__":
    main(prog_name="tardis-fast")
