"""``python -m encore``: the command ``encore``, also where a shell does not find it."""

from encore.commands.__main__ import main

if __name__ == "__main__":
    main()
